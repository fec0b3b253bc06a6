"""Closed forms of decomposable models, against plain iterative proportional fitting and a parametric bootstrap."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.arrays import IntVector, Vector
from keyhole.inference.formula import Generators, preset
from keyhole.models.loglinear.closed_form import ClosedForm, fit_closed_form, free_parameters
from keyhole.models.loglinear.graph import Decomposition, decomposition, triangulated
from tests.inference.test_formula import FEW, models
from tests.table.brute_force import all_cells


def dense_ipf(counts: Vector, generators: Generators, rounds: int = 1000) -> Vector:
    """Fitted means of every cell, by scaling the whole table to each margin in turn until nothing moves."""
    fitted = np.ones(counts.shape)
    for _ in range(rounds):
        before = fitted
        for keys in generators:
            others = tuple(axis for axis in range(counts.ndim) if axis not in keys)
            now, wanted = fitted.sum(axis=others, keepdims=True), counts.sum(axis=others, keepdims=True)
            fitted = fitted * np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
        if np.allclose(fitted, before, rtol=1e-13, atol=0.0):
            break
    return fitted


def sparse_table(sizes: tuple[int, ...], records: int, rng: np.random.Generator) -> Vector:
    """Counts of records that crowd into some cells, so that margins are zero here and there."""
    share = rng.gamma(0.5, size=sizes).ravel()
    return rng.multinomial(records, share / share.sum()).reshape(sizes).astype(np.float64)


def occupied(counts: Vector) -> tuple[IntVector, Vector]:
    cells = np.argwhere(counts > 0)
    return cells, counts[counts > 0]


def decomposed(generators: Generators) -> Decomposition:
    tree = decomposition(generators)
    assert tree is not None
    return tree


def fit_dense(counts: Vector, generators: Generators) -> ClosedForm:
    return fit_closed_form(decomposed(generators), *occupied(counts), counts.shape)


def fitted(fit: ClosedForm, sizes: tuple[int, ...]) -> Vector:
    return np.exp(fit.log_fitted(all_cells(sizes))).reshape(sizes)


@FEW
@given(models(4), st.data())
def test_any_decomposable_model_is_what_proportional_fitting_finds(
    generators: Generators, data: st.DataObject
) -> None:
    keys = 1 + max(max(g) for g in generators)
    sizes = tuple(data.draw(st.lists(st.integers(1, 4), min_size=keys, max_size=keys)))
    cliques = tuple(sorted(triangulated(generators, sizes).cliques))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    counts = sparse_table(sizes, data.draw(st.integers(1, 60)), rng)
    fit = fit_dense(counts, cliques)
    exact = dense_ipf(counts, cliques)
    np.testing.assert_allclose(fitted(fit, sizes), exact, rtol=1e-9, atol=1e-12)
    assert np.array_equal(np.isneginf(fit.log_fitted(all_cells(sizes))), exact.ravel() == 0)


def test_zero_margins_are_met_and_another_model_is_told_apart() -> None:
    counts = sparse_table((4, 3, 3, 2), 40, np.random.default_rng(1))
    chain: Generators = ((0, 1), (1, 2), (2, 3))
    exact = dense_ipf(counts, chain)
    assert 0 < (exact == 0).sum() < exact.size
    assert (exact > 0).sum() > (counts > 0).sum()
    np.testing.assert_allclose(fitted(fit_dense(counts, chain), counts.shape), exact, rtol=1e-9)
    assert np.abs(fitted(fit_dense(counts, ((0, 1), (1, 3), (2, 3))), counts.shape) - exact).max() > 0.1


def test_independence_and_saturated_models() -> None:
    counts = sparse_table((3, 4, 2), 50, np.random.default_rng(2))
    n = counts.sum()
    a, b, c = (counts.sum(axis=axes) / n for axes in ((1, 2), (0, 2), (0, 1)))
    product = n * a[:, None, None] * b[:, None] * c
    np.testing.assert_allclose(fitted(fit_dense(counts, preset(1, 3)), counts.shape), product, rtol=1e-12)
    np.testing.assert_allclose(fitted(fit_dense(counts, preset(3, 3)), counts.shape), counts, rtol=1e-12)


def test_weights_and_empty_cells() -> None:
    """Weights scale the fit, and cells with no count are as if they were not given."""
    counts = sparse_table((3, 3, 2), 30, np.random.default_rng(3))
    tree = decomposed(((0, 1), (1, 2)))
    cells = all_cells(counts.shape)
    plain = fit_closed_form(tree, *occupied(counts), counts.shape)
    weighted = fit_closed_form(tree, cells, 2.5 * counts.ravel(), counts.shape)
    np.testing.assert_allclose(weighted.log_fitted(cells), plain.log_fitted(cells) + np.log(2.5), rtol=1e-12)
    assert weighted.parameters == plain.parameters


def test_labels_and_the_order_of_keys_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    counts = sparse_table((4, 3, 3, 2), 60, rng)
    here = fitted(fit_dense(counts, ((0, 1), (1, 2), (2, 3))), counts.shape)
    order = [rng.permutation(size) for size in counts.shape]
    relabelled = fitted(fit_dense(counts[np.ix_(*order)], ((0, 1), (1, 2), (2, 3))), counts.shape)
    np.testing.assert_allclose(relabelled, here[np.ix_(*order)], rtol=1e-12)
    turned = counts.transpose(3, 1, 0, 2)  # key 0 is third now, 1 second, 2 last, 3 first
    there = fitted(fit_dense(turned, ((0, 3), (1, 2), (1, 3))), turned.shape)
    np.testing.assert_allclose(there, here.transpose(3, 1, 0, 2), rtol=1e-12)


def design_rank(generators: Generators, cells: IntVector) -> int:
    """The dimension of the model at these cells: the rank of the indicators of all margins."""
    columns = []
    for keys in generators:
        _, row = np.unique(cells[:, keys], axis=0, return_inverse=True)
        columns.append(np.eye(row.max() + 1)[row.ravel()])
    return int(np.linalg.matrix_rank(np.concatenate(columns, axis=1)))


@pytest.mark.parametrize(
    "generators", [((0, 1), (1, 2), (2, 3)), ((0,), (1, 2), (3,)), preset(1, 4), preset(4, 4), ((0, 1, 2), (1, 3))]
)
def test_parameters_are_counted(generators: Generators) -> None:
    sizes = (3, 4, 2, 3)
    cells = all_cells(sizes)
    assert free_parameters(decomposed(generators), sizes) == design_rank(generators, cells)
    counts = sparse_table(sizes, 25, np.random.default_rng(5))
    counts[:, 2] = 0.0
    fit = fit_dense(counts, generators)
    assert fit.parameters == design_rank(generators, cells[fitted(fit, sizes).ravel() > 0])
    levels = [len(np.unique(codes)) for codes in occupied(counts)[0].T]
    assert levels == [3, 3, 2, 3]
    assert fit.parameters < free_parameters(decomposed(generators), sizes)


def delta_covariance(means: Vector, tree: Decomposition) -> Vector:
    r"""The covariance of log m at all cells from that of the cells' Poisson counts, by the delta method.

    log m is a sum of signed logs of margins, and cov(n_A(a), n_B(b)) is the mean of what both have in common.
    """
    cells = all_cells(means.shape)
    slope = np.zeros((len(cells), len(cells)))
    separators = [separator for place, separator in enumerate(tree.separators) if place]
    for sign, sets in ((1.0, tree.cliques), (-1.0, separators)):
        for keys in sets:
            together = (cells[:, None, keys] == cells[None, :, keys]).all(axis=2)
            slope += sign * together / (together @ means.ravel())[:, None]
    return np.asarray((slope * means.ravel()) @ slope.T)


SIZES = (3, 3, 2, 2)
CHAIN: Generators = ((0, 1), (1, 2), (3,))


@pytest.fixture(scope="module")
def plentiful() -> Vector:
    """A table of many records, fitted by the chain: the truth of the bootstrap."""
    share = np.random.default_rng(6).gamma(2.0, size=SIZES)
    return dense_ipf(20_000 * share / share.sum(), CHAIN)


@pytest.fixture(scope="module")
def noise(plentiful: Vector) -> dict[bool, Vector]:
    fit = fit_dense(plentiful, CHAIN)
    cells, rng = all_cells(SIZES), np.random.default_rng(7)
    return {known: fit.log_fitted_noise(cells, 4000, given_total=known, rng=rng) for known in (False, True)}


def bootstrap(means: Vector, draws: int, given_total: bool, rng: np.random.Generator) -> Vector:
    """Errors of log m when tables are drawn from the fit and the chain is fitted again, all tables at once."""
    if given_total:
        tables = rng.multinomial(round(means.sum()), means.ravel() / means.sum(), draws).reshape(draws, *SIZES)
    else:
        tables = rng.poisson(means, (draws, *SIZES))

    def log_margin(*keys: int) -> Vector:
        return np.log(tables.sum(axis=tuple(axis for axis in range(1, 5) if axis - 1 not in keys), keepdims=True))

    again = log_margin(0, 1) + log_margin(1, 2) - log_margin(1) + log_margin(3) - log_margin()
    return np.asarray((again - np.log(means)).reshape(draws, -1))


def covariance_z(draws: Vector, covariance: Vector) -> float:
    """How many standard errors the spread of the draws is off, at most, over many contrasts and single cells."""
    rng = np.random.default_rng(8)
    directions = np.concatenate([np.eye(len(covariance)), rng.standard_normal((60, len(covariance)))])
    exact = np.einsum("da,ab,db->d", directions, covariance, directions)
    z = ((draws @ directions.T).var(axis=0) / exact - 1) / np.sqrt(2 / len(draws))
    return float(np.abs(z).max())


def test_variances_are_those_of_the_delta_method(plentiful: Vector) -> None:
    fit, cells = fit_dense(plentiful, CHAIN), all_cells(SIZES)
    exact = delta_covariance(plentiful, decomposed(CHAIN))
    np.testing.assert_allclose(fit.log_fitted_variance(cells), np.diag(exact), rtol=1e-9)
    known = fit.log_fitted_variance(cells, given_total=True)
    np.testing.assert_allclose(known, np.diag(exact) - 1 / plentiful.sum(), rtol=1e-9)


@pytest.mark.parametrize("given_total", [False, True])
def test_noise_has_the_covariance_of_the_bootstrap(
    plentiful: Vector, noise: dict[bool, Vector], given_total: bool
) -> None:
    exact = delta_covariance(plentiful, decomposed(CHAIN)) - (1 / plentiful.sum() if given_total else 0.0)
    refitted = bootstrap(plentiful, 4000, given_total, np.random.default_rng(9))
    assert covariance_z(noise[given_total], exact) < 4
    assert covariance_z(refitted, exact) < 4
    mean_z = noise[given_total].mean(axis=0) / np.sqrt(np.diag(exact) / 4000)
    assert np.abs(mean_z).max() < 4


class OneAtATime:
    """Stands in for a generator: of all normal numbers that are asked for, one is 1 and the others are 0."""

    def __init__(self, chosen: int) -> None:
        self.chosen, self.asked = chosen, 0

    def standard_normal(self, size: int = 1) -> Vector:
        numbers = (np.arange(self.asked, self.asked + size) == self.chosen).astype(np.float64)
        self.asked += size
        return numbers


def test_noise_is_a_linear_map_with_exactly_the_covariance_of_the_delta_method(plentiful: Vector) -> None:
    fit, cells = fit_dense(plentiful, CHAIN), all_cells(SIZES)
    numbers = 1 + sum(len(factor.totals) for factor in fit.factors)
    rows = [fit.log_fitted_noise(cells, 1, rng=OneAtATime(each)) for each in range(numbers)]  # type: ignore[arg-type]
    linear = np.concatenate(rows)
    exact = delta_covariance(plentiful, decomposed(CHAIN))
    np.testing.assert_allclose(linear.T @ linear, exact, atol=1e-12 * exact.max())
    without_total = linear[1:].T @ linear[1:]
    np.testing.assert_allclose(without_total, exact - 1 / plentiful.sum(), atol=1e-12 * exact.max())


def test_wrong_noise_is_rejected(plentiful: Vector, noise: dict[bool, Vector]) -> None:
    """Cells that err on their own, margins that err without regard to their separators, a total left out."""
    exact = delta_covariance(plentiful, decomposed(CHAIN))
    rng = np.random.default_rng(10)
    alone = rng.standard_normal((4000, len(exact))) * np.sqrt(np.diag(exact))
    assert covariance_z(alone, exact) > 6
    cells, careless = all_cells(SIZES), np.zeros_like(alone)
    for keys in CHAIN:
        _, row = np.unique(cells[:, keys], axis=0, return_inverse=True)
        totals = np.bincount(row.ravel(), plentiful.ravel())
        careless += (rng.standard_normal((4000, len(totals))) / np.sqrt(totals))[:, row.ravel()]
    assert covariance_z(careless, exact) > 6
    assert covariance_z(noise[True], exact) > 6


def test_noise_leaves_zeros_alone_and_repeats_with_its_seed() -> None:
    counts = sparse_table(SIZES, 12, np.random.default_rng(11))
    fit, cells = fit_dense(counts, CHAIN), all_cells(SIZES)
    zero = np.isneginf(fit.log_fitted(cells))
    draws, again = (fit.log_fitted_noise(cells, 3, rng=np.random.default_rng(1)) for _ in range(2))
    assert zero.any()
    assert not draws[:, zero].any()
    assert (draws[:, ~zero] != 0).all()
    assert not fit.log_fitted_variance(cells)[zero].any()
    assert (fit.log_fitted_variance(cells)[~zero] > 0).all()
    np.testing.assert_array_equal(draws, again)


def test_a_table_of_any_size_costs_what_its_records_cost() -> None:
    keys, records = 15, 10_000
    rng = np.random.default_rng(12)
    cells = np.unique(rng.binomial(9, rng.random((records, 1)), (records, keys)), axis=0)
    counts = np.ones(len(cells))
    chain = tuple((key, key + 1) for key in range(keys - 1))
    start = time.perf_counter()
    fit = fit_closed_form(decomposed(chain), cells, counts, (10,) * keys)
    log_m = fit.log_fitted(cells)
    noise = fit.log_fitted_noise(cells, 5, rng=rng)
    assert time.perf_counter() - start < 10
    assert np.isfinite(log_m).all()
    assert noise.shape == (5, len(cells))
    # The cells of 25 such keys do not fit one word.
    saturated = fit_closed_form(decomposed(preset(25, 25)), np.tile(cells, 2)[:, :25], counts, (10,) * 25)
    assert np.abs(saturated.log_fitted(np.tile(cells, 2)[:50, :25])).max() < 1e-9
    assert np.isneginf(saturated.log_fitted(np.full((1, 25), 9) - np.arange(25) % 2)).all()
