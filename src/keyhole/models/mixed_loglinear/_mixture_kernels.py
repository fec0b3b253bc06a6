"""Compiled law of counts whose cells are in one of some clusters, summed over which."""

import math

import numpy as np
from numba import njit

TABLED = 3
"""The largest count whose law is looked up in a table."""

SPACING = 0.05
"""Of the table, in log x."""

NOTHING = -45.0
"""A log ratio that is nothing beside 1 in double precision."""


@njit(nogil=True, cache=True, error_model="numpy")
def law_of_cell(f, x, t, omega, log_w, room):
    """Of S = sum of w omega^f exp(-x omega): log S, -d log S / d log x, and minus the second derivative."""
    top = -math.inf
    for c in range(t.size):
        room[c] = log_w[c] + f * t[c] - x * omega[c]
        top = max(top, room[c])
    total = first = second = 0.0
    for c in range(t.size):
        if room[c] > top + NOTHING:
            term = math.exp(room[c] - top)
            total += term
            first += term * omega[c]
            second += term * omega[c] * omega[c]
    mean = first / total
    fall = x * mean
    return top + math.log(total), fall, fall - x * x * (second / total - mean * mean)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_table(lowest, t, log_w, table):
    """table (counts, values of log x, 3): the law of a cell, for x a row of values."""
    omega, room = np.exp(t), np.empty(t.size)
    for f in range(table.shape[0]):
        for g in range(table.shape[1]):
            table[f, g] = law_of_cell(f, math.exp(lowest + g * SPACING), t, omega, log_w, room)


@njit(nogil=True, cache=True, error_model="numpy")
def law_of_cells(f, log_x, z, own, level, t, log_w, lowest, table, found):
    """Fills found (3, K): the log likelihood of each cell, its slope in log x, and minus its curvature.

    A cell of one of the clusters of t is summed over all of them; another has the effect ``own`` of its cluster,
    and no part in the level that log_x has for all.
    Between two places of the table the logarithm is the cubic with its values and slopes.
    """
    omega, room = np.exp(t), np.empty(t.size)
    highest = table.shape[1] - 1
    for k in range(f.size):
        here = log_x[k]
        if z[k] >= t.size:
            at = here - level + own[z[k]]
            mean = math.exp(at)
            found[0, k], found[1, k], found[2, k] = f[k] * at - mean, f[k] - mean, mean
            continue
        place = (here - lowest) / SPACING
        if f[k] <= TABLED and 0.0 <= place < highest:
            g = int(place)
            s = place - g
            below, above = table[f[k], g, 0], table[f[k], g + 1, 0]
            fall, fall_above = table[f[k], g, 1], table[f[k], g + 1, 1]
            bend, bend_above = table[f[k], g, 2], table[f[k], g + 1, 2]
            rise, first, last = above - below, -SPACING * fall, -SPACING * fall_above
            value = below + s * (first + s * (3.0 * rise - 2.0 * first - last + s * (first + last - 2.0 * rise)))
            fall += s * (fall_above - fall)
            bend += s * (bend_above - bend)
        else:
            value, fall, bend = law_of_cell(f[k], math.exp(here), t, omega, log_w, room)
        found[0, k] = f[k] * here + value
        found[1, k] = f[k] - fall
        # Where the clusters are far apart the law may bend the wrong way; a metric must not.
        found[2, k] = max(bend, 0.0)
