"""Compiled draws of a concentration that many records, or all tables, share."""

import math

from numba import njit

GOLDEN = 0.6180339887498949


@njit(nogil=True, cache=True, error_model="numpy")
def log_density(t, rise, rate, longer, customers):
    """Of log alpha: rise t - rate alpha - sum_c L_c log(alpha + c) + log Gamma(alpha)/Gamma(alpha + customers)."""
    alpha = math.exp(t)
    value = rise * t - rate * alpha
    for c in range(longer.size):
        value -= longer[c] * math.log(alpha + c)
    if customers > 0:
        value += math.lgamma(alpha) - math.lgamma(alpha + customers)
    return value


@njit(nogil=True, cache=True, error_model="numpy")
def mode_of(rise, rate, longer, customers):
    """Where the density of log alpha is highest, by golden sections: it has one peak."""
    low, high, step = -1.0, 1.0, 1.0
    while log_density(low - step, rise, rate, longer, customers) > log_density(low, rise, rate, longer, customers):
        low -= step
        step *= 2.0
    low -= step
    step = 1.0
    while log_density(high + step, rise, rate, longer, customers) > log_density(
        high, rise, rate, longer, customers
    ):
        high += step
        step *= 2.0
    high += step
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = log_density(a, rise, rate, longer, customers), log_density(b, rise, rate, longer, customers)
    while high - low > 1e-6:
        if at_a > at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = log_density(a, rise, rate, longer, customers)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = log_density(b, rise, rate, longer, customers)
    return 0.5 * (low + high)


@njit(nogil=True, cache=True, error_model="numpy")
def fallen(mode, peak, side, rise, rate, longer, customers):
    """A distance from the mode, to one side, at which the logarithm has fallen by about one, and by how much."""
    distance = 1.0
    fall = peak - log_density(mode + side * distance, rise, rate, longer, customers)
    while fall > 2.0:
        distance *= 0.5
        fall = peak - log_density(mode + side * distance, rise, rate, longer, customers)
    while fall < 0.5:
        distance *= 1.5
        fall = peak - log_density(mode + side * distance, rise, rate, longer, customers)
    return distance, fall


@njit(nogil=True, cache=True, error_model="numpy")
def draw_concentration(rise, rate, longer, customers, rng):
    """An exact draw of alpha, by rejection from a hat of three pieces.

    The logarithm h of the density of log alpha is concave: beyond a point it is below the chord from the mode
    through that point. So the hat is flat around the mode and exponential on either side.
    """
    mode = mode_of(rise, rate, longer, customers)
    peak = log_density(mode, rise, rate, longer, customers)
    right, fall_right = fallen(mode, peak, 1.0, rise, rate, longer, customers)
    left, fall_left = fallen(mode, peak, -1.0, rise, rate, longer, customers)
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
        if math.log1p(-rng.random()) + hat <= log_density(mode + x, rise, rate, longer, customers) - peak:
            return math.exp(mode + x)
