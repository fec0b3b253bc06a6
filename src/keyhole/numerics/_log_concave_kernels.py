r"""Compiled exact draws from laws whose logarithm is concave on the scale of log y, at t = log y:

.. math:: A t - B e^t - C e^{-t} - D (t - \mu)^2 - \sum_c L_c \log(e^t + c)
    + \log\Gamma(e^t) - \log\Gamma(e^t + M)

Effects of cells have the first four terms (gamma: C = D = 0; lognormal: D > 0; inverse Gaussian: C > 0),
concentrations of Dirichlet processes the others. A law is the tuple ``(A, B, C, D, mu, L, M)``.
"""

import math

from numba import njit

GOLDEN = 0.6180339887498949


@njit(nogil=True, cache=True, error_model="numpy")
def log_density(t, law):
    """Up to a constant, of log y."""
    rise, rate, inverse, narrow, centre, longer, customers = law
    y = math.exp(t)
    value = rise * t - rate * y - narrow * (t - centre) ** 2
    if inverse > 0.0:
        value -= inverse / y
    for c in range(longer.size):
        value -= longer[c] * math.log(y + c)
    if customers > 0:
        value += math.lgamma(y) - math.lgamma(y + customers)
    return value


@njit(nogil=True, cache=True, error_model="numpy")
def mode_of(law):
    """Where the density of log y is highest, by golden sections: it has one peak."""
    low, high, step = -1.0, 1.0, 1.0
    while log_density(low - step, law) > log_density(low, law):
        low -= step
        step *= 2.0
    low -= step
    step = 1.0
    while log_density(high + step, law) > log_density(high, law):
        high += step
        step *= 2.0
    high += step
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = log_density(a, law), log_density(b, law)
    while high - low > 1e-6:
        if at_a > at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = log_density(a, law)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = log_density(b, law)
    return 0.5 * (low + high)


@njit(nogil=True, cache=True, error_model="numpy")
def fallen(mode, peak, side, law):
    """A distance from the mode, to one side, at which the logarithm has fallen by about one, and by how much."""
    distance = 1.0
    fall = peak - log_density(mode + side * distance, law)
    while fall > 2.0:
        distance *= 0.5
        fall = peak - log_density(mode + side * distance, law)
    while fall < 0.5:
        distance *= 1.5
        fall = peak - log_density(mode + side * distance, law)
    return distance, fall


@njit(nogil=True, cache=True, error_model="numpy")
def draw_log_concave(law, rng):
    """An exact draw of log y, by rejection from a hat of three pieces.

    Beyond a point the logarithm is below the chord from the mode through that point. So the hat is flat around the
    mode and exponential on either side (after Devroye 2014, *Statistics and Computing* 24).
    """
    mode = mode_of(law)
    peak = log_density(mode, law)
    right, fall_right = fallen(mode, peak, 1.0, law)
    left, fall_left = fallen(mode, peak, -1.0, law)
    area_right = math.exp(-fall_right) * right / fall_right
    area_left = math.exp(-fall_left) * left / fall_left
    while True:
        which = rng.random() * (area_left + left + right + area_right)
        if which < left + right:
            x, hat = which - left, 0.0
        elif which < left + right + area_right:
            x = right - math.log1p(-rng.random()) * right / fall_right
            hat = -fall_right * x / right
        else:
            x = -left + math.log1p(-rng.random()) * left / fall_left
            hat = fall_left * x / left
        # The mode is known to six digits: the logarithm there is below its maximum by less than rounding.
        if math.log1p(-rng.random()) + hat <= log_density(mode + x, law) - peak:
            return mode + x


@njit(nogil=True, cache=True, error_model="numpy")
def draw_of(law, rng):
    """The same, for callers outside compiled code."""
    return math.exp(draw_log_concave(law, rng))
