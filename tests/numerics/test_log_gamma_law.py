"""The gamma law by its shape and the mean of its logarithm, against SciPy's gamma law."""

import numpy as np
import pytest
from scipy import special, stats

from keyhole.numerics.log_gamma_law import HIGHEST_SCORE, HIGHEST_SHAPE, LOWEST_SHAPE, log_quantiles

SHAPES = np.geomspace(LOWEST_SHAPE, HIGHEST_SHAPE, 181)


@pytest.mark.parametrize("shape", [1e6, 1e4, 100.0, 10.0, 2.5, 1.5, 1.0, 0.7, 0.3, 0.15, 0.06, 0.03])
def test_quantiles_are_those_of_the_gamma_law(shape: float) -> None:
    """Within the stated 0.005 standard deviations, all over the scores that matter."""
    scores = np.linspace(-4.4, 4.4, 317)
    deviation = np.sqrt(special.polygamma(1, shape))
    if shape < 100:
        lower = (stats.norm.logcdf(scores) + special.gammaln(shape + 1)) / shape
        with np.errstate(divide="ignore"):
            upper = np.log(stats.gamma.ppf(stats.norm.cdf(scores), shape))
        # Where the quantile is too small for a float, P(p < q) = q^a / Gamma(a + 1).
        exact = np.where(lower < -60, lower, upper) - special.digamma(shape)
    else:
        exact = np.log(stats.gamma.ppf(stats.norm.cdf(scores), shape)) - special.digamma(shape)
    mean = np.full(len(scores), -7.0)
    got = log_quantiles(mean, np.full(len(scores), shape), scores)
    error = np.abs(got - (mean + exact)) / deviation
    assert error.max() < 0.005
    shifted = np.abs(got - (mean + exact + 0.01 * deviation)) / deviation
    assert shifted.max() > 0.005


def test_quantiles_rise_with_the_score() -> None:
    scores = np.linspace(-6, 6, 1201)
    for shape in SHAPES:
        found = log_quantiles(np.zeros(len(scores)), np.full(len(scores), shape), scores)
        inside = np.abs(scores) < HIGHEST_SCORE
        assert np.all(np.diff(found[inside]) > 0)
        assert np.all(np.diff(found) >= -1e-12)


def test_scores_beyond_the_table_are_taken_as_its_end() -> None:
    ends = log_quantiles(np.zeros(4), np.full(4, 3.3), np.array([-99.0, -HIGHEST_SCORE, HIGHEST_SCORE, 99.0]))
    assert ends[0] == ends[1] < ends[2] == ends[3]
    assert np.isfinite(ends).all()


def test_shapes_beyond_the_table_are_taken_as_its_end() -> None:
    scores = np.full(4, 1.0)
    ends = log_quantiles(np.zeros(4), np.array([1e-9, LOWEST_SHAPE, HIGHEST_SHAPE, 1e12]), scores)
    assert ends[0] == ends[1]
    assert ends[2] == ends[3]


@pytest.mark.parametrize("shape", [1e5, 50.0, 3.0, 0.9, 0.2])
def test_draws_have_the_moments_of_the_law(shape: float) -> None:
    size = 200_000
    scores = np.random.default_rng(1).standard_normal(size)
    drawn = log_quantiles(np.full(size, -9.0), np.full(size, shape), scores)
    variance = float(special.polygamma(1, shape))
    kurtosis = special.polygamma(3, shape) / variance**2
    assert abs(drawn.mean() + 9) < 4 * np.sqrt(variance / size) + 0.001 * np.sqrt(variance)
    error = variance * np.sqrt((kurtosis + 2) / size)
    assert abs(drawn.var() - variance) < 4 * error + 0.003 * variance
    # The lower tail is the long one.
    assert stats.skew(drawn) < (0 if variance > 1e-3 else 0.05)


def test_a_large_shape_is_normal() -> None:
    scores = np.linspace(-3, 3, 61)
    got = log_quantiles(np.zeros(61), np.full(61, 1e6), scores)
    np.testing.assert_allclose(got, 1e-3 * scores, atol=5e-6)
