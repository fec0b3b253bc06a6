"""The compiled pass against sums over the dense table, and each of its steps."""

from itertools import product

import numpy as np
import pytest

from keyhole.arrays import IntVector
from keyhole.models.lancaster import _kernels as kernels
from keyhole.models.lancaster.margins import ROUNDING
from keyhole.models.lancaster.path import shrinkage_grid
from keyhole.models.lancaster.renormaliser import _admission, _tables
from keyhole.population.sample import Sample
from tests.models.lancaster import twins

ORDER = (5, 4, 3, 2, 1, 0)
GRID = shrinkage_grid()
with np.errstate(divide="ignore"):
    THRESHOLD = (ROUNDING - 1.0) / GRID


def walked(sample: Sample, order: int, prefix: IntVector, budget: int = 10**9) -> tuple[IntVector, ...]:
    margins, levels = twins.margins_of(sample, order)
    total, hole = np.zeros(2), np.zeros((len(GRID), 2))
    tables = (*_tables(margins, ORDER), *_admission(sample.zeros, ORDER, levels), THRESHOLD)
    visited = kernels.walk_all(np.atleast_2d(prefix), *tables, budget, total, hole)
    return total, hole, np.array(visited)


def summed(sample: Sample, order: int, prefix: IntVector) -> tuple[IntVector, ...]:
    """The same sums over the dense table, cell by cell."""
    q, S = (values.transpose(ORDER) for values in twins.dense_law(twins.relative_frequencies(sample), order))
    possible = twins.admissible(sample).transpose(ORDER)
    q, S, possible = (values[tuple(prefix)] for values in (q, S, possible))
    total, hole = np.zeros(2), np.zeros((len(GRID), 2))
    for mass, s in zip(q[possible], S[possible], strict=True):
        total += mass, mass * s
        if s <= THRESHOLD[-1]:
            hole[next(g for g in range(len(GRID)) if s <= THRESHOLD[g])] += mass, mass * s
    return total, hole


@pytest.mark.parametrize(("order", "zeros", "weighted"), twins.CASES)
@pytest.mark.parametrize("prefix", [[], [1], [0, 2], [1, 0, 1, 2, 3]], ids=str)
def test_walk_is_the_sum_over_the_cells(order: int, zeros: bool, weighted: bool, prefix: list[int]) -> None:
    sample = twins.sample_for(zeros, weighted)
    start = np.array(prefix, dtype=np.int64)
    total, hole, _ = walked(sample, order, start)
    expected_total, expected_hole = summed(sample, order, start)
    np.testing.assert_allclose(total, expected_total, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hole, expected_hole, rtol=1e-9, atol=1e-12)
    if not prefix:
        assert (hole[:, 0] > 0).sum() > 5
        another = summed(sample, 5 - order, start)[1]
        assert not np.allclose(hole, another, rtol=1e-3)


@pytest.mark.parametrize("order", [2, 3])
def test_walks_share_their_tables(order: int) -> None:
    """Many beginnings in one call, in any order: what one walk leaves behind does not reach the next."""
    sample = twins.sample_for(zeros=True)
    prefixes = np.array(list(product(range(2), range(3), range(4))))[::-1].copy()
    total, hole, visited = walked(sample, order, prefixes)
    whole_total, whole_hole, _ = walked(sample, order, np.empty(0, dtype=np.int64))
    np.testing.assert_allclose(total, whole_total, rtol=1e-12)
    np.testing.assert_allclose(hole, whole_hole, rtol=1e-9, atol=1e-15)
    *_, stopped = walked(sample, order, prefixes, budget=200)
    assert 200 < stopped < 300 < visited


@pytest.mark.parametrize("order", [2, 3])
def test_branches_without_a_negative_cell_are_not_entered(order: int) -> None:
    """Keys that barely depend: almost nothing is visited, and the sums are the same."""
    rng = np.random.default_rng(8)
    codes = np.stack([rng.integers(0, size, 60_000) for size in (9, 6, 5, 4, 3, 2)], axis=1)
    sample = twins.sample_of_codes(codes, 10**6)
    total, hole, visited = walked(sample, order, np.empty(0, dtype=np.int64))
    assert visited < (100 if order == 2 else 5000)
    np.testing.assert_allclose(total, [1.0, 0.0], atol=1e-9)
    assert hole.sum() == summed(sample, order, np.empty(0, dtype=np.int64))[1].sum() == 0.0


def test_the_budget_stops_the_walk() -> None:
    sample = twins.sample_for()
    *_, everything = walked(sample, 2, np.empty(0, dtype=np.int64))
    *_, stopped = walked(sample, 2, np.empty(0, dtype=np.int64), budget=500)
    assert 500 < stopped < 600 < everything


@pytest.mark.parametrize("order", [2, 3])
def test_bounds_hold_and_means_are_exact_below_every_beginning(order: int) -> None:
    sample = twins.sample_for()
    margins, levels = twins.margins_of(sample, order)
    tables = _tables(margins, ORDER)
    sizes, offset, margin, pair_at, triple, triple_at, three_low, three_high, M, low, high = tables
    child, child_at, root = _admission(None, ORDER, levels)
    q, S = (values.transpose(ORDER) for values in twins.dense_law(twins.relative_frequencies(sample), order))
    keys = len(sizes)
    tightest = np.inf
    for prefix in product(*map(range, sizes[:3].tolist())):
        partial, chance, node = np.zeros(keys), np.ones(keys), np.full(keys, root)
        V = np.zeros((keys, offset[-1]))
        for d, x in enumerate(prefix):
            known = partial, chance, node, V, M, low, high
            kernels.choose(sizes, offset, margin, pair_at, triple, triple_at, child, child_at, d, x, *known)
        row = 3 if order == 3 else 0
        least, most = kernels.bounds(sizes, offset, 3, partial[3], V[3], low[row], high[row])
        below, mass = S[prefix], q[prefix]
        assert least + three_low[3] <= below.min() + 1e-9
        assert most + three_high[3] >= below.max() - 1e-9
        tightest = min(tightest, below.min() - least - three_low[3])
        assert chance[3] == pytest.approx(mass.sum(), rel=1e-9)
        mean = kernels.mean_interaction(offset, margin, 3, partial[3], V[3])
        assert mean == pytest.approx((mass * below).sum() / mass.sum(), rel=1e-8, abs=1e-9)
    assert tightest < 12.0


def test_first_without_probability_is_a_search_in_the_grid() -> None:
    for s in (-1.0001, -1.04, -1.06, -2.0001, -7.0, -19.99, -20.01, -400.0):
        g = kernels.first_without(THRESHOLD, s)
        assert 1.0 + GRID[g] * s < 0.0 < 1.0 + GRID[g - 1] * s


@pytest.mark.parametrize("rounding", [-1e-14, 0.0, 1e-14])
def test_a_cell_whose_probability_is_just_zero_has_none(rounding: float) -> None:
    for g in range(1, len(GRID)):
        assert kernels.first_without(THRESHOLD, -1.0 / GRID[g] + rounding) == g
