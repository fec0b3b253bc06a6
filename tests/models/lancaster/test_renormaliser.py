"""c(lambda): against the dense table, as a path, in parts, and estimated from sampled cells."""

from dataclasses import replace

import numpy as np
import pytest

from keyhole.models.lancaster import renormaliser as module
from keyhole.models.lancaster.path import shrinkage_grid
from keyhole.models.lancaster.renormaliser import Renormaliser, exact_renormaliser, renormalise
from keyhole.models.lancaster.sampled import sampled_sums
from keyhole.population.sample import Sample
from keyhole.progress import silent
from tests.models.lancaster import twins

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
