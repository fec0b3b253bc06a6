"""The likelihoods are probabilities, and what a law implies follows from them: exact enumeration."""

import numpy as np
import pytest

from keyhole.models.superpopulation.poisson_inverse_gaussian import (
    InverseGaussian,
    InverseGaussianFamily,
    log_cells,
)
from keyhole.models.superpopulation.slide_negative_binomial import Slide, SlideFamily, log_slide
from keyhole.models.superpopulation.two_parameter import TwoParameter, log_partition
from tests.models.samples import index_of, partitions, sample_of

TWO_PARAMETER = {
    "ewens": (1.7, 0.0, np.inf),
    "pitman": (0.8, 0.35, np.inf),
    "pitman with negative theta": (-0.2, 0.6, np.inf),
    "poisson-gamma": (2.4, -2.4 / 12, 12.0),
    "poisson-gamma with few cells": (3.0, -1.0, 3.0),
}


def probability(counts: list[int], theta: float, sigma: float, cells: float) -> float:
    if len(counts) > cells:
        return 0.0
    return float(np.exp(log_partition(index_of(counts), theta, sigma, cells)))


@pytest.mark.parametrize("case", TWO_PARAMETER)
@pytest.mark.parametrize("records", [1, 2, 5, 8])
def test_size_index_probabilities_add_up_to_one(case: str, records: int) -> None:
    total = sum(probability(counts, *TWO_PARAMETER[case]) for counts in partitions(records))
    assert total == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("case", TWO_PARAMETER)
def test_expected_size_index_by_enumeration(case: str) -> None:
    theta, sigma, cells = TWO_PARAMETER[case]
    sizes = np.arange(1, 12)
    expected = np.zeros(len(sizes))
    for counts in partitions(7):
        chance = probability(counts, theta, sigma, cells)
        expected += chance * np.array([counts.count(int(size)) for size in sizes])
    got = TwoParameter(theta, sigma).expected_size_index(sizes, 7)
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("case", TWO_PARAMETER)
def test_population_uniques_average_to_those_of_the_population(case: str) -> None:
    """E[E(population uniques | sample)] over all samples of 5 is the expected size index of a population of 9."""
    theta, sigma, cells = TWO_PARAMETER[case]
    law = TwoParameter(theta, sigma)
    averaged = sum(
        chance * law.population_uniques(sample_of(counts, 9))
        for counts in partitions(5)
        if (chance := probability(counts, theta, sigma, cells)) > 0
    )
    assert averaged == pytest.approx(law.expected_size_index(np.array([1]), 9)[0], rel=1e-11)


@pytest.mark.parametrize("case", TWO_PARAMETER)
def test_unsampled_counts_by_enumeration(case: str) -> None:
    """E(tau1) over all samples of 4 in populations of 7: each population unique is sampled with chance 4/7."""
    theta, sigma, cells = TWO_PARAMETER[case]
    law = TwoParameter(theta, sigma)
    tau1 = tau2 = 0.0
    for counts in partitions(4):
        chance = probability(counts, theta, sigma, cells)
        if chance > 0:
            unsampled = law.unsampled(sample_of(counts, 7))
            tau1 += chance * float(unsampled.prob_none().sum())
            tau2 += chance * float(unsampled.mean_match().sum())
    size = np.arange(1, 8)
    population = law.expected_size_index(size, 7)
    assert tau1 == pytest.approx(population[0] * 4 / 7, rel=1e-11)
    # Exactly one of a cell's F people is sampled: F C(7 - F, 3) / C(7, 4), and 1/F of a match is right.
    ways = np.array([20, 10, 4, 1, 0, 0, 0]) / 35
    assert tau2 == pytest.approx(float((population * ways).sum()), rel=1e-11)


def test_unsampled_count_of_any_cell_adds_up_to_one() -> None:
    sample = sample_of([4, 3, 1, 1], 60)
    for law in (TwoParameter(1.7, 0.0), TwoParameter(0.8, 0.35), TwoParameter(2.4, -0.2)):
        for count in (1, 3, 4):
            logs = law.log_unsampled(sample, count, np.arange(52.0))
            assert np.exp(logs).sum() == pytest.approx(1.0, rel=1e-11)
        assert np.exp(law.log_unsampled(sample, 1, np.zeros(1)))[0] == pytest.approx(
            law.unsampled(sample).prob_none()[0], rel=1e-12
        )


def test_many_cells_turn_poisson_gamma_into_ewens() -> None:
    index = index_of([1] * 40 + [2] * 9 + [7])
    ewens = log_partition(index, 30.0, 0.0)
    for cells, tolerance in ((1e9, 1e-5), (1e30, 1e-12)):
        assert float(log_partition(index, 30.0, -30.0 / cells, cells)) == pytest.approx(
            float(ewens), rel=tolerance
        )


def test_vanishing_discount_turns_pitman_into_ewens() -> None:
    index = index_of([1] * 40 + [2] * 9 + [7])
    for sigma in (1e-12, 1e-9, 1e-7):
        assert float(log_partition(index, 30.0, sigma)) == pytest.approx(
            float(log_partition(index, 30.0, 0.0)), abs=1e-4
        )


