"""Survey weights: the law of the population from that of the sample, and people outside of it."""

import numpy as np
import pytest

from keyhole.models.sequential.checks import CHECKED_EFFECT
from keyhole.models.sequential.model import SequentialLogit, SequentialLogitFit
from keyhole.population.sample import Sample
from keyhole.population.weights import (
    design_effect,
    inclusion,
    inclusion_by_cell,
    pseudo_counts,
    weights_differ_within_cells,
)
from keyhole.risk.size_index_check import check_size_index
from tests.models.sequential.people import dependent_people, sample_of_codes

MODEL = SequentialLogit(orders=1, nested=0, draws=20)


def weighted(spread: float, size: int = 700, *, noise: float = 0.0) -> Sample:
    """People whose weights depend on two of their keys, and on something else where there is noise."""
    rng = np.random.default_rng(31)
    codes = dependent_people(size, rng=rng)
    effects = spread * rng.standard_normal((2, 20))
    weights = 20 * np.exp(effects[0, codes[:, 0]] + effects[1, codes[:, 1]] + noise * rng.standard_normal(size))
    return sample_of_codes(codes, round(weights.sum()), weights=weights)


def fitted(sample: Sample) -> SequentialLogitFit:
    return MODEL.fit(sample, rng=np.random.default_rng(0))


def test_equal_weights_are_no_weights() -> None:
    equal = weighted(0.0)
    plain = Sample(
        type(equal.table)(equal.table.keys, equal.table.cells, equal.table.counts), equal.population_size
    )
    assert design_effect(equal) == pytest.approx(1.0)
    one, other = fitted(equal), fitted(plain)
    np.testing.assert_allclose(one.posterior.mean, other.posterior.mean, rtol=1e-7)
    np.testing.assert_allclose(one.sides, other.sides, rtol=1e-9)
    for law, same in zip(one.unsampled(), other.unsampled(), strict=True):
        np.testing.assert_allclose(law.mean_match(), same.mean_match(), rtol=1e-5)


def test_design_effect_is_that_of_kish() -> None:
    codes = np.arange(50)[:, None]
    weights = np.random.default_rng(1).uniform(1, 30, 50)
    sample = sample_of_codes(codes, 2000, (50,), weights=weights)
    expected = 50 * (weights**2).sum() / weights.sum() ** 2
    assert design_effect(sample) == pytest.approx(expected, rel=1e-12)
    assert expected > 1.1
    assert pseudo_counts(sample).sum() == pytest.approx(50 / expected)
    np.testing.assert_allclose(pseudo_counts(sample) / weights, pseudo_counts(sample)[0] / weights[0])


def test_the_law_of_the_sample_is_tilted_to_that_of_the_population() -> None:
    """The first key has no ridge: its levels have the shares that their weights give them."""
    codes = dependent_people(900, (9,), rng=np.random.default_rng(32))
    weights = 5.0 + 3.0 * codes[:, 0]
    sample = sample_of_codes(codes, round(weights.sum()), (9,), weights=weights)
    fit = fitted(sample)
    share = np.exp(fit.laws[0].moments[:, 0] + fit.tilt)
    np.testing.assert_allclose(share, sample.table.weights / weights.sum(), rtol=1e-5)
    assert share.sum() == pytest.approx(1.0)
    # The shares of the sample, which the logits are fitted to, are others.
    assert np.abs(np.exp(fit.laws[0].moments[:, 0]) / share - 1).max() > 0.3


def test_unequal_weights_leave_the_fit_alone() -> None:
    sample = weighted(0.8)
    plain = Sample(
        type(sample.table)(sample.table.keys, sample.table.cells, sample.table.counts), sample.population_size
    )
    fit, same = fitted(sample), fitted(plain)
    assert design_effect(sample) > 1.3
    np.testing.assert_array_equal(fit.posterior.shape, same.posterior.shape)
    tilt = fit.tilt[sample.table.uniques]
    np.testing.assert_allclose(fit.posterior.mean, same.posterior.mean + tilt)
    assert np.ptp(tilt) > 1.0
    assert not same.tilt.any()
    lines = {line.name: line for line in fit.diagnostics}
    assert lines["design_effect"].value == pytest.approx(design_effect(sample))


