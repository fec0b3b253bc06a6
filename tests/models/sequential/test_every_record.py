"""What the sequential logit says of records that are not unique: beside people of whom everything is known."""

from dataclasses import replace

import numpy as np
import pytest

from keyhole.arrays import IntVector, Vector
from keyhole.models.pooled.model import Pooled
from keyhole.models.sequential.model import SequentialLogit, SequentialLogitFit
from keyhole.models.sequential.scatter import Scatter
from keyhole.models.sequential.shift import Shift
from keyhole.numerics.gamma_poisson_match import gamma_poisson_match
from keyhole.population.draw import simple_random_sample
from keyhole.population.negative_binomial import NegativeBinomialUnsampled
from keyhole.table.contingency import ContingencyTable
from tests.models.sequential.people import LEVELS, dependent_people, keys_of, some_sample

PEOPLE, SAMPLED, POPULATIONS = 8_000, 1_500, 4


@pytest.fixture(scope="module")
def known() -> list[tuple[SequentialLogitFit, IntVector]]:
    """Fits to samples of made-up populations, and how many people the sampled cells hold in these."""
    found = []
    for seed in range(1, POPULATIONS + 1):
        rng = np.random.default_rng(seed)
        codes = dependent_people(PEOPLE, rng=rng)
        population = ContingencyTable.from_codes(keys_of(LEVELS), codes)
        sample = simple_random_sample(population, SAMPLED, rng=rng)
        fit = SequentialLogit(orders=1, nested=0, draws=20).fit(sample, rng=rng)
        fit = replace(fit, shift=Shift(0.0, fit.shift.deviation))  # what real tables need, people made up do not
        people = {tuple(cell): int(count) for cell, count in zip(population.cells, population.counts, strict=True)}
        found.append((fit, np.array([people[tuple(cell)] for cell in sample.table.cells])))
    return found


def deviations(known: list[tuple[SequentialLogitFit, IntVector]], matches: list[Vector]) -> float:
    """How far summed matches of cells with several records are from the truth, in deviations that chance makes."""
    off, variance = 0.0, 0.0
    for (fit, people), match in zip(known, matches, strict=True):
        counts = fit.sample.table.counts
        several = counts > 1
        off += float((match - 1.0 / people)[several].sum())
        log_mean, shape = Scatter().around(fit.posterior_of_all, np.full(len(counts), SAMPLED), counts)
        chance = shape / (shape + (PEOPLE - SAMPLED) * np.exp(log_mean))
        law, rng = NegativeBinomialUnsampled(shape, chance), np.random.default_rng(1)
        variance += float(np.var([(1.0 / (counts + law.draw(rng)))[several].sum() for _ in range(400)]))
    return off / float(np.sqrt(variance))


def test_cells_with_several_records_match_as_they_do_in_the_population(
    known: list[tuple[SequentialLogitFit, IntVector]],
) -> None:
    assert abs(deviations(known, [fit.mean_match_all() for fit, _ in known])) < 4


def test_who_takes_them_for_uniques_is_noticed(known: list[tuple[SequentialLogitFit, IntVector]]) -> None:
    """The law of a cell with one record, used for all: it expects too few others beside several."""
    wrong = []
    for fit, _ in known:
        sample = fit.sample
        one = np.ones(sample.table.occupied, dtype=np.int64)
        log_mean, shape = Scatter().around(fit.posterior_of_all, sample.sample_size * one, one)
        wrong.append(gamma_poisson_match(one, shape, sample.unsampled_size * np.exp(log_mean)))
    assert abs(deviations(known, wrong)) > 4


def test_uniques_have_the_risk_that_their_laws_give() -> None:
    fit = SequentialLogit(orders=1, nested=0, draws=20).fit(some_sample(), rng=np.random.default_rng(1))
    match, unique = fit.mean_match_all(), fit.sample.table.uniques
    assert np.all((match > 0) & (match <= 1 / fit.sample.table.counts))
    np.testing.assert_allclose(match[unique], np.mean([law.mean_match() for law in fit.unsampled()], axis=0))


def test_in_a_census_everybody_is_known() -> None:
    sample = replace(some_sample(), population_size=600)
    fit = SequentialLogit(orders=1, nested=0, draws=20).fit(sample, rng=np.random.default_rng(1))
    np.testing.assert_allclose(fit.mean_match_all(), 1 / sample.table.counts)


def test_a_pool_of_one_says_what_its_member_says() -> None:
    fit = Pooled(effort="quick").fit(some_sample(), rng=np.random.default_rng(1))
    member = fit.members[0].fit
    assert isinstance(member, SequentialLogitFit)
    np.testing.assert_array_equal(fit.mean_match_all(), member.mean_match_all())


def test_the_shift_of_cells_is_over_their_records() -> None:
    """Beside the same fit without a shift: cells of two have half of it, whatever their probability."""
    fit = SequentialLogit(orders=1, nested=0, draws=20).fit(some_sample(), rng=np.random.default_rng(1))
    counts, people = fit.sample.table.counts, fit.sample.unsampled_size
    log_mean, shape = Scatter().around(fit.posterior_of_all, np.full(len(counts), 600.0), counts)
    for several in (2, 3):
        inside = counts == several
        half = gamma_poisson_match(
            counts[inside], shape[inside], people * np.exp(log_mean[inside] + fit.shift.mean / several)
        )
        np.testing.assert_allclose(fit.mean_match_all()[inside], half, rtol=1e-9)
    assert abs(fit.shift.mean) > 0.1
