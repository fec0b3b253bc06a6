"""Bessel polynomials, matches of negative binomial counts, and the scalar twin of the gamma ratio."""

from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from scipy import special, stats

from keyhole.numerics.bessel_polynomial import log_bessel_polynomial
from keyhole.numerics.log_gamma import log_rising_ratio, log_rising_ratio_at
from keyhole.numerics.mean_reciprocal import mean_reciprocal
from keyhole.numerics.negative_binomial_match import negative_binomial_match


@pytest.mark.parametrize("order", [0, 1, 2, 7, 59, 60, 61, 250])
@pytest.mark.parametrize("z", [0.0, 0.25, 3.0, 100.0, 5000.0])
def test_bessel_polynomial_by_exact_recursion(order: int, z: float) -> None:
    before, value = Fraction(1), 1 + Fraction(z)
    for n in range(2, order + 1):
        before, value = value, (2 * n - 1) * value + Fraction(z) ** 2 * before
    expected = log(value.numerator) - log(value.denominator) if order else 0.0
    assert float(log_bessel_polynomial(order, z)) == pytest.approx(expected, rel=1e-13, abs=1e-14)


def test_scalar_and_array_ratios_agree() -> None:
    for x, shift, steps in product((1e-3, 0.5, 3.0, 11.0, 1e6, 1e12), (-4e-4, 1e-12, 0.3, 7.0, 1e5), (0, 1, 1e9)):
        expected = float(log_rising_ratio(x, shift, steps))
        assert log_rising_ratio_at(x, shift, steps) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert log_rising_ratio_at(0.0, 1.0, 3) == -np.inf


@pytest.mark.parametrize("p", [0.03, 0.2, 0.499, 0.5, 0.9, 0.999999])
@pytest.mark.parametrize("count", [1, 2, 5, 39, 40, 41, 300])
def test_negative_binomial_match_is_the_naive_sum(count: int, p: float) -> None:
    unsampled = np.arange(60_000)
    mass = stats.nbinom.pmf(unsampled, count, p)
    expected = (mass / (count + unsampled)).sum()
    assert negative_binomial_match(np.array([count]), np.array([p]))[0] == pytest.approx(expected, rel=1e-9)


def test_negative_binomial_match_at_the_limits() -> None:
    counts = np.array([1, 2, 7, 10_000])
    np.testing.assert_array_equal(negative_binomial_match(counts, np.ones(4)), 1 / counts)
    assert negative_binomial_match(counts, np.zeros(4)).tolist() == [0.0] * 4
    # As p falls, E(1/F | f) tends to p / (f - 1) for f > 1.
    tiny = negative_binomial_match(counts[1:], np.full(3, 1e-12))
    np.testing.assert_allclose(tiny, 1e-12 / (counts[1:] - 1), rtol=1e-9)


@pytest.mark.parametrize("shape", [1.0, 1e2, 1e4, 1e8])
@pytest.mark.parametrize("mean", [50.0, 5e3, 2e5])
def test_the_mean_reciprocal_finds_narrow_peaks(shape: float, mean: float) -> None:
    """Negative binomial counts from very wide to almost Poisson, against the sum over every count."""
    law = stats.nbinom(shape, shape / (shape + mean))
    largest = 2_000_000
    every = np.arange(largest + 1)
    probability = law.pmf(every)
    exact = float((probability / (2 + every)).sum() / probability.sum())

    def log_pmf(u: np.ndarray) -> np.ndarray:
        return special.gammaln(u + shape) - special.gammaln(u + 1.0) + u * np.log(mean / (shape + mean))

    assert mean_reciprocal(log_pmf, 2, largest) == pytest.approx(exact, rel=1e-7)
