"""Fitted margins: against proportional fitting of the whole table, a Poisson regression, and R."""

import shutil
import subprocess
from itertools import combinations

import numpy as np
import pytest

from keyhole.arrays import Vector
from keyhole.errors import FitFailed
from keyhole.inference.formula import Generators
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear import acceleration, ipf
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.information import Design
from keyhole.models.loglinear.ipf import Fitted, fit_margins
from keyhole.models.loglinear.passes import Passes
from keyhole.population.sample import Sample
from tests.models.loglinear import twins


def fit(sample: Sample, generators: Generators, **options: object) -> Fitted:
    cells = Cells.of(sample, generators)
    return fit_margins(cells, sample.table.counts, generators, **{"tolerance": 1e-9, **options})  # type: ignore[arg-type]


def on_the_table(fitted: Fitted, sample: Sample) -> Vector:
    """The fitted means on the whole table, 0 where the fit does not go."""
    whole = np.zeros(sample.table.levels)
    cells = fitted.cells
    codes = tuple(levels[codes] for levels, codes in zip(cells.levels, cells.codes, strict=True))
    whole[codes] = fitted.fitted
    return whole


@pytest.mark.parametrize("model", twins.MODELS)
@pytest.mark.parametrize("zeros", [False, True])
def test_the_fit_is_that_of_the_whole_table(model: str, zeros: bool) -> None:
    sample = twins.some_sample(3000, zeros=zeros, strength=3.0)
    found = fit(sample, twins.MODELS[model])
    assert found.converged
    whole = on_the_table(found, sample)
    np.testing.assert_allclose(whole, twins.dense_fit(sample, twins.MODELS[model]), atol=1e-6)
    for generator in twins.MODELS[model]:
        np.testing.assert_allclose(
            twins.margin_of(whole, generator), twins.margin_of(twins.dense(sample), generator), atol=1e-6
        )
    np.testing.assert_array_equal(found.at_occupied, whole[tuple(sample.table.cells.T.astype(np.int64))])
    # Broken on purpose: a margin forgotten is another model, and the comparison must tell.
    if model == "two-way":
        assert np.abs(whole - twins.dense_fit(sample, twins.MODELS[model][1:])).max() > 0.01


def test_empty_margins_are_fitted_as_zero() -> None:
    sample = twins.some_sample(40, strength=0.3)
    generators = twins.MODELS["two-way"]
    found = fit(sample, generators, tolerance=1e-7)
    assert len(found.cells) < sample.table.size
    occupied = tuple(sample.table.cells.T.astype(np.int64))
    slow = twins.dense_fit(sample, generators, passes=300)
    # Plain passes are slow where means vanish; the fit is at least as likely, and near.
    assert sample.table.counts @ np.log(found.at_occupied / slow[occupied]) > -1e-6
    np.testing.assert_allclose(found.at_occupied, slow[occupied], atol=0.1)
    unpruned = Cells.of(sample, generators, prune=False)
    whole = fit_margins(unpruned, sample.table.counts, generators, tolerance=1e-7)
    np.testing.assert_allclose(on_the_table(whole, sample), on_the_table(found, sample), atol=1e-4)


def test_means_that_vanish_without_an_empty_margin() -> None:
    """The 2x2x2 table of Haberman with two empty corners: no margin is empty, no finite estimate exists."""
    counts = np.array([[[0, 3], [2, 5]], [[4, 2], [6, 0]]])
    cells = np.argwhere(counts)
    sample = Sample(twins.ContingencyTable.from_codes(twins.keys_of((2, 2, 2)), cells, counts[counts > 0]), 400)
    found = fit(sample, twins.MODELS["two-way"][:0] + tuple(combinations(range(3), 2)), tolerance=1e-6)
    assert len(found.cells) == 8
    np.testing.assert_allclose(on_the_table(found, sample), counts, atol=1e-4)
    assert found.ending == "converged"


def test_the_effects_multiply_out_to_the_fit() -> None:
    sample = twins.some_sample(300, zeros=True, strength=1.0)
    for name in ("two-way", "mixed"):
        found = fit(sample, twins.MODELS[name])
        codes = found.cells.codes.astype(np.int64)
        log_mean = sum(
            effects[tuple(codes[list(generator)])]
            for generator, effects in zip(found.generators, found.effects, strict=True)
        )
        np.testing.assert_allclose(np.exp(log_mean), found.fitted, rtol=1e-8)


def test_weights_are_counts() -> None:
    sample = twins.some_sample(200, strength=1.5)
    weights = np.random.default_rng(3).uniform(0.5, 4.0, sample.table.occupied)
    generators = twins.MODELS["mixed"]
    cells = Cells.of(sample, generators)
    found = fit_margins(cells, weights, generators, tolerance=1e-9)
    wanted = np.zeros(sample.table.levels)
    wanted[tuple(sample.table.cells.T.astype(np.int64))] = weights
    np.testing.assert_allclose(on_the_table(found, sample), twins.dense_fit(sample, generators, wanted), atol=1e-6)


