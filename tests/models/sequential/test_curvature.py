"""The sampled Hessian against the dense one, and keys with very many levels."""

import resource
from dataclasses import replace

import numpy as np
import pytest

from keyhole.models.sequential import curvature as module
from keyhole.models.sequential.curvature import TRACE_PROBES, DenseCurvature, SampledCurvature
from keyhole.models.sequential.fitting import fit_conditional
from keyhole.models.sequential.joint import JointLaw, fit_joint
from keyhole.models.sequential.observed import Observed
from tests.models.sequential.people import conditionals_of, sample_of_codes, some_sample

Pair = tuple[DenseCurvature, SampledCurvature]


@pytest.fixture(scope="module")
def both() -> Pair:
    data = conditionals_of(some_sample(800), (1, 2, 3, 4, 5, 0))[-1].with_pairs([(3, 4)], (9, 6, 5, 4, 3, 2))
    fit = fit_conditional(data, rng=np.random.default_rng(0))
    assert isinstance(fit.curvature, DenseCurvature)
    dense = fit.curvature
    return dense, SampledCurvature(data, dense.theta, dense.penalty, 1)


def test_solutions_agree(both: Pair) -> None:
    dense, sampled = both
    rng = np.random.default_rng(2)
    for _ in range(3):
        slope = rng.standard_normal(dense.theta.shape)
        slope -= slope.mean(axis=1, keepdims=True)
        exact, found = dense.solve(slope), sampled.solve(slope)
        assert np.linalg.norm(found - exact) < 1e-3 * np.linalg.norm(exact)
        np.testing.assert_allclose(sampled._times(exact[None])[0], slope, atol=1e-8)


def test_traces_agree_within_monte_carlo_error(both: Pair) -> None:
    dense, sampled = both
    exact, found = dense.traces(), sampled.traces()
    K = dense.data.levels - 1
    for block, (start, end) in enumerate(
        zip(dense.data.offsets[:-1] * K, dense.data.offsets[1:] * K, strict=True)
    ):
        part = dense.covariance[start:end, start:end]
        error = np.sqrt(2 * (part**2).sum() / TRACE_PROBES)
        assert exact[block] == pytest.approx(np.trace(part), rel=1e-9)
        assert abs(found[block] - exact[block]) < 4 * error


@pytest.mark.parametrize("which", [0, 1])
def test_draws_have_the_inverse_hessian_as_covariance(both: Pair, which: int) -> None:
    data, exact = both[0].data, both[0].covariance
    draws = 400
    found = (both[which].draws(draws, np.random.default_rng(3)) @ data.contrast).reshape(draws, -1)
    directions = np.random.default_rng(4).standard_normal((40, data.parameters))
    variance = np.einsum("da,ab,db->d", directions, exact, directions)
    z = ((found @ directions.T).var(axis=0) / variance - 1) / np.sqrt(2 / draws)
    assert np.abs(z).max() < 4
    assert np.abs(found.mean(axis=0) / np.sqrt(np.diag(exact) / draws)).max() < 5
    wrong = np.einsum("da,ab,db->d", directions, exact * 1.5, directions)
    assert np.abs(((found @ directions.T).var(axis=0) / wrong - 1) / np.sqrt(2 / draws)).max() > 4


def test_moments_agree(both: Pair) -> None:
    dense, sampled = both
    exact, found = dense.moments(dense.mean_shift()), sampled.moments(sampled.mean_shift())
    weight = dense.data.weight
    np.testing.assert_allclose(found[:, 0], exact[:, 0], rtol=1e-10)
    for column in (1, 2, 3):
        correlation = np.corrcoef(found[:, column], exact[:, column])[0, 1]
        ratio = (weight @ found[:, column]) / (weight @ exact[:, column])
        print(f"column {column}: correlation {correlation:.4f}, ratio of means {ratio:.4f}")
        assert correlation > 0.95
        assert ratio == pytest.approx(1.0, abs=0.05)
    shift, drawn = dense.mean_shift(), sampled.mean_shift()
    assert np.corrcoef(shift.ravel(), drawn.ravel())[0, 1] > 0.9


