"""The gamma law by the moments of its logarithm, against SciPy's gamma law."""

import numpy as np
import pytest
from scipy import special, stats

from keyhole.arrays import Vector
from keyhole.numerics.log_gamma_law import HIGHEST_SCORE, LOWEST_SHAPE, log_quantiles, shape_of

VARIANCES = np.geomspace(1e-6, 1e3, 181)


def quantiles(mean: Vector, variance: Vector, scores: Vector) -> Vector:
    return log_quantiles(mean, variance, shape_of(variance), scores)


def test_shape_inverts_trigamma() -> None:
    shape = shape_of(VARIANCES)
    np.testing.assert_allclose(special.polygamma(1, shape), VARIANCES, rtol=1e-6)
    np.testing.assert_allclose(special.polygamma(1, shape)[1:], VARIANCES[1:], rtol=1e-9)
    assert np.all(np.diff(shape) < 0)


def test_shape_stays_within_its_bounds() -> None:
    assert shape_of(np.array([1e9])).tolist() == [LOWEST_SHAPE]
    assert shape_of(np.array([1e-9])).tolist() == pytest.approx([1e6])
    assert shape_of(np.array([])).shape == (0,)


@pytest.mark.parametrize("variance", [1e-6, 1e-4, 0.01, 0.1, 0.5, 1.0, np.pi**2 / 6, 3.0, 10.0, 50.0, 300.0, 1e3])
def test_quantiles_are_those_of_the_gamma_law(variance: float) -> None:
    """Within the stated 0.005 standard deviations, all over the scores that matter."""
    scores = np.linspace(-4.4, 4.4, 317)
    shape = float(shape_of(np.array([variance]))[0])
    if variance > 0.01:
        lower = (stats.norm.logcdf(scores) + special.gammaln(shape + 1)) / shape
        with np.errstate(divide="ignore"):
            upper = np.log(stats.gamma.ppf(stats.norm.cdf(scores), shape))
        # Where the quantile is too small for a float, P(p < q) = q^a / Gamma(a + 1).
        exact = np.where(lower < -60, lower, upper) - special.digamma(shape)
    else:
        exact = np.log(stats.gamma.ppf(stats.norm.cdf(scores), shape)) - special.digamma(shape)
    mean = np.full(len(scores), -7.0)
    got = quantiles(mean, np.full(len(scores), variance), scores)
    error = np.abs(got - (mean + exact)) / np.sqrt(variance)
    assert error.max() < 0.005
    shifted = np.abs(got - (mean + exact + 0.01 * np.sqrt(variance))) / np.sqrt(variance)
    assert shifted.max() > 0.005


def test_quantiles_rise_with_the_score() -> None:
    scores = np.linspace(-6, 6, 1201)
    for variance in VARIANCES:
        found = quantiles(np.zeros(len(scores)), np.full(len(scores), variance), scores)
        inside = np.abs(scores) < HIGHEST_SCORE
        assert np.all(np.diff(found[inside]) > 0)
        assert np.all(np.diff(found) >= -1e-12)


def test_scores_beyond_the_table_are_taken_as_its_end() -> None:
    ends = quantiles(np.zeros(4), np.full(4, 0.3), np.array([-99.0, -HIGHEST_SCORE, HIGHEST_SCORE, 99.0]))
    assert ends[0] == ends[1] < ends[2] == ends[3]
    assert np.isfinite(ends).all()


@pytest.mark.parametrize("variance", [1e-5, 0.02, 0.4, 2.0, 30.0])
def test_draws_have_the_moments_they_were_given(variance: float) -> None:
    size = 200_000
    scores = np.random.default_rng(1).standard_normal(size)
    drawn = quantiles(np.full(size, -9.0), np.full(size, variance), scores)
    shape = shape_of(np.array([variance]))[0]
    kurtosis = special.polygamma(3, shape) / variance**2
    assert abs(drawn.mean() + 9) < 4 * np.sqrt(variance / size) + 0.001 * np.sqrt(variance)
    error = variance * np.sqrt((kurtosis + 2) / size)
    assert abs(drawn.var() - variance) < 4 * error + 0.003 * variance
    # The lower tail is the long one.
    assert stats.skew(drawn) < (0 if variance > 1e-3 else 0.05)


def test_a_small_variance_is_normal() -> None:
    scores = np.linspace(-3, 3, 61)
    got = quantiles(np.zeros(61), np.full(61, 1e-8), scores)
    np.testing.assert_allclose(got, 1e-4 * scores, atol=2e-7)
