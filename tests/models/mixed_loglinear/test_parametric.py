"""Independent effects: the law of a count, the joint law, and two ways to draw fixed effects that agree."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from keyhole.arrays import Vector
from keyhole.errors import FitFailed, UnknownModel
from keyhole.models.catalogue import model_named
from keyhole.models.mixed_loglinear import full_table, laplace
from keyhole.models.mixed_loglinear.base_measure import BaseMeasure
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.models.mixed_loglinear.langevin import Point, Walk, langevin_step
from keyhole.models.mixed_loglinear.parametric import ParametricSampler
from keyhole.models.mixed_loglinear.predictive import Predictive
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
from tests.sampler_checks import geweke_scores, keys_of

LAWS = {
    "log-gamma": stats.gamma(1.5, scale=1 / 0.8),
    "normal": stats.lognorm(np.sqrt(0.9), scale=np.exp(0.3)),
    "inverse-gaussian": stats.invgauss(1.2 / 2.0, scale=2.0),
}
BASES = [
    BaseMeasure("log-gamma", 1.5, 0.8),
    BaseMeasure("normal", 0.3, 0.9),
    BaseMeasure("inverse-gaussian", 1.2, 2.0),
]
LEVELS = (3, 2, 4)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.kind)
def test_the_law_of_a_count_is_the_integral(base: BaseMeasure) -> None:
    counts, log_x = np.array([0, 0, 1, 4, 60]), np.array([-3.0, 1.2, -2.0, 0.4, 3.0])
    found = Predictive(base).at(counts, log_x)[0]
    for f, t, value in zip(counts, log_x, found, strict=True):

        def likelihood(omega: float, f: int = f, t: float = t) -> float:
            return float(np.exp(f * (t + np.log(omega)) - np.exp(t) * omega) * LAWS[base.kind].pdf(omega))

        whole = integrate.quad(likelihood, 0, np.inf, limit=500)[0]
        if base.kind == "log-gamma":  # where it is known up to what depends on the count alone
            value += np.log(1.5 + np.arange(f)).sum()
        assert value == pytest.approx(np.log(whole), abs=2e-6)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.kind)
def test_slope_and_curvature_are_derivatives(base: BaseMeasure) -> None:
    counts, log_x, step = np.array([0, 0, 2, 9]), np.array([-4.0, 1.0, 0.3, 1.5]), 1e-3
    below, here, above = (Predictive(base).at(counts, log_x + shift) for shift in (-step, 0.0, step))
    np.testing.assert_allclose(here[1], (above[0] - below[0]) / (2 * step), atol=2e-5)
    np.testing.assert_allclose(here[2], -(above[1] - below[1]) / (2 * step), atol=2e-4)


def statistics(state: Walk, records: FullTable) -> Vector:
    logs = np.log1p(records.counts)
    return np.array([*state.beta, *state.beta**2, logs.mean(), (logs**2).mean(), state.beta[1] * logs[0]])


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.kind)
def test_sweeps_leave_the_joint_law_as_it_is(base: BaseMeasure) -> None:
    table = FullTable((2, 3), None, np.ones(6, dtype=np.int64), 0.5)
    fixed = FixedEffects.of((2, 3), ((0,), (1,)), overall=True)
    sampler = ParametricSampler(table, 100, base, fixed, variance=0.7, adapts=False)
    scores = geweke_scores(sampler, 6, statistics, draws=1_000, rng=np.random.default_rng(5))
    assert np.abs(scores).max() < 4.5


def test_fixed_effects_with_another_prior_are_rejected() -> None:
    class Careless(ParametricSampler):
        def bend(self, beta: Vector, records: FullTable) -> laplace.Bend:
            return ParametricSampler.bend(replace(self, variance=3.0), beta, records)

    table = FullTable((2, 3), None, np.ones(6, dtype=np.int64), 0.5)
    fixed = FixedEffects.of((2, 3), ((0,), (1,)), overall=True)
    sampler = Careless(table, 100, BASES[0], fixed, variance=0.7, adapts=False)
    scores = geweke_scores(sampler, 6, statistics, draws=1_500, rng=np.random.default_rng(5))
    assert np.abs(scores).max() > 5


def a_table() -> FullTable:
    rng = np.random.default_rng(1)
    fixed = FixedEffects.of(LEVELS, ((0,), (1,), (2,)), overall=True)
    log_xi = fixed.predictor(rng.normal(0.0, 0.7, fixed.number)).ravel()
    return FullTable(LEVELS, None, rng.poisson(40 * np.exp(log_xi) * rng.gamma(20.0, 1 / 20.0, 24)), 0.1)


@pytest.mark.parametrize("generators", [((0,), (1,), (2,)), ((0, 1), (1, 2))])
def test_laplace_and_langevin_agree(generators: tuple[tuple[int, ...], ...]) -> None:
    table = a_table()
    fixed = FixedEffects.of(LEVELS, generators, overall=True)
    sampler = ParametricSampler(table, 10_000, BaseMeasure("log-gamma", 20.0, 2.0), fixed)
    rng = np.random.default_rng(2)
    state, draws = sampler.start(table, rng, crowded=False), []
    for _ in range(700):
        state = sampler.sweep(state, table, rng)
        draws.append(sampler.log_x(state.beta))
    used = np.array(draws[100:])
    mode, precision = sampler.normal
    normal = np.array([sampler.log_x(mode + precision.draw(rng)) for _ in range(1_500)])
    spread = normal.std(axis=0)
    assert np.abs((used.mean(axis=0) - normal.mean(axis=0)) / spread).max() < 0.4
    assert np.abs(np.log(used.std(axis=0) / spread)).max() < 0.35


def test_conjugate_gradients_do_what_a_factor_does(monkeypatch: pytest.MonkeyPatch) -> None:
    table = a_table()
    fixed = FixedEffects.of(LEVELS, ((0, 1), (1, 2)), overall=True)
    sampler = ParametricSampler(table, 10_000, BaseMeasure("log-gamma", 20.0, 2.0), fixed, laplace=True)
    mode, precision = sampler.normal
    right = np.random.default_rng(3).normal(size=fixed.number)
    exact = precision.solve(right)
    np.testing.assert_allclose(precision.times(exact), right, atol=1e-8)
    draws = np.array([precision.draw(np.random.default_rng(i)) for i in range(600)])
    monkeypatch.setattr(laplace, "MOST_FACTORISED", 0)
    np.testing.assert_allclose(precision.solve(right), exact, rtol=1e-3, atol=1e-5)
    fresh = ParametricSampler(table, 10_000, sampler.base, fixed, laplace=True)
    np.testing.assert_allclose(fresh.normal[0], mode, atol=1e-3)
    others = np.array([precision.draw(np.random.default_rng(i)) for i in range(600)])
    for one in (draws, others):
        ratio = one.var(axis=0) / np.diagonal(np.linalg.inv(precision.matrix))
        assert np.abs(ratio - 1).max() < 0.35


def zeros_sample() -> Sample:
    keys = keys_of((3, 2, 2))
    zeros = StructuralZeros(keys, parse_zero_rules('- {K0: "0", K1: "1"}'))
    codes = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [2, 1, 1], [2, 0, 0], [2, 0, 0]])
    return Sample(ContingencyTable.from_codes(keys, codes), 60, zeros)


def test_structural_zeros_have_no_effect() -> None:
    table = FullTable.of(zeros_sample())
    assert len(table) == 10
    assert table.counts.sum() == 6
    assert table.spread(np.ones(10)).sum() == 10
    for name in ("p-i", "np-i", "np-i-emp"):
        fit = model_named(name, chains=2, most_sweeps=50).fit(zeros_sample(), rng=np.random.default_rng(0))
        assert {one.name: one.value for one in fit.diagnostics}["cells"] == 10


def test_a_table_with_too_many_cells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_table, "MOST_CELLS", 11)
    with pytest.raises(FitFailed, match="12 cells"):
        FullTable.of(zeros_sample())


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("np-i", {"base": "cauchy"}, "log-gamma, normal, inverse-gaussian"),
        ("np-i", {"base_parameters": "1"}, "two numbers"),
        ("np-i", {"base_parameters": "1,-1"}, "positive"),
        ("np-i-emp", {"generators": "two-way"}, "main effects only"),
    ],
)
def test_bases_that_cannot_be_are_refused(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(UnknownModel, match=words):
        model_named(name, **options)


def test_any_generators_and_bases_can_be_had() -> None:
    model = model_named("np-i", chains=2, most_sweeps=50, base="normal", generators="K0*K1 + K2")
    fit = model.fit(zeros_sample(), rng=np.random.default_rng(0))
    assert 0 < np.mean([law.prob_none().sum() for law in fit.unsampled()]) < 4
    assert model_named("p-o", base="inverse-gaussian").settings["base"] == "inverse-gaussian"


def test_a_step_to_means_that_overflow_is_refused() -> None:
    here = Point(np.zeros(1), 0.0, np.zeros(1), np.eye(1))
    nowhere = Point(np.ones(1), -np.inf, np.full(1, np.nan), np.full((1, 1), np.inf))
    assert langevin_step(here, lambda beta: nowhere, 1.0, np.random.default_rng(0)) == (here, 0.0)


def test_guided_steps_have_the_posterior_that_laplace_has_not() -> None:
    """A level that nobody has: the posterior of its effect is far from normal; by a sum over a grid."""
    table = FullTable((2, 3), None, np.array([2, 1, 0, 0, 0, 0]), 0.1)
    fixed = FixedEffects.of((2, 3), ((0,),), overall=True)
    base = BaseMeasure("log-gamma", 1.0, 0.1)
    exact_sampler = ParametricSampler(table, 1_000, base, fixed)
    grid = np.array([[a, b] for a in np.linspace(-16, 12, 141) for b in np.linspace(-16, 16, 161)])
    height = np.array([exact_sampler.bend(beta, table).height for beta in grid])
    weight = np.exp(height - height.max())
    wanted = weight / weight.sum() @ np.hstack([grid, grid**2])
    apart = {}
    for way in ("guided", "laplace"):
        sampler = ParametricSampler(table, 1_000, base, fixed, **{way: True})
        rng, drawn = np.random.default_rng(3), []
        state = sampler.start(table, rng, crowded=False)
        for _ in range(6_300):
            state = sampler.sweep(state, table, rng)
            drawn.append([*state.beta, *state.beta**2])
        batches = np.array(drawn[300:]).reshape(20, -1, 4).mean(axis=1)
        apart[way] = np.abs(batches.mean(axis=0) - wanted) / np.sqrt(batches.var(axis=0, ddof=1) / 20)
    assert apart["guided"].max() < 4.5
    assert apart["laplace"].max() > 8