def two_large_keys(size: int, first: int, second: int) -> Observed:
    """A place of birth and a place of residence, most people staying near."""
    rng = np.random.default_rng(5)
    born = np.minimum(rng.geometric(4 / first, size) - 1, first - 1)
    near = np.where(rng.random(size) < 0.7, born * second // first + rng.integers(0, 3, size), 0)
    lives = np.where(near > 0, near, np.minimum(rng.geometric(4 / second, size) - 1, second - 1)) % second
    codes = np.stack([born, lives, rng.integers(0, 2, size)], axis=1)
    return Observed.of(sample_of_codes(codes, 10 * size, (first, second, 2)))


def fitted(observed: Observed) -> JointLaw:
    return fit_joint(observed, (0, 1, 2), None, rng=np.random.default_rng(6))


def test_a_smaller_version_agrees_with_a_dense_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = two_large_keys(4000, 30, 24)
    dense = fitted(observed)
    monkeypatch.setattr(module, "DENSE_PARAMETERS", 300)
    sampled = fitted(observed)
    assert isinstance(dense.factors[1].curvature, DenseCurvature)
    assert isinstance(sampled.factors[1].curvature, SampledCurvature)
    weight = observed.records
    difference = np.abs(sampled.moments[:, 0] - dense.moments[:, 0])
    ratios = (weight @ sampled.moments[:, 1:]) / (weight @ dense.moments[:, 1:])
    print(f"log p differs by up to {difference.max():.4f}, {weight @ difference / weight.sum():.5f} on average")
    print(f"ratios of bias, variance, loss: {ratios.round(3)}")
    assert difference.max() < 0.1
    assert weight @ difference / weight.sum() < 0.01
    np.testing.assert_allclose(ratios, 1.0, atol=0.08)


@pytest.mark.parametrize(
    ("size", "first", "second", "parameters"),
    [(3000, 50, 56, 2500), pytest.param(20_000, 120, 150, 10_000, marks=pytest.mark.statistical)],
)
def test_a_key_with_very_many_levels_after_another(size: int, first: int, second: int, parameters: int) -> None:
    observed = two_large_keys(size, first, second)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    law = fitted(observed)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    large = law.factors[1]
    assert isinstance(large.curvature, SampledCurvature)
    assert large.data.parameters > parameters
    assert large.converged
    assert np.isfinite(law.moments).all()
    assert (law.moments[:, 2] > 0).all()
    # A dense inverse of the larger one would take two and a half gigabytes, and as much to make it.
    assert taken < 1_200_000
    assert law.observed.records @ law.moments[:, 0] / size > -np.log(first * second * 2)


def in_double(dense: DenseCurvature, slope: np.ndarray) -> np.ndarray:
    return replace(dense, last=True).solve(slope)


def test_single_precision_serves_where_the_ridge_is_not_lost_in_it(both: Pair) -> None:
    searching = replace(both[0], last=False)
    slope = np.random.default_rng(5).standard_normal(searching.theta.shape)
    slope -= slope.mean(axis=1, keepdims=True)
    assert searching._factor.dtype == np.float32
    exact = in_double(searching, slope)
    assert np.linalg.norm(searching.solve(slope) - exact) < 1e-3 * np.linalg.norm(exact)
    np.testing.assert_allclose(searching.traces(), replace(searching, last=True).traces(), rtol=1e-4)


def test_a_ridge_that_single_precision_loses_is_kept_in_double(
    both: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    faint = replace(both[0], penalty=np.full_like(both[0].penalty, 1e-4), last=False)
    slope = np.random.default_rng(5).standard_normal(faint.theta.shape)
    slope -= slope.mean(axis=1, keepdims=True)
    exact = in_double(faint, slope)
    assert faint._factor.dtype == np.float64
    np.testing.assert_allclose(faint.solve(slope), exact, rtol=1e-6, atol=1e-9 * np.abs(exact).max())
    monkeypatch.setattr(module, "SINGLE_PRECISION", 0.0)  # broken: without the bound it is lost
    unguarded = replace(faint)
    assert np.linalg.norm(unguarded.solve(slope) - exact) > 1e-2 * np.linalg.norm(exact)


def test_penalties_found_in_single_precision_are_those_of_double(monkeypatch: pytest.MonkeyPatch) -> None:
    data = conditionals_of(some_sample(800), (1, 2, 3, 4, 5, 0))[-1]
    single = fit_conditional(data, rng=np.random.default_rng(0))
    monkeypatch.setattr(module, "SINGLE_PRECISION", np.inf)
    double = fit_conditional(data, rng=np.random.default_rng(0))
    assert not np.array_equal(single.penalty, double.penalty)
    np.testing.assert_allclose(single.penalty, double.penalty, rtol=1e-3)
    np.testing.assert_allclose(single.coefficients, double.coefficients, atol=1e-4)
