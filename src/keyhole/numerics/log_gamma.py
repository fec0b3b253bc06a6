"""Ratios of gamma functions that keep their digits at arguments of a thousand million.

``gammaln(1e9)`` is about 2e10, so a difference of two such values has lost half its digits. Everything
here works with Stirling's formula, whose large terms are combined by hand before they are computed:

.. math:: \\log\\Gamma(x) = (x - 1/2)\\log x - x + \\tfrac12\\log 2\\pi + S(x)
"""

from math import inf, lgamma, log, log1p, pi

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from keyhole.arrays import Vector

_LARGE = 10.0
"""From here on the five terms of the series give S to the last digit."""

_HALF_LOG_TWO_PI = 0.5 * log(2 * pi)

_NARROW = 1e-4
"""Steps below this are differenced by the derivative: the error is of third order in the step."""


def log_rising(x: ArrayLike, step: ArrayLike) -> Vector:
    r"""Logarithm of the rising factorial with any step.

    .. math:: \log (x)_s = \log\Gamma(x + s) - \log\Gamma(x)

    Examples
    --------
    >>> round(float(log_rising(3, 2)), 12) == round(float(np.log(3 * 4)), 12)
    True
    """
    x, step = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(step, dtype=float))
    safe = np.maximum(x, _LARGE)
    end = np.maximum(safe + step, np.finfo(float).tiny)
    far = (safe - 0.5) * np.log1p(np.maximum(step / safe, -1 + 1e-16)) + step * np.log(end) - step
    far = far + (stirling_remainder(end) - stirling_remainder(safe))
    start = np.where(x > 0, x, 1.0)
    near = special.gammaln(start + step) - special.gammaln(start)
    near = np.where(x > 0, near, np.where(step == 0, 0.0, -np.inf))
    return np.asarray(np.where((x >= _LARGE) & (x + step >= 1), far, near))


def log_rising_ratio(x: ArrayLike, shift: ArrayLike, steps: ArrayLike) -> Vector:
    r"""Logarithm of the ratio of two rising factorials of the same length.

    .. math:: \log\frac{(x)_m}{(x + a)_m}
              = \log\frac{\Gamma(x + m)\,\Gamma(x + a)}{\Gamma(x)\,\Gamma(x + a + m)}

    It is 0 when either the shift :math:`a` or the number of steps :math:`m` is, and minus infinity at x = 0.
    """
    x, a, m = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (x, shift, steps)))
    positive = x > 0
    x = np.where(positive, x, 1.0)
    # x log x, differenced in both directions at once; then -1/2 log x, likewise; then what Stirling leaves.
    cross = np.log1p(a * (m / (x + a + m)) / x)
    large = x * cross - m * np.log1p(a / (x + m)) - a * np.log1p(m / (x + a))
    left = _remainder_step(x, a) - _remainder_step(x + m, a)
    value = large - 0.5 * cross + left
    return np.asarray(np.where(m == 0, 0.0, np.where(positive, value, -np.inf)))


def log_rising_ratio_at(x: float, shift: float, steps: float) -> float:
    """`log_rising_ratio` of three numbers: far faster than arrays of one, for laws made by the thousand."""
    if steps == 0:
        return 0.0
    if x <= 0:
        return -inf
    cross = log1p(shift * (steps / (x + shift + steps)) / x)
    large = x * cross - steps * log1p(shift / (x + steps)) - shift * log1p(steps / (x + shift))
    end = x + steps
    if abs(shift) < _NARROW * min(1.0, x):
        left = shift * (_remainder_slope_at(x + shift / 2) - _remainder_slope_at(end + shift / 2))
    else:
        left = _remainder_at(x + shift) - _remainder_at(x) - _remainder_at(end + shift) + _remainder_at(end)
    return large - 0.5 * cross + left


def _remainder_at(x: float) -> float:
    if x < _LARGE:
        return lgamma(x) - ((x - 0.5) * log(x) - x + _HALF_LOG_TWO_PI)
    inverse = 1 / (x * x)
    return (
        1 / 12
        - inverse
        * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse * (1 / 1188 - inverse * 691 / 360360))))
    ) / x


def _remainder_slope_at(x: float) -> float:
    if x < _LARGE:
        return float(special.psi(x)) - log(x) + 0.5 / x
    inverse = 1 / (x * x)
    return -inverse * (
        1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse * (1 / 132))))
    )


def stirling_remainder(x: ArrayLike) -> Vector:
    r"""What Stirling's formula leaves of the log gamma function, :math:`S(x)`."""
    x = np.asarray(x, dtype=float)
    large = np.maximum(x, _LARGE)
    inverse = 1 / (large * large)
    series = (
        1 / 12
        - inverse
        * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse * (1 / 1188 - inverse * 691 / 360360))))
    ) / large
    small = np.clip(x, np.finfo(float).tiny, _LARGE)
    direct = special.gammaln(small) - ((small - 0.5) * np.log(small) - small + _HALF_LOG_TWO_PI)
    return np.asarray(np.where(x >= _LARGE, series, direct))


def _remainder_step(x: Vector, step: Vector) -> Vector:
    """S(x + step) - S(x); by the derivative where the step is too small to survive the difference."""
    middle = x + step / 2
    slope = special.psi(np.minimum(middle, _LARGE)) - np.log(np.minimum(middle, _LARGE))
    slope = slope + 0.5 / np.minimum(middle, _LARGE)
    large = np.maximum(middle, _LARGE)
    inverse = 1 / (large * large)
    series = -inverse * (
        1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse * (1 / 132))))
    )
    narrow = step * np.where(middle >= _LARGE, series, slope)
    wide = stirling_remainder(x + step) - stirling_remainder(x)
    return np.asarray(np.where(np.abs(step) < _NARROW * np.minimum(1.0, x), narrow, wide))
