"""c(lambda): against the dense table, as a path, in parts, and estimated from sampled cells."""

import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import poisson

from keyhole.arrays import Vector
from keyhole.models.lancaster import renormaliser as module
from keyhole.models.lancaster.path import shrinkage_grid
from keyhole.models.lancaster.renormaliser import Renormaliser, exact_renormaliser, renormalise
from keyhole.models.lancaster.sampled import sampled_size_index, sampled_sums
from keyhole.population.sample import Sample
from keyhole.progress import silent
from tests.models.lancaster import twins
from tests.models.sequential.people import sample_of_codes

GRID = shrinkage_grid(0.33)


def exact(sample: Sample, order: int = 2) -> Renormaliser:
    margins, levels = twins.margins_of(sample, order)
    found = exact_renormaliser(margins, levels, sample.zeros, GRID, budget=10**9, progress=silent)
    assert found is not None
    return found


@pytest.mark.parametrize(("order", "zeros", "weighted"), twins.CASES)
def test_c_is_the_sum_over_the_dense_table(order: int, zeros: bool, weighted: bool) -> None:
    sample = twins.sample_for(zeros, weighted)
    found = exact(sample, order)
    expected = np.array([twins.renormaliser(sample, order, shrinkage) for shrinkage in GRID])
    np.testing.assert_allclose(found.value, expected[:, 0], rtol=1e-10)
    np.testing.assert_allclose(found.negative, expected[:, 1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.hole, expected[:, 2], rtol=1e-9, atol=1e-12)
    assert found.exact
    assert found.value[-1] > 1.01
    if zeros:
        # Forgetting the zeros must be told apart.
        assert not np.allclose(exact(replace(sample, zeros=None), order).value, expected[:, 0], rtol=1e-2)


@pytest.mark.parametrize(("levels", "order"), [((30, 30), 2), ((8, 8, 8), 3)], ids=["two keys", "three keys"])
def test_cells_where_p_is_just_zero_are_in_the_hole(levels: tuple[int, ...], order: int) -> None:
    """With every key in the one interaction the law in full is the table itself: its empty cells are the hole."""
    sample = twins.independent_sample(levels)
    table = twins.relative_frequencies(sample)
    q, _ = twins.dense_law(table, order)
    found = exact(sample, order)
    empty = q[table == 0].sum()
    assert empty > 0.4
    assert found.hole[-1] == pytest.approx(empty, rel=1e-9)
    assert found.hole[-2] == 0.0
    assert found.value[-1] == pytest.approx(1.0, rel=1e-12)
    margins, codes = twins.margins_of(sample, order)
    rng = np.random.default_rng(1)
    sampled = sampled_sums(margins, codes, None, GRID, rng=rng, cells=40_000)
    assert sampled.hole[-1] == pytest.approx(empty, abs=0.02)


def test_small_tables_of_every_kind_are_summed_exactly() -> None:
    """c and the hole of random tables, most with pairs that nobody has."""
    rng = np.random.default_rng(4)
    just_zero = 0
    for _ in range(30):
        levels = tuple(rng.integers(1, 5, rng.integers(2, 5)).tolist())
        codes = np.stack([rng.choice(size, 25, p=rng.dirichlet(np.ones(size))) for size in levels], axis=1)
        codes[:, 1] = np.where(rng.random(25) < 0.6, codes[:, 0] % levels[1], codes[:, 1])
        weights = 1.0 + 3.0 * codes[:, 0] if rng.random() < 0.5 else None
        sample = sample_of_codes(codes, 1000, levels, weights=weights)
        order = int(rng.integers(2, 4))
        found = exact(sample, order)
        expected = np.array([twins.renormaliser(sample, order, shrinkage) for shrinkage in GRID])
        np.testing.assert_allclose(found.value, expected[:, 0], rtol=1e-10)
        np.testing.assert_allclose(found.hole, expected[:, 2], rtol=1e-9, atol=1e-12)
        _, S = twins.dense_law(twins.relative_frequencies(sample), order)
        just_zero += bool((np.abs(1.0 + S) < 1e-10).any())
    assert just_zero > 8


@pytest.mark.parametrize("order", [2, 3])
def test_the_law_sums_to_one_and_keeps_its_margins_before_clipping(order: int) -> None:
    table = twins.relative_frequencies(twins.sample_for())
    q, S = twins.dense_law(table, order)
    for shrinkage in (0.0, 0.3, 1.0):
        assert (q * (1.0 + shrinkage * S)).sum() == pytest.approx(1.0, rel=1e-12)
    whole = q * (1.0 + S)
    np.testing.assert_allclose(twins.margin(whole, (0, 2)), twins.margin(table, (0, 2)), atol=1e-14)
    kept = np.allclose(twins.margin(whole, (0, 1, 2)), twins.margin(table, (0, 1, 2)), atol=1e-14)
    assert kept == (order == 3)


def test_without_negative_cells_c_is_one() -> None:
    found = exact(twins.sample_for())
    assert found.value[0] == 1.0
    assert found.negative[0] == found.hole[0] == 0.0
    assert (np.diff(found.value) >= 0).all()


def test_parts_of_a_large_table_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = twins.sample_for(zeros=True)
    whole = exact(sample)
    told: list[tuple[int, int | None]] = []
    margins, levels = twins.margins_of(sample)
    monkeypatch.setattr(module, "SMALL", 10)

    def tell(task: str, done: int, total: int | None = None, note: str = "") -> None:
        told.append((done, total))

    parts = exact_renormaliser(margins, levels, sample.zeros, GRID, budget=10**9, progress=tell)
    assert parts is not None
    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-12)
    assert told[0] == (0, 120)
    assert told[-1] == (120, 120)