def test_slide_counts_are_a_bernoulli_plus_a_negative_binomial() -> None:
    shape, odds, fraction = 0.7, 4.0, 0.15
    rng = np.random.default_rng(4)
    population = 1 + rng.negative_binomial(shape, 1 / (1 + odds), 400_000)
    counts = rng.binomial(population, fraction)
    sizes = np.arange(8.0)
    mass = np.exp(log_slide(np.arange(3000.0), shape, odds, fraction))
    assert mass.sum() == pytest.approx(1.0, rel=1e-12)
    for size in sizes:
        share, chance = (counts == size).mean(), mass[int(size)]
        assert abs(share - chance) < 4 * np.sqrt(chance * (1 - chance) / len(counts))
    unseen = population[counts == 1] - 1
    law = Slide(shape, odds, fraction, 100)
    from keyhole.population.slide import SlideUnsampled

    expected = SlideUnsampled(1, shape, law.unseen_odds)
    for values, target in (((unseen == 0), expected.prob_none()[0]), (1 / (1 + unseen), expected.mean_match()[0])):
        assert abs(values.mean() - target) < 4 * values.std() / np.sqrt(len(values))


def test_slide_likelihood_is_that_of_the_seen_cells() -> None:
    family = SlideFamily(index_of([1, 1, 1, 2, 5]), 80)
    shape, odds, fraction = 0.5, 6.0, 10 / 80
    mass = np.exp(log_slide(np.arange(6.0), shape, odds, fraction))
    ways = 20  # five cells, of which three are alike
    expected = np.log(ways * mass[1] ** 3 * mass[2] * mass[5] / (1 - mass[0]) ** 5)
    got = family.log_likelihood(np.log([[shape * odds, odds]]))[0]
    assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("cells", [50.0, 3000.0, 1e30])
def test_inverse_gaussian_expectations_add_up(cells: float) -> None:
    law = InverseGaussian(1.3, 200, 4000, cells)
    sizes = np.arange(1, 201)
    expected = law.expected_size_index(sizes, 200)
    assert (sizes * expected).sum() == pytest.approx(200, rel=1e-6)
    empty = np.exp(-2 * 200 / cells / (1 + np.sqrt(2.3)))
    seen = cells * (1 - empty) if cells < 1e6 else 2 * 200 / (1 + np.sqrt(2.3))
    assert expected.sum() == pytest.approx(seen, rel=1e-9)


def test_inverse_gaussian_counts_by_simulation() -> None:
    mean, dispersion, cells, fraction = 0.8, 5.0, 400_000, 0.2
    rng = np.random.default_rng(6)
    population = rng.poisson(rng.wald(mean, 2 * mean**2 / dispersion, cells))
    counts = rng.binomial(population, fraction)
    records = round(mean * fraction * cells)
    law = InverseGaussian(dispersion * fraction, records, round(mean * cells), float(cells))
    expected = law.expected_size_index(np.arange(1, 7), records)
    for size, target in enumerate(expected, 1):
        assert abs((counts == size).sum() - target) < 4 * np.sqrt(target)
    alone = population[counts == 1] - 1
    uniques = sample_of([1], round(records / fraction) - records + 1)
    scale = records * (1 - fraction) / fraction  # unsampled people per sampled one enter through the sample
    assert uniques.unsampled_size == round(scale)
    got = law.unsampled(uniques)
    for values, target in (((alone == 0), got.prob_none()[0]), (1 / (1 + alone), got.mean_match()[0])):
        assert abs(values.mean() - target) < 4 * values.std() / np.sqrt(len(values))
    for count in (1, 2, 4):
        logs = law.log_unsampled(_fraction_sample(fraction), count, np.arange(400.0))
        mass = np.exp(logs - logs.max())
        seen = population[counts == count] - count
        values = 1 / (count + seen)
        expected_match = (mass / (count + np.arange(400.0))).sum() / mass.sum()
        assert abs(values.mean() - expected_match) < 4 * values.std() / np.sqrt(len(values))


def _fraction_sample(fraction: float) -> "object":
    return sample_of([1, 1], round(2 / fraction))


def test_inverse_gaussian_likelihood_is_that_of_all_cells() -> None:
    """Multinomial over the K cells, the empty ones included."""
    cells, dispersion = 9.0, 0.7
    counts = [1, 1, 3]
    family = InverseGaussianFamily(index_of(counts), 50, cells)
    empty = np.exp(-2 * 5 / cells / (1 + np.sqrt(1 + dispersion)))
    mass = empty * np.exp(log_cells(np.array([1.0, 3.0]), dispersion, 5, cells)) / cells
    ways = 9 * 8 * 7 / 2
    expected = np.log(ways * empty**6 * mass[0] ** 2 * mass[1])
    assert family.log_likelihood(np.log([[dispersion]]))[0] == pytest.approx(expected, rel=1e-12)
