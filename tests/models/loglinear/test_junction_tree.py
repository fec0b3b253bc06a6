"""Fits on a junction tree, against plain iterative proportional fitting of the whole table."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.arrays import Vector
from keyhole.inference.formula import Generators, maximal, preset
from keyhole.models.loglinear.closed_form import fit_closed_form
from keyhole.models.loglinear.graph import decomposition
from keyhole.models.loglinear.junction_tree import TreeFit, fit_tree, tree_entries
from tests.inference.test_formula import FEW, models
from tests.models.loglinear.test_closed_form import decomposed, dense_ipf, occupied, sparse_table
from tests.table.brute_force import all_cells


def cycle_of(keys: int) -> Generators:
    return maximal([(key, (key + 1) % keys) for key in range(keys)])


def fit_dense(counts: Vector, generators: Generators, tolerance: float = 1e-10) -> TreeFit:
    return fit_tree(generators, *occupied(counts), counts.shape, tolerance=tolerance, most_iterations=3000)


def fitted(fit: TreeFit, sizes: tuple[int, ...]) -> Vector:
    return np.exp(fit.log_fitted(all_cells(sizes))).reshape(sizes)


NOT_DECOMPOSABLE: list[Generators] = [
    cycle_of(4),
    cycle_of(5),
    preset(2, 4),
    ((0, 1, 2), (0, 1, 3), (2, 3)),
    ((0, 1), (0, 2), (1, 2), (3, 4)),
    ((0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4)),
]


@pytest.mark.parametrize("generators", NOT_DECOMPOSABLE)
@pytest.mark.parametrize("smallest", [0.5, 0.0])
def test_it_is_what_proportional_fitting_finds(generators: Generators, smallest: float) -> None:
    """Tables without zeros, and tables with zero margins."""
    assert decomposition(generators) is None
    keys = 1 + max(max(g) for g in generators)
    sizes = (3, 2, 4, 2, 3)[:keys]
    counts = sparse_table(sizes, 200, np.random.default_rng(1)) + smallest
    if not smallest:
        counts[0, 1] = 0.0
    fit = fit_dense(counts, generators)
    exact = dense_ipf(counts, generators)
    assert fit.converged
    assert fit.margin_error <= 1e-10
    np.testing.assert_allclose(fitted(fit, sizes), exact, rtol=1e-6, atol=1e-7)
    if not smallest:
        zero = np.isneginf(fit.log_fitted(all_cells(sizes))).reshape(sizes)
        assert zero[0, 1].all()
        assert 0 < zero.sum() < zero.size
    other = dense_ipf(counts, generators[1:])
    assert np.abs(fitted(fit, sizes) - other).max() > 1e-2


@FEW
@given(models(5), st.data())
def test_random_models(generators: Generators, data: st.DataObject) -> None:
    keys = 1 + max(max(g) for g in generators)
    sizes = tuple(data.draw(st.lists(st.integers(1, 3), min_size=keys, max_size=keys)))
    counts = np.random.default_rng(data.draw(st.integers(0, 1000))).gamma(1.0, size=sizes) + 0.1
    fit = fit_dense(counts, generators)
    assert fit.converged
    np.testing.assert_allclose(fitted(fit, sizes), dense_ipf(counts, generators), rtol=1e-7)
    for clique in fit.tree.cliques:
        others = tuple(axis for axis in range(keys) if axis not in clique)
        np.testing.assert_allclose(fit.expected(clique), fitted(fit, sizes).sum(axis=others), rtol=1e-9)


def test_decomposable_models_need_one_round_and_agree_with_the_closed_form() -> None:
    counts = sparse_table((4, 3, 3, 2), 60, np.random.default_rng(2))
    cells = all_cells(counts.shape)
    for generators in (((0, 1), (1, 2), (2, 3)), preset(1, 4), preset(4, 4), ((0, 1), (2, 3))):
        fit = fit_dense(counts, generators)
        closed = fit_closed_form(decomposed(generators), *occupied(counts), counts.shape)
        np.testing.assert_allclose(fit.log_fitted(cells), closed.log_fitted(cells), rtol=1e-9, atol=1e-9)
        assert fit.iterations == 2  # the second one finds nothing left to do


def test_a_cycle_of_thirteen_keys() -> None:
    """1.2e9 cells: the fit holds eleven triangles of 125 numbers."""
    keys, size, records = 13, 5, 10_000
    cycle = cycle_of(keys)
    assert tree_entries(cycle, (size,) * keys) == 11 * 125
    rng = np.random.default_rng(3)
    codes = np.zeros((records, keys), dtype=np.int64)
    codes[:, 0] = rng.integers(0, size, records)
    for key in range(1, keys):
        same = rng.random(records) < (0.6 if key < keys - 1 else 0.3)
        codes[:, key] = np.where(same, codes[:, key - 1], rng.integers(0, size, records))
    codes[:, -1] = np.where(rng.random(records) < 0.5, codes[:, 0], codes[:, -1])
    start = time.perf_counter()
    fit = fit_tree(cycle, codes, np.ones(records), (size,) * keys)
    assert time.perf_counter() - start < 5
    assert fit.converged
    for keys_of_margin in cycle:
        margin = np.zeros((size, size))
        np.add.at(margin, tuple(codes[:, key] for key in keys_of_margin), 1.0)
        np.testing.assert_allclose(fit.expected(keys_of_margin), margin, rtol=1e-7)
        np.testing.assert_allclose(fit.expected(keys_of_margin[::-1]), margin.T, rtol=1e-7)
    assert np.isfinite(fit.log_fitted(codes)).all()
    # The chain without its last link is another model: it lacks that margin.
    chain = fit_tree(maximal([*cycle[:1], *cycle[2:]]), codes, np.ones(records), (size,) * keys)
    assert np.abs(chain.log_fitted(codes) - fit.log_fitted(codes)).max() > 0.1


def test_labels_and_the_order_of_keys_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    counts = sparse_table((4, 3, 3, 2), 120, rng) + 0.2
    here = fitted(fit_dense(counts, cycle_of(4)), counts.shape)
    order = [rng.permutation(size) for size in counts.shape]
    relabelled = fitted(fit_dense(counts[np.ix_(*order)], cycle_of(4)), counts.shape)
    np.testing.assert_allclose(relabelled, here[np.ix_(*order)], rtol=1e-8)
    turned = counts.transpose(1, 2, 3, 0)
    there = fitted(fit_dense(turned, cycle_of(4)), turned.shape)
    np.testing.assert_allclose(there, here.transpose(1, 2, 3, 0), rtol=1e-8)


def test_a_fit_that_does_not_end_says_so() -> None:
    """All two-way margins are positive, but the estimate is on the edge: two opposite corners are empty."""
    counts = np.array([[[0.0, 3.0], [4.0, 2.0]], [[5.0, 2.0], [1.0, 0.0]]])
    assert all((counts.sum(axis=axis) > 0).all() for axis in range(3))
    fit = fit_tree(preset(2, 3), *occupied(counts), counts.shape, most_iterations=20)
    assert not fit.converged
    assert fit.iterations == 20
    assert fit.margin_error > 1e-8
    exact = dense_ipf(counts, preset(2, 3), 20)
    np.testing.assert_allclose(fitted(fit, counts.shape), exact, rtol=1e-9)


def test_margins_across_cliques_are_refused() -> None:
    fit = fit_dense(sparse_table((3, 2, 2), 30, np.random.default_rng(5)), ((0, 1), (1, 2)))
    with pytest.raises(ValueError, match="No clique"):
        fit.expected((0, 2))
    assert fit.expected(()) == pytest.approx(30.0)


def test_many_cells_of_tiny_means_do_not_underflow() -> None:
    """Forty keys of ten levels: a mean of 1e-36 has a log, and the total stays the number of records."""
    keys = 40
    codes = np.random.default_rng(6).integers(0, 10, (500, keys))
    fit = fit_tree(preset(1, keys), codes, np.ones(500), (10,) * keys)
    shares = sum(np.log(np.bincount(codes[:, key], minlength=10)[codes[:, key]] / 500) for key in range(keys))
    np.testing.assert_allclose(fit.log_fitted(codes), np.log(500) + shares, rtol=1e-9)
    assert fit.log_fitted(codes).max() < -70
