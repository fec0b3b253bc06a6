"""The penalised two-way model against a general optimiser, its limits, its cells and the choice of its penalty."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import optimize, special

from keyhole.errors import FitFailed
from keyhole.inference.formula import preset
from keyhole.keys.variable import KeyVariable
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.drawn_cells import draw_cells
from keyhole.models.loglinear.information import Design
from keyhole.models.loglinear.ipf import fit_margins
from keyhole.models.loglinear.lasso import divide, fit_lasso, occurring_cells
from keyhole.models.loglinear.lasso_path import Approximation, Tried, choose
from keyhole.models.loglinear.penalised import PenalisedFitting, fit_penalised
from keyhole.models.loglinear.penalised_fit import penalised_design
from keyhole.models.loglinear.thresholds import extrapolated, thresholded, violations
from keyhole.population.sample import Sample
from keyhole.population.weights import pseudo_counts
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
from tests.models.loglinear.twins import some_sample as larger_sample

SIZES = (3, 4, 2, 3)


def some_sample(size: int = 120, strength: float = 0.8, seed: int = 1, rules: str | None = None) -> Sample:
    rng = np.random.default_rng(seed)
    logit = np.zeros(SIZES)
    for order, scale in ((1, 0.5), (2, strength)):
        for keys in combinations(range(len(SIZES)), order):
            logit = logit + scale * rng.standard_normal([SIZES[j] if j in keys else 1 for j in range(len(SIZES))])
    keys = tuple(KeyVariable(f"K{j}", tuple(f"l{x}" for x in range(L))) for j, L in enumerate(SIZES))
    zeros = None if rules is None else StructuralZeros(keys, parse_zero_rules(rules))
    codes = np.array([*product(*map(range, SIZES))])
    weight = np.exp(logit).ravel() * (1.0 if zeros is None else ~zeros.contains(codes))
    counts = rng.poisson(size * weight / weight.sum())
    table = ContingencyTable.from_codes(keys, codes[counts > 0], counts[counts > 0].astype(np.int64))
    return Sample(table, 20 * table.records, zeros)


def by_general_optimiser(sample: Sample, penalty: float) -> np.ndarray:
    """Means of all admissible cells, from coefficients split into their positive and negative parts."""
    codes = np.array([*product(*map(range, SIZES))])
    if sample.zeros is not None:
        codes = codes[~sample.zeros.contains(codes)]
    counts = np.zeros(len(codes))
    place = {tuple(row): i for i, row in enumerate(codes.tolist())}
    for row, f in zip(sample.table.cells.tolist(), sample.table.counts, strict=True):
        counts[place[tuple(row)]] = f
    mains = [(codes[:, [j]] == range(L)).astype(float) for j, L in enumerate(SIZES)]
    pairs = [
        (mains[i][:, :, None] * mains[j][:, None, :]).reshape(len(codes), -1)
        for i, j in combinations(range(len(SIZES)), 2)
    ]
    X, Z = np.hstack(mains), np.hstack(pairs)
    design = np.hstack([X, Z, -Z])
    price = np.concatenate([np.zeros(X.shape[1]), np.full(2 * Z.shape[1], penalty)])

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        mean = np.exp(design @ theta)
        return mean.sum() - counts @ (design @ theta) + price @ theta, design.T @ (mean - counts) + price

    bounds = [(None, None)] * X.shape[1] + [(0, None)] * (2 * Z.shape[1])
    found = optimize.minimize(
        loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    return np.asarray(np.exp(design @ found.x))


def in_table_order(cells: Cells, fitted: np.ndarray) -> np.ndarray:
    return fitted[np.lexsort(cells.codes[::-1])]


RULES = "- {K0: l0, K1: [l1, l2]}\n- {K2: l1, K3: l2}"


@pytest.mark.parametrize(("penalty", "rules"), [(0.5, None), (3.0, None), (1.0, RULES)])
def test_is_the_maximum_that_a_general_optimiser_finds(penalty: float, rules: str | None) -> None:
    sample = some_sample(rules=rules)
    fit = fit_penalised(penalised_design(sample), sample.table.counts, penalty, tolerance=1e-7)
    assert fit.converged
    exact = by_general_optimiser(sample, penalty)
    np.testing.assert_allclose(in_table_order(fit.cells, fit.fitted), exact, atol=1e-5 * exact.max())
    other = fit_penalised(penalised_design(sample), sample.table.counts, 1.05 * penalty, tolerance=1e-7)
    assert np.abs(in_table_order(other.cells, other.fitted) - exact).max() > 1e-5 * exact.max()


def test_step_against_a_search() -> None:
    rng = np.random.default_rng(2)
    for n, m, u in zip(
        rng.poisson(3.0, 30), rng.gamma(2.0, 1.5, 30), rng.choice([-0.5, 0.0, 0.7], 30), strict=True
    ):

        def loss(v: float, n: float = n, m: float = m, u: float = u) -> float:
            return m * (np.exp(v - u) - 1) - n * (v - u) + 1.3 * abs(v)

        best = optimize.minimize_scalar(loss, bounds=(-8, 8), method="bounded", options={"xatol": 1e-9})
        found = thresholded(np.array([float(n)]), np.array([m]), np.array([u]), 1.3)[0]
        assert loss(found) <= best.fun + 1e-9


def test_small_penalty_is_proportional_fitting() -> None:
    sample = some_sample(2000, 0.4)
    terms = preset(2, len(SIZES))
    exact = fit_margins(Cells.of(sample, terms), sample.table.counts, terms, tolerance=1e-10)
    fit = fit_penalised(penalised_design(sample), sample.table.counts, 1e-7, tolerance=1e-8)
    at = fit.fitted[fit.cells.occupied]
    np.testing.assert_allclose(at, exact.fitted[exact.cells.occupied], rtol=1e-5)
    loose = fit_penalised(penalised_design(sample), sample.table.counts, 1.0, tolerance=1e-8)
    assert np.abs(loose.fitted[loose.cells.occupied] / exact.fitted[exact.cells.occupied] - 1).max() > 0.01


def test_largest_penalty_is_independence() -> None:
    sample = some_sample()
    room = PenalisedFitting(penalised_design(sample))
    top = room.largest_penalty(sample.table.counts)
    fit = room.fit(sample.table.counts, top * 1.0001, tolerance=1e-8)
    terms = preset(1, len(SIZES))
    exact = fit_margins(Cells.of(sample, terms), sample.table.counts, terms)
    assert fit.pairs == ()
    np.testing.assert_allclose(in_table_order(fit.cells, fit.fitted), in_table_order(exact.cells, exact.fitted))
    assert room.fit(sample.table.counts, top * 0.99, tolerance=1e-8).pairs != ()


def test_zeros_stay_zeros_and_other_cells_stay_possible() -> None:
    sample = some_sample(rules=RULES)
    fit = fit_penalised(penalised_design(sample), sample.table.counts, 0.5)
    assert sample.zeros is not None
    assert not sample.zeros.contains(fit.cells.codes.T.astype(np.int64)).any()
    assert len(fit.cells) == sample.zeros.admissible_cells
    assert (fit.fitted > 0).all()
    assert fit.fitted.sum() == pytest.approx(sample.sample_size, rel=1e-3)


def test_conditions_are_checked() -> None:
    sample = some_sample()
    design = penalised_design(sample)
    hurried = fit_penalised(design, sample.table.counts, 0.5, most_passes=2, tolerance=1e-8)
    assert not hurried.converged
    assert hurried.violation > 1e-8
    # 5 - 4 = 1 is the penalty; with a coefficient of the other sign, or a larger margin, it is not.
    n, u = np.array([5.0, 5.0, 5.0, 5.0]), np.array([0.3, -0.3, 0.0, 0.0])
    missed = violations(n, np.array([4.0, 4.0, 4.0, 7.0]), u, 1.0)
    np.testing.assert_allclose(missed, [0.0, 2 / 6, 0.0, 1 / 6])


def test_path_and_choice() -> None:
    sample = some_sample(600, 0.8)
    path, again = (fit_lasso(sample, lambdas=6, folds=3, rng=np.random.default_rng(3)) for _ in range(2))
    assert path.steps == again.steps
    assert 0 < path.chosen < len(path.steps) - 1
    assert not path.warnings
    best = max(step.score for step in path.steps)
    assert path.steps[path.chosen].score == best > path.steps[0].score
    assert path.steps[0].pairs == 0
    assert path.fitted.converged
    assert path.fitted.penalty == path.steps[path.chosen].penalty
    shown = path.model_path
    assert (shown.along, shown.chosen) == ("lambda", path.chosen)
    assert shown.steps[2].value == path.steps[2].penalty


def test_independent_keys_need_no_pairs() -> None:
    path = fit_lasso(some_sample(3000, 0.0, seed=5), folds=3, rng=np.random.default_rng(6))
    assert path.steps[path.chosen].pairs <= 1
    assert path.chosen > 0 or "independence" in path.warnings[0]


def test_edges_are_said() -> None:
    path = fit_lasso(some_sample(1500, 0.8), lambdas=2, folds=2, rng=np.random.default_rng(3))
    assert path.chosen == 1
    assert "smallest penalty" in path.warnings[0]


def test_labels_do_not_matter() -> None:
    sample = some_sample()
    rng = np.random.default_rng(7)
    moves = [rng.permutation(L) for L in SIZES]
    cells = np.stack([move[sample.table.cells[:, j]] for j, move in enumerate(moves)], axis=1)[:, ::-1]
    table = ContingencyTable.from_codes(sample.table.keys[::-1], cells, sample.table.counts)
    other = Sample(table, sample.population_size)
    first, second = (
        fit_penalised(penalised_design(one), one.table.counts, 1.0, tolerance=1e-7) for one in (sample, other)
    )
    places = other.table.find(cells)
    np.testing.assert_allclose(
        first.fitted[first.cells.occupied], second.fitted[second.cells.occupied][places], rtol=1e-4
    )


def test_folds_divide_the_records() -> None:
    counts = np.array([5, 1, 1, 7, 2])
    parts = divide(counts, 3, np.random.default_rng(8))
    np.testing.assert_array_equal(parts.sum(axis=0), counts)
    assert np.ptp(parts.sum(axis=1)) <= 1


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(FitFailed, match="72"):
        penalised_design(some_sample(1000), most_cells=50)


def test_one_standard_error_prefers_the_larger_penalty() -> None:
    def tried(penalty: float, *scores: float) -> Tried:
        return Tried(penalty, np.empty(0), 1.0, 1.0, 1, 1, 0.0, [True], [*scores])

    path = [tried(9.0, -60, -58), tried(3.0, -50.1, -50.5), tried(1.0, -50.4, -50.0), tried(0.3, -53, -54)]
    sizes = np.array([10, 10])
    assert choose(path, sizes, "best")[1] == 2
    assert choose(path, sizes, "one-standard-error")[1] == 1


def test_extrapolation_finds_a_limit() -> None:
    step, limit = np.array([[0.9, 0.05], [0.0, 0.4]]), np.array([2.0, -1.0])
    path = [np.array([7.0, 5.0, -np.inf])]
    for _ in range(3):
        path.append(np.append(limit + step @ (path[-1][:2] - limit), -np.inf))
    np.testing.assert_allclose(extrapolated(path), [*limit, -np.inf], rtol=1e-4)
    assert np.abs(path[-1][:2] - limit).max() > 1


@pytest.mark.parametrize("rules", [None, RULES])
def test_drawn_cells_stand_for_the_table(rules: str | None) -> None:
    """Margins of a law over drawn cells are unbiased; with the weights left out they are not."""
    sample = some_sample(60, rules=rules)
    whole = fit_penalised(penalised_design(sample), sample.table.counts, 1.0)
    exact, estimates, unweighted = whole.design.margins_of(whole.fitted), [], []
    rng = np.random.default_rng(9)
    for _ in range(40):
        design, weights = draw_cells(sample, 60, rng=rng)
        codes = design.cells.codes.T.astype(np.int64)
        assert (weights[design.cells.occupied] == 1).all()
        assert (weights >= 1).all()
        assert sample.zeros is None or not sample.zeros.contains(codes).any()
        law = whole.fitted[whole.cells.find(codes)]
        for found, masses in ((estimates, weights * law), (unweighted, law)):
            found.append(in_order_of(whole.design, design, masses))
    z, broken = ((np.mean(found, axis=0) - exact) / standard_error(found) for found in (estimates, unweighted))
    assert np.abs(z).max() < 4
    assert np.abs(broken).max() > 20


def in_order_of(wanted: Design, design: Design, masses: np.ndarray) -> np.ndarray:
    """Margins over some cells in the order of another design."""
    room = {margin.generator: k for k, margin in enumerate(design.margins)}
    margins, parts = design.margins_of(masses), []
    for margin in wanted.margins:
        k = room[margin.generator]
        block = margins[design.begins[k] : design.begins[k + 1]]
        by_key = design.margins[k].in_table_order(block, design.cells.order)
        read = [key for key in wanted.cells.order if key in margin.generator]
        parts.append(by_key.transpose([margin.generator.index(key) for key in read]).ravel())
    return np.concatenate(parts)


def standard_error(found: list[np.ndarray]) -> np.ndarray:
    return np.maximum(np.std(found, axis=0, ddof=1) / np.sqrt(len(found)), 1e-9)


def test_part_of_the_cells_gives_nearly_the_same_risk() -> None:
    sample = larger_sample(1200, (8, 6, 5, 5, 4), seed=3, strength=0.8)
    counts, top = sample.table.counts, sample.unsampled_size / sample.sample_size
    design, weights = draw_cells(sample, 4000, rng=np.random.default_rng(10))
    assert len(design.cells) < 0.6 * occurring_cells(sample)

    def tau(room: PenalisedFitting) -> np.ndarray:
        fit = room.fit(counts, 3.0, tolerance=1e-3)
        assert fit.converged
        mean = fit.fitted[fit.cells.occupied[sample.table.uniques]] * top
        return np.array([np.exp(-mean).sum(), special.exprel(-mean).sum()])

    exact = tau(PenalisedFitting(penalised_design(sample)))
    np.testing.assert_allclose(tau(PenalisedFitting(design, weights)), exact, rtol=0.05)
    assert (np.abs(tau(PenalisedFitting(design)) / exact - 1) > 0.05).all()


def test_the_approximation_is_said() -> None:
    sample = some_sample(300, rules=RULES)
    exact, drawn = (
        fit_lasso(sample, lambdas=5, folds=2, most_cells=most, cells_drawn=60, rng=np.random.default_rng(11))
        for most in (1000, 20)
    )
    assert exact.approximation is None
    assert not any("approximate" in words for words in exact.warnings)
    said = drawn.approximation
    assert said is not None
    assert said.visited == len(drawn.fitted.cells) <= said.cells == sample.zeros.admissible_cells
    assert f"{said.visited} of {said.cells} cells" in drawn.warnings[-1]
    more = PenalisedFitting(*draw_cells(sample, 4000, rng=np.random.default_rng(12)))
    many = more.fit(sample.table.counts, drawn.fitted.penalty)
    better = Approximation.of(many, more.margins_of(sample.table.counts), said.cells)
    assert better is not None
    assert better.noise < said.noise
    assert better.effective_size > said.effective_size


def test_margins_are_sums_of_weights() -> None:
    sample = some_sample(400)
    weights = sample.table.counts * np.where(sample.table.cells[:, 0] == 0, 4.0, 1.0)
    table = ContingencyTable.from_codes(sample.table.keys, sample.table.cells, sample.table.counts, weights)
    weighted = Sample(table, sample.population_size)
    path = fit_lasso(weighted, lambdas=4, folds=2, rng=np.random.default_rng(13))
    counts = pseudo_counts(weighted)
    codes = path.fitted.cells.codes[0]
    share = np.bincount(codes, path.fitted.fitted) / path.fitted.fitted.sum()
    wanted, plain = (np.bincount(table.cells[:, 0], of) / of.sum() for of in (counts, table.counts))
    np.testing.assert_allclose(share, wanted, rtol=1e-3)
    assert np.abs(share - plain).max() > 0.1
    assert path.fitted.fitted.sum() == pytest.approx(counts.sum(), rel=1e-3)
