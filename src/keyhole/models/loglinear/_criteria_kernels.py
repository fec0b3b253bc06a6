"""The compiled sum over all cells of the criteria of Skinner and Shlomo."""

import numpy as np
from numba import njit

NEAR = 0.01
"""Where series stand for exponentials, to eleven digits: most cells of a sparse table are there."""


@njit(nogil=True, cache=True, error_model="numpy")
def decay(x):
    """exp(-x)."""
    if x < NEAR:
        return 1.0 - x * (1.0 - x * (1 / 2 - x * (1 / 6 - x * (1 / 24 - x / 120))))
    return np.exp(-x)


@njit(nogil=True, cache=True, error_model="numpy")
def sum_criteria(m, w, c, second_order, bias, variance):
    """Adds w (C m^2 - A m) to bias and w (A^2 m + 2 C^2 m^2) to variance, over all cells, for tau1 and for tau2.

    A and C are as in `criteria`; w and c have one entry for each cell, or one for all.
    """
    each_w = 1 if w.size > 1 else 0
    each_c = 1 if c.size > 1 else 0
    for i in range(m.size):
        mean = m[i]
        if mean == 0.0:
            continue
        weight = w[i * each_w]
        odds = c[i * each_c]
        x = odds * mean
        gone = decay(x)
        if x < NEAR:
            first = -1 / 2 + x * (1 / 3 - x * (1 / 8 - x / 30))
            second = 1 / 3 - x * (1 / 4 - x * (1 / 10 - x / 36))
        else:
            inverse = 1.0 / x
            first = (gone - (1.0 - gone) * inverse) * inverse
            second = -(gone + 2.0 * first) * inverse
        e = decay(mean)
        a = mean * e
        for k in range(2):
            slope = odds * (-gone if k == 0 else first)
            bend = odds * odds * (gone if k == 0 else second)
            A = -a * slope
            C = 0.5 * a * bend
            if second_order:
                C = -((e - a) * slope + C)
            C *= mean
            bias[k] += weight * mean * (C - A)
            variance[k] += weight * (A * A * mean + 2.0 * C * C)