def test_a_warm_start_ends_where_a_cold_one_does_and_sooner() -> None:
    sample = twins.some_sample(2000, (5, 4, 3, 4, 3), strength=1.5)
    fewer, more = tuple(combinations(range(5), 2)), ((0, 1, 2), *tuple(combinations(range(5), 2))[2:])
    more = tuple(g for g in more if not set(g) < {0, 1, 2})
    cold, first = fit(sample, more), fit(sample, fewer)
    warm = fit(sample, more, start=first)
    np.testing.assert_allclose(on_the_table(warm, sample), on_the_table(cold, sample), atol=1e-6)
    assert fit(sample, more, start=cold).passes <= 3
    assert warm.passes <= cold.passes


def test_convergence_waits_for_the_risk_and_is_reported() -> None:
    sample = twins.some_sample(400, (6, 5, 4, 3), strength=0.5)
    generators = twins.MODELS["two-way"]
    cells = Cells.of(sample, generators)
    uniques, multiplier = sample.table.uniques, 49.0

    def run(**options: float) -> Fitted:
        return fit_margins(
            cells, sample.table.counts, generators, uniques=uniques, multiplier=multiplier, **options
        )  # type: ignore[arg-type]

    loose, strict = run(tolerance=10.0, risk_tolerance=10.0), run(tolerance=10.0, risk_tolerance=1e-9)
    assert strict.passes > loose.passes
    assert strict.risk_change <= 1e-9
    exact = ipf.risk_of(run(tolerance=1e-10).at_occupied[uniques] * multiplier)
    usual = run()
    assert usual.converged
    np.testing.assert_allclose(ipf.risk_of(usual.at_occupied[uniques] * multiplier), exact, rtol=1e-4)
    stopped = run(tolerance=0.0, most_passes=3)
    assert (stopped.passes, stopped.ending) == (3, "pass limit")
    assert not stopped.converged


def test_no_progress_is_said() -> None:
    sample = twins.some_sample(200)
    assert fit(sample, twins.MODELS["two-way"], tolerance=0.0).ending == "no progress"


def test_nothing_to_fit_is_an_error() -> None:
    sample = twins.some_sample(30)
    with pytest.raises(FitFailed, match="needs records and terms"):
        fit(sample, ())


def test_poisson_regression_gives_the_same_means() -> None:
    statsmodels = pytest.importorskip("statsmodels.api")
    sample = twins.some_sample(1500, strength=3.0)
    generators = twins.MODELS["two-way"]
    found = fit(sample, generators)
    assert len(found.cells) == sample.table.size
    cells = np.argwhere(np.ones(sample.table.levels))
    design = twins.design_matrix(cells, sample.table.levels, generators)
    design = design @ np.linalg.svd(design, full_matrices=False)[2][: np.linalg.matrix_rank(design)].T
    response = twins.dense(sample)[tuple(cells.T)]
    peer = statsmodels.GLM(response, design, family=statsmodels.families.Poisson()).fit(tol=1e-12)
    np.testing.assert_allclose(on_the_table(found, sample)[tuple(cells.T)], peer.fittedvalues, atol=1e-6)


def test_loglin_of_r_gives_the_same_means() -> None:
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("R is not on this machine")
    sample = twins.some_sample(400, strength=1.0, zeros=True)
    generators = twins.MODELS["mixed"]
    counts = twins.dense(sample)
    start = np.ones(counts.shape)
    cells = np.argwhere(start)
    assert sample.zeros is not None
    start[tuple(cells[sample.zeros.contains(cells)].T)] = 0.0
    vector = "array(c({}), dim=c({}))"
    dims = ",".join(map(str, counts.shape))
    margins = ",".join(f"c({','.join(str(key + 1) for key in generator)})" for generator in generators)
    observed, begun = (
        vector.format(",".join(map(str, values.ravel(order="F").tolist())), dims) for values in (counts, start)
    )
    code = (
        f"f <- loglin({observed}, list({margins}), start={begun}, "
        "fit=TRUE, eps=1e-10, iter=5000, print=FALSE)$fit;"
        "cat(format(f, digits=15))"
    )
    out = subprocess.run([rscript, "--vanilla", "-e", code], capture_output=True, text=True, check=True).stdout
    theirs = np.array(out.split(), dtype=np.float64).reshape(counts.shape, order="F")
    np.testing.assert_allclose(on_the_table(fit(sample, generators), sample), theirs, atol=1e-6)


