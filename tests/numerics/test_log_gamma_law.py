"""Quantiles of the logarithm of a gamma variable, against SciPy's gamma law."""

import numpy as np
import pytest
from scipy import special, stats

from keyhole.arrays import Vector
from keyhole.numerics.log_gamma_law import (
    HIGHEST_SCORE,
    HIGHEST_SHAPE,
    LOWEST_SHAPE,
    log_deviation,
    log_quantiles,
    shape_of_skewness,
)

SHAPES = np.geomspace(LOWEST_SHAPE, HIGHEST_SHAPE, 181)


def quantiles(mean: float, shape: float, scores: Vector) -> Vector:
    """Of the logarithm of a gamma variable of this shape, moved to the mean."""
    size = len(scores)
    deviation = float(log_deviation(np.array([shape]))[0])
    return log_quantiles(np.full(size, mean), np.full(size, deviation), np.full(size, shape), scores)


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
    mean = -7.0
    got = quantiles(mean, shape, scores)
    error = np.abs(got - (mean + exact)) / deviation
    assert error.max() < 0.005
    shifted = np.abs(got - (mean + exact + 0.01 * deviation)) / deviation
    assert shifted.max() > 0.005


def test_quantiles_rise_with_the_score() -> None:
    scores = np.linspace(-6, 6, 1201)
    for shape in SHAPES:
        found = quantiles(0.0, shape, scores)
        inside = np.abs(scores) < HIGHEST_SCORE
        assert np.all(np.diff(found[inside]) > 0)
        assert np.all(np.diff(found) >= -1e-12)


def test_scores_beyond_the_table_are_taken_as_its_end() -> None:
    ends = quantiles(0.0, 3.3, np.array([-99.0, -HIGHEST_SCORE, HIGHEST_SCORE, 99.0]))
    assert ends[0] == ends[1] < ends[2] == ends[3]
    assert np.isfinite(ends).all()


def test_shapes_beyond_the_table_are_taken_as_its_end() -> None:
    scores = np.full(4, 1.0)
    ends = log_quantiles(np.zeros(4), np.ones(4), np.array([1e-9, LOWEST_SHAPE, HIGHEST_SHAPE, 1e12]), scores)
    assert ends[0] == ends[1]
    assert ends[2] == ends[3]


@pytest.mark.parametrize("shape", [1e5, 50.0, 3.0, 0.9, 0.2])
def test_draws_have_the_moments_of_the_law(shape: float) -> None:
    size = 200_000
    scores = np.random.default_rng(1).standard_normal(size)
    drawn = quantiles(-9.0, shape, scores)
    variance = float(special.polygamma(1, shape))
    kurtosis = special.polygamma(3, shape) / variance**2
    assert abs(drawn.mean() + 9) < 4 * np.sqrt(variance / size) + 0.001 * np.sqrt(variance)
    error = variance * np.sqrt((kurtosis + 2) / size)
    assert abs(drawn.var() - variance) < 4 * error + 0.003 * variance
    # The lower tail is the long one.
    assert stats.skew(drawn) < (0 if variance > 1e-3 else 0.05)


def test_a_large_shape_is_normal() -> None:
    scores = np.linspace(-3, 3, 61)
    got = quantiles(0.0, 1e6, scores)
    np.testing.assert_allclose(got, 1e-3 * scores, atol=5e-6)


def test_the_shape_of_a_skewness_has_that_skewness() -> None:
    shape = shape_of_skewness(np.array([1.9, 1.0, 0.3, 0.05, 0.002]))
    found = -special.polygamma(2, shape) / special.polygamma(1, shape) ** 1.5
    np.testing.assert_allclose(found, [1.9, 1.0, 0.3, 0.05, 0.002], rtol=1e-4)
    assert shape_of_skewness(np.array([2.5, 0.0])).tolist() == pytest.approx([LOWEST_SHAPE, HIGHEST_SHAPE])


def test_a_sum_of_logarithms_is_nearly_one_stretched_logarithm() -> None:
    """Three cumulants of the sum of unequal parts fix its quantiles within a few hundredths of a deviation."""
    shapes = np.array([1.5, 3.0, 8.0, 40.0])
    rng = np.random.default_rng(2)
    total = sum(np.log(rng.gamma(shape, size=400_000)) - special.digamma(shape) for shape in shapes)
    variance, skew = (abs(special.polygamma(order, shapes).sum()) for order in (1, 2))
    one = shape_of_skewness(np.array([skew / variance**1.5]))
    scores = np.linspace(-2.5, 2.5, 11)
    found = log_quantiles(np.zeros(11), np.full(11, np.sqrt(variance)), np.full(11, one[0]), scores)
    off = (found - np.quantile(total, stats.norm.cdf(scores))) / np.sqrt(variance)
    assert np.abs(off).max() < 0.04
    normal = np.sqrt(variance) * scores
    assert np.abs(normal - np.quantile(total, stats.norm.cdf(scores))).max() > 0.2