def test_people_of_unequal_chances_are_estimated_without_bias() -> None:
    """A key decides how likely people are drawn; with their weights ignored tau2 is far off."""
    rng = np.random.default_rng(40)
    levels = (9, 6, 5, 4)
    people = dependent_people(40_000, levels, rng=rng)
    chance = np.array([0.01, 0.2, 0.05, 0.1, 0.02, 0.15])[people[:, 1]]
    everybody = sample_of_codes(people, len(people), levels).table
    ratios = []
    for _ in range(4):
        drawn = rng.random(len(people)) < chance
        found = []
        for weights in (1 / chance[drawn], None):
            sample = sample_of_codes(people[drawn], len(people), levels, weights=weights)
            alone = everybody.counts[everybody.find(sample.table.cells[sample.table.uniques])]
            expected = np.mean([law.mean_match().sum() for law in fitted(sample).unsampled()])
            found.append(expected / (1 / alone).sum())
        ratios.append(found)
    given, ignored = np.mean(ratios, axis=0)
    assert abs(np.log(given)) < 0.12
    assert abs(np.log(ignored)) > 2 * abs(np.log(given))


def test_people_outside_are_those_whom_the_weights_say() -> None:
    """Of N p people of a cell N p / w are in the sample and the others outside."""
    sample = weighted(0.8)
    fit = fitted(sample)
    unique = sample.table.uniques
    weights = sample.table.weights[unique] * sample.population_size / sample.table.weights.sum()
    outside = sample.population_size * (1 - 1 / np.maximum(weights, 1.0))
    np.testing.assert_allclose(fit.sides[1], outside, rtol=1e-12)


def test_a_person_who_stands_for_nobody_else_is_surely_unique() -> None:
    codes = dependent_people(600, rng=np.random.default_rng(33))
    weights = np.full(600, 10.0)
    table = sample_of_codes(codes, 10_000).table
    cell = table.cells[table.uniques[0]]
    weights[(codes == cell).all(axis=1)] = 0.5
    sample = sample_of_codes(codes, round(weights.sum()), weights=weights)
    for law in fitted(sample).unsampled():
        assert law.prob_none()[0] == 1.0
        assert law.prob_none()[1:].max() < 1.0


@pytest.mark.parametrize("spread", [1.5, 2.5])
def test_very_unequal_weights_give_finite_numbers(spread: float) -> None:
    fit = fitted(weighted(spread))
    assert np.isfinite(fit.laws[0].moments).all()
    assert (fit.laws[0].moments[:, 2] > 0).all()


def test_leaving_out_takes_no_more_than_is_there() -> None:
    """The Hessian without a record stays positive, so the loss does."""
    assert (fitted(weighted(2.5)).laws[0].moments[:, 3] > 0).all()


@pytest.mark.parametrize(
    ("spread", "noise", "verdict"), [(0.6, 0.0, "good"), (0.6, 0.5, "caution"), (0.0, 0.05, "good")]
)
def test_unequal_weights_that_keys_do_not_decide_are_a_caution(spread: float, noise: float, verdict: str) -> None:
    sample = weighted(spread, noise=noise)
    assert weights_differ_within_cells(sample.table) == (noise > 0)
    assert (design_effect(sample) >= CHECKED_EFFECT) == (spread > 0)
    (check,) = (one for one in fitted(sample).diagnostics if one.name == "design_effect")
    assert check.verdict == verdict


def test_a_weighted_file_is_not_compared_with_samples_that_are_not_drawn_like_it() -> None:
    """Samples from the law of the population differ from the file although the law may be right."""
    rng = np.random.default_rng(1)
    assert check_size_index(fitted(weighted(0.0)), rng=rng) is not None
    assert check_size_index(fitted(weighted(0.6)), rng=rng) is None


def test_every_record_is_held_against_the_people_of_its_own_weight() -> None:
    sample = weighted(0.6)
    match, chance = fitted(sample).mean_match_all(), inclusion_by_cell(sample)
    assert np.all((match > 0) & (match <= 1 / sample.table.counts))
    np.testing.assert_array_equal(inclusion(sample), chance[sample.table.uniques])
    several = sample.table.counts > 1
    likely = several & (chance > np.median(chance[several]))
    assert match[likely].mean() > match[several & ~likely].mean()
