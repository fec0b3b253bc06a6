"""Populations from an additive law or of independent keys: tau1 and tau2 are found, and wrong laws rejected."""

import numpy as np
import pytest
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.models.lancaster.model import LancasterAdditive
from keyhole.population.multinomial import MultinomialUnsampled
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from tests.models.sequential.people import keys_of, sample_of_codes


def additive_law(keys: int, rng: Generator) -> Vector:
    """Binary keys; S is a sum of products of standard scores of two keys, scaled so that 1 + S is positive."""
    share = rng.uniform(0.4, 0.6, keys)
    score = np.stack([-np.sqrt((1 - share) / share), np.sqrt(share / (1 - share))], axis=1)
    bits = (np.arange(2**keys)[:, None] >> np.arange(keys)[::-1]) & 1
    columns = [score[key][bits[:, key]].astype(np.float32) for key in range(keys)]
    q = np.prod(np.where(bits == 0, share, 1 - share), axis=1)
    S = np.zeros(2**keys)
    for key in range(0, keys - 1):
        S += rng.uniform(-1, 1) * columns[key] * columns[key + 1]
    p = q * (1 - 0.9 * S / S.min())
    assert p.min() > 0
    return np.asarray(p / p.sum())


@pytest.mark.parametrize(("fraction", "keys"), [(0.01, 19), (0.05, 17)])
def test_risk_is_unbiased_where_the_law_is_additive(fraction: float, keys: int) -> None:
    rng = np.random.default_rng(20)
    law = additive_law(keys, rng)
    people = round(1.2 * 2**keys)
    model = LancasterAdditive(shrinkage=1.0)
    found, wrong, truth, variance = np.zeros((4, 2))
    for _ in range(4):
        sampled = rng.multinomial(round(fraction * people), law)
        unsampled = rng.multinomial(people - sampled.sum(), law)
        occupied = np.flatnonzero(sampled)
        cells = (occupied[:, None] >> np.arange(keys)[::-1]) & 1
        sample = Sample(ContingencyTable.from_codes(keys_of((2,) * keys), cells, sampled[occupied]), people)
        fit = model.fit(sample, rng=rng)
        U = unsampled[sampled == 1]
        truth += (U == 0).sum(), (1 / (1 + U)).sum()
        estimate = next(fit.unsampled())
        found += estimate.prob_none().sum(), estimate.mean_match().sum()
        scaled = MultinomialUnsampled(fit.probability, sample.sample_size)
        wrong += scaled.prob_none().sum(), scaled.mean_match().sum()
        draws = np.array([estimate.draw(rng) for _ in range(30)])
        variance += (draws == 0).sum(axis=1).var(ddof=1), (1 / (1 + draws)).sum(axis=1).var(ddof=1)
        assert (truth > 100).all()
    assert (np.abs(found - truth) < 3 * np.sqrt(variance)).all(), (found, truth, np.sqrt(variance))
    assert (np.abs(wrong - truth) > 10 * np.sqrt(variance)).all()


@pytest.mark.parametrize(("levels", "order"), [(30, 2), (9, 3)])
def test_risk_of_independent_keys_is_found_by_the_automatic_choice(levels: int, order: int) -> None:
    """Two keys (three at third order) and most cells empty: the table of relative frequencies is not believed."""
    rng = np.random.default_rng(11)
    found, wrong, truth = [], [], []
    for _ in range(12):
        people = rng.integers(0, levels, (6000, order))
        sample = sample_of_codes(people[:300], 6000, (levels,) * order)
        everyone = ContingencyTable.from_codes(sample.table.keys, people)
        counts = everyone.counts[everyone.find(sample.table.cells[sample.table.uniques])]
        path = (fit := LancasterAdditive(order=order).fit(sample, rng=rng)).shrinkage_path
        truth.append((1 / counts).sum())
        found.append(path.tau2[path.place(fit.shrinkage)])
        wrong.append(path.tau2[-1])
    error = np.subtract(found, truth)
    assert abs(error.mean()) < 4 * error.std(ddof=1) / np.sqrt(len(error))
    assert np.mean(wrong) < 0.7 * np.mean(truth)