def test_parts_cost_no_more_than_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two keys of many levels: the tables are prepared once and progress is told about a hundred times."""
    levels, rng = 1100, np.random.default_rng(3)
    codes = np.stack([np.arange(3 * levels) % levels, rng.permutation(3 * levels) % levels], axis=1)
    sample = sample_of_codes(codes, 60_000, (levels, levels))
    margins, own = twins.margins_of(sample)
    q, S = twins.dense_law(twins.relative_frequencies(sample), 2)
    empty = q[np.abs(1.0 + S) < 1e-10].sum()
    told: list[int] = []
    seconds: list[float] = []

    def tell(task: str, done: int, total: int | None = None, note: str = "") -> None:
        told.append(done)

    for small, parts, beginnings in ((10**9, 1, 1), (1, module.PARTS, levels), (10**9, 1, 1)):
        monkeypatch.setattr(module, "SMALL", small)
        told.clear()
        started = time.process_time()
        found = exact_renormaliser(margins, own, None, GRID, budget=10**9, progress=tell)
        seconds.append(time.process_time() - started)
        assert found is not None
        assert found.value[-1] == pytest.approx(1.0, rel=1e-9)
        assert found.hole[-1] == pytest.approx(empty, rel=1e-9)
        assert (len(told), told[-1]) == (parts + 1, beginnings)
    # The first is for the compiler. Preparing the tables for every beginning costs over a hundred times as much.
    assert seconds[1] < 20 * seconds[2]


@pytest.mark.parametrize("budget", [1, 3000])
def test_beyond_the_budget_cells_are_sampled(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given up before the pass, and within it."""
    monkeypatch.setattr(module, "CELLS", 5000)
    sample = twins.sample_for()
    margins, levels = twins.margins_of(sample)
    rng = np.random.default_rng(1)
    found = renormalise(margins, levels, None, GRID, budget=budget, rng=rng, progress=silent)
    assert not found.exact
    assert found.error[-1] > 0


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("zeros", [False, True])
def test_sampled_sums_are_within_their_errors(order: int, zeros: bool) -> None:
    sample = twins.sample_for(zeros)
    margins, levels = twins.margins_of(sample, order)
    truth = exact(sample, order)
    rng = np.random.default_rng(2)
    found = sampled_sums(margins, levels, sample.zeros, GRID, rng=rng, cells=40_000)
    some = truth.negative < -1e-6
    z = (found.positive - truth.value) / found.positive_error
    assert np.abs(z).max() < 4
    assert np.abs((found.negative - truth.negative)[some] / found.negative_error[some]).max() < 4
    np.testing.assert_allclose(found.hole[some], truth.hole[some], rtol=0.3, atol=0.01)
    # A c that is wrong by a tenth is rejected.
    assert np.abs(found.positive - 1.1 * truth.value)[-1] > 4 * found.positive_error[-1]


@pytest.mark.parametrize(("order", "zeros"), [(2, False), (2, True), (3, False)])
def test_cells_of_other_samples_are_those_of_the_dense_law(order: int, zeros: bool) -> None:
    sample = twins.sample_for(zeros)
    margins, levels = twins.margins_of(sample, order)
    q, S = twins.dense_law(twins.relative_frequencies(sample), order)
    law = np.maximum(q * (1 + 0.5 * S), 0.0)
    if zeros:
        assert sample.zeros is not None
        every = np.argwhere(np.ones(law.shape))
        codes = np.stack([own[column] for own, column in zip(levels, every.T, strict=True)], axis=1)
        law[sample.zeros.contains(codes).reshape(law.shape)] = 0.0
    c = float(law.sum())
    expected = poisson.pmf(np.arange(1, 4)[:, None], 2000 * law.ravel() / c).sum(axis=1)

    def sampled(shrinkage: float, seed: int) -> Vector:
        of, rng = (margins, levels, sample.zeros, shrinkage, c, 2000, 3), np.random.default_rng(seed)
        return sampled_size_index(*of, cells=20_000, rng=rng)

    found = np.array([sampled(0.5, seed) for seed in range(8)])
    error = found.std(axis=0, ddof=1) / np.sqrt(8)
    assert (error < 0.03 * expected).all()
    assert np.abs((found.mean(axis=0) - expected) / error).max() < 5
    assert np.abs((sampled(0.0, 9) - expected) / error).max() > 10


def test_errors_of_sampled_sums_are_their_spread() -> None:
    sample = twins.sample_for()
    margins, levels = twins.margins_of(sample)
    runs = [
        sampled_sums(margins, levels, None, GRID, rng=np.random.default_rng(seed), cells=2000)
        for seed in range(60)
    ]
    spread = np.std([run.negative[-1] for run in runs], ddof=1)
    told = np.sqrt(np.mean([run.negative_error[-1] ** 2 for run in runs]))
    assert 0.7 < spread / told < 1.35
    centre = np.mean([run.negative[-1] for run in runs])
    assert abs(centre - exact(sample).negative[-1]) < 4 * told / np.sqrt(len(runs))
