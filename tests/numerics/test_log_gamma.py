"""Ratios of gamma functions against exact arithmetic."""

from fractions import Fraction
from math import fsum, log, log1p

import numpy as np
import pytest
from scipy import special

from keyhole.numerics.log_gamma import log_rising, log_rising_ratio, stirling_remainder


def exact_ratio(x: Fraction, shift: Fraction, steps: int) -> float:
    """log of (x)_m / (x + a)_m factor by factor: exact quotients, one rounding each, an exact sum."""
    return fsum(-log1p(float(shift / (x + i))) for i in range(steps))


@pytest.mark.parametrize("steps", [0, 1, 2, 17, 150])
@pytest.mark.parametrize("x", ["1/1000", "1/2", "1", "9", "10", "37/3", "1000001/7"])
@pytest.mark.parametrize("shift", ["-1/2000", "1/1048576", "1/3", "1", "5/2", "40"])
def test_ratio_of_rising_factorials_is_exact(x: str, shift: str, steps: int) -> None:
    # Fractions with exact binary values, so that the reference answers the same question.
    first, second = Fraction(float(Fraction(x))), Fraction(float(Fraction(shift)))
    expected = exact_ratio(first, second, steps)
    got = float(log_rising_ratio(float(first), float(second), steps))
    assert got == pytest.approx(expected, rel=2e-12, abs=1e-13)


def test_ratio_telescopes_at_a_thousand_million_steps() -> None:
    """With a shift of 1 the ratio is x / (x + m), however large m is."""
    for x in (0.3, 7.0, 123.0, 1e5, 1e9):
        for m in (1e3, 1e6, 1e9, 1e12):
            assert float(log_rising_ratio(x, 1.0, m)) == pytest.approx(log(x) - log(x + m), rel=1e-12)
            assert float(log_rising_ratio(x, 3.0, m)) == pytest.approx(
                sum(log(x + i) - log(x + m + i) for i in range(3)), rel=1e-12
            )


def test_ratio_with_a_tiny_shift_is_the_derivative() -> None:
    x, m = np.array([0.2, 3.0, 50.0, 1e6]), 1e7
    slope = special.psi(x + m) - special.psi(x)
    for shift in (1e-14, 1e-9, 1e-6):
        np.testing.assert_allclose(-log_rising_ratio(x, shift, m) / shift, slope, rtol=1e-5)


def test_rising_factorial_against_products() -> None:
    for x in (0.25, 1.0, 9.5, 10.0, 1e4, 1e15):
        expected = sum(log(x + i) for i in range(30))
        assert float(log_rising(x, 30)) == pytest.approx(expected, rel=1e-13)
    assert float(log_rising(1e30, 2)) == pytest.approx(2 * log(1e30), rel=1e-14)
    assert float(log_rising(0.0, 0.0)) == 0.0
    assert float(log_rising(0.0, 1.0)) == -np.inf
    assert float(log_rising(5.0, -2.0)) == pytest.approx(-log(3 * 4))


def test_ratio_at_the_edges() -> None:
    assert float(log_rising_ratio(0.0, 1.0, 5)) == -np.inf
    assert float(log_rising_ratio(0.0, 1.0, 0)) == 0.0
    assert float(log_rising_ratio(3.0, 0.0, 1e9)) == 0.0


def test_remainder_is_continuous_where_the_series_takes_over() -> None:
    below, above = stirling_remainder(np.nextafter(10.0, 0)), stirling_remainder(10.0)
    assert float(below) == pytest.approx(float(above), abs=1e-14)