@pytest.mark.parametrize("model", ["two-way", "mixed"])
def test_sweeps_are_those_of_plain_arrays(model: str) -> None:
    """Each compiled sweep over the last layer against indexing the spelled-out cells."""
    sample = twins.some_sample(200, zeros=True)
    generators = twins.MODELS[model]
    cells = Cells.of(sample, generators)
    design = Design(cells, generators)
    rng = np.random.default_rng(5)
    layer = cells.layers[-1]
    entries = design.entries_of(np.arange(len(cells)))
    value, above = rng.uniform(0.1, 2.0, len(cells)), rng.uniform(0.1, 2.0, len(layer.branch))
    parent = np.repeat(np.arange(len(layer.branch)), layer.branch)
    deep = design.by_layer[-1]
    first, second = design.margins[deep[0]], design.margins[deep[1 % len(deep)]]
    at, to = entries[:, deep[0]] - design.begins[deep[0]], entries[:, deep[1 % len(deep)]]
    to = to - design.begins[deep[1 % len(deep)]]
    nodes = layer.prefix, layer.branch, layer.own
    factor = rng.uniform(0.5, 2.0, first.entries)

    sums = np.zeros((2, first.entries))
    kernels.sum_margin(*nodes, value, first.rows, first.strides, sums)
    np.testing.assert_allclose(sums.sum(axis=0), np.bincount(at, value, first.entries), rtol=1e-12)

    scaled, sums = value.copy(), np.zeros((2, second.entries))
    kernels.scale_and_sum(*nodes, scaled, first.rows, first.strides, factor, second.rows, second.strides, sums)
    np.testing.assert_allclose(scaled, value * factor[at], rtol=1e-12)
    np.testing.assert_allclose(sums.sum(axis=0), np.bincount(to, scaled, second.entries), rtol=1e-12)

    scaled, totals = value.copy(), np.empty(len(above))
    kernels.scale_and_lift(*nodes, scaled, first.rows, first.strides, factor, totals)
    np.testing.assert_allclose(scaled, value * factor[at], rtol=1e-12)
    np.testing.assert_allclose(totals, np.bincount(parent, scaled), rtol=1e-12)
    kernels.lift(layer.branch, value, totals)
    np.testing.assert_allclose(totals, np.bincount(parent, value), rtol=1e-12)

    expected = value * (above / np.bincount(parent, value))[parent]
    shared, sums = value.copy(), np.zeros((2, first.entries))
    kernels.share_out_and_sum(*nodes, shared, above, first.rows, first.strides, sums)
    np.testing.assert_allclose(shared, expected, rtol=1e-12)
    np.testing.assert_allclose(sums.sum(axis=0), np.bincount(at, expected, first.entries), rtol=1e-12)
    shared = value.copy()
    kernels.share_out(layer.branch, shared, above)
    np.testing.assert_allclose(shared, expected, rtol=1e-12)

    effects = rng.uniform(0.5, 2.0, design.parameters)
    ends, rows, strides, _ = design.flat
    product = np.empty(len(cells))
    kernels.multiply_out(
        *nodes, above, ends[deep.start : deep.stop + 1], rows, strides,
        design.begins[deep.start : deep.stop], effects, product,
    )  # fmt: skip
    np.testing.assert_allclose(product, above[parent] * effects[entries[:, list(deep)]].prod(axis=1), rtol=1e-12)

    sums = np.zeros(design.parameters)
    kernels.sum_margins(*nodes, value, *design.flat_of(deep), sums)
    products, total = np.zeros(design.parameters), above.copy()
    kernels.product_and_sums(*nodes, total, *design.flat_of(deep), effects, products)
    for k in deep:
        part = slice(design.begins[k], design.begins[k + 1])
        at = entries[:, k] - design.begins[k]
        np.testing.assert_allclose(sums[part], np.bincount(at, value, design.margins[k].entries), rtol=1e-12)
        np.testing.assert_allclose(products[part], np.bincount(at, product, design.margins[k].entries), rtol=1e-12)
    np.testing.assert_allclose(total, np.bincount(parent, product), rtol=1e-12)


@pytest.mark.parametrize("model", twins.MODELS)
def test_margins_of_effects_are_those_of_their_products(model: str) -> None:
    sample = twins.some_sample(200, zeros=True)
    design = Design(Cells.of(sample, twins.MODELS[model]), twins.MODELS[model])
    passes = Passes(design, sample.table.counts.astype(np.float64))
    theta = np.random.default_rng(6).normal(size=design.parameters)
    margins, total = passes.margins_at(theta)
    mean = np.exp(theta[design.entries_of(np.arange(len(design.cells)))].sum(axis=1))
    np.testing.assert_allclose(margins, design.margins_of(mean), rtol=1e-12)
    assert total == pytest.approx(mean.sum(), rel=1e-12)


@pytest.mark.parametrize("fewest", [2, 10**6])
def test_steps_from_a_part_of_the_cells_end_at_the_same_fit(monkeypatch: pytest.MonkeyPatch, fewest: int) -> None:
    """Newton steps at once, with a matrix that is exact or from a sample: another way, the same end."""
    sample = twins.some_sample(2000, (6, 5, 4, 3, 4), strength=0.7)
    generators = tuple(combinations(range(5), 2))
    usual = fit(sample, generators, tolerance=1e-8)
    monkeypatch.setattr(acceleration, "MOST_PASSES", 2)
    monkeypatch.setattr(acceleration, "FEWEST_PASSES", 2)
    monkeypatch.setattr(acceleration, "MOST_SUMMED", fewest)
    monkeypatch.setattr(acceleration, "POINTS", 900)
    other = fit(sample, generators, tolerance=1e-8)
    assert usual.converged
    assert other.converged
    np.testing.assert_allclose(other.fitted, usual.fitted, atol=1e-5)
