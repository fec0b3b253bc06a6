"""Cells summed over: numbers by count and x, beside the cells themselves; and moves of pairs of clusters."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from keyhole.arrays import IntVector, Vector
from keyhole.models.mixed_loglinear.base_measure import BaseMeasure
from keyhole.models.mixed_loglinear.summed_cells import SummedCells

EFFECT, WEIGHT = np.array([-3.0, 0.2, 1.9]), np.array([0.5, 0.3, 0.15])


def log_likelihood(counts: Vector, x: Vector, cells: Vector, effect: Vector, weight: Vector) -> float:
    terms = np.log(weight) + np.outer(counts, effect) - np.outer(x, np.exp(effect))
    return float(cells @ logsumexp(terms, axis=1))


def some_cells(number: int, rng: np.random.Generator) -> tuple[IntVector, Vector]:
    x = np.exp(rng.normal(-2.0, 1.5, number))
    return rng.poisson(x * np.exp(rng.choice(EFFECT, number))), x


def test_numbers_by_count_and_x_have_the_likelihood_of_the_cells() -> None:
    rng = np.random.default_rng(1)
    counts, x = some_cells(50_000, rng)
    x[:100], counts[:100] = 0.0, 0
    z = rng.integers(0, 5, len(x)).astype(np.int32)
    summed = SummedCells.of(counts, x, z, 3)
    seen = (z < 3) & (x > 0.0)
    assert summed.cells.sum() == pytest.approx(seen.sum())
    assert len(summed.cells) < 0.1 * len(x)
    for apart in (0.0, 0.4):
        effect = EFFECT + apart * np.array([1.0, -1.0, 0.5])
        exact = log_likelihood(counts[seen], x[seen], np.ones(seen.sum()), effect, WEIGHT)
        found = log_likelihood(summed.people, summed.x, summed.cells, effect, WEIGHT)
        assert found == pytest.approx(exact, abs=0.01)


def test_cells_that_are_alike_are_counted() -> None:
    counts = np.array([0, 0, 3, 200, 0, 3])
    summed = SummedCells.of(counts, np.full(6, 0.05), np.array([0, 0, 0, 1, 1, 2], dtype=np.int32), 2)
    assert summed.people.tolist() == [0.0, 3.0, 200.0]
    assert summed.cells.tolist() == [3.0, 1.0, 1.0]


def test_two_clusters_without_cells_have_the_law_of_the_base() -> None:
    """What stays is their weight and their part in the mean; what moves has the density of the base alone."""
    base = BaseMeasure("normal", 0.3, 0.5)
    nothing = SummedCells(np.zeros(1), np.ones(1), np.zeros(1))
    effect, weight = np.array([0.1, 0.6]), np.array([0.3, 0.5])
    mean = np.log(weight @ np.exp(effect) / weight.sum())
    rng = np.random.default_rng(2)
    apart, odds = [], []
    for _ in range(3_000):
        effect, weight = nothing.moved(effect, weight, 0.05, base, rng)
        apart.append(effect[0] - effect[1])
        odds.append(np.log(weight[0] / weight[1]))
    assert weight.sum() == pytest.approx(0.8)
    assert np.log(weight @ np.exp(effect) / weight.sum()) == pytest.approx(mean)
    # The same law by weighing: log odds within what the least weight allows, distances from far and wide.
    widest = np.log(0.75 / 0.05)
    rho, delta = rng.uniform(-widest, widest, 200_000), rng.uniform(-8.0, 8.0, 200_000)
    u = 1.0 / (1.0 + np.exp(-rho))
    first = mean - np.log(u + (1.0 - u) * np.exp(-delta))
    chance = np.exp(base.at(first)[0] + base.at(first - delta)[0])
    picked = rng.choice(len(rho), 3_000, p=chance / chance.sum())
    assert stats.ks_2samp(np.abs(apart), np.abs(delta[picked])).pvalue > 1e-3
    assert stats.ks_2samp(odds, rho[picked]).pvalue > 1e-3
    wrong = rng.choice(len(rho), 3_000)
    assert stats.ks_2samp(np.abs(apart), np.abs(delta[wrong])).pvalue < 1e-6
