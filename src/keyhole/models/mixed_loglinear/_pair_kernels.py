"""Compiled moves of pairs of clusters, with the cells of all common clusters summed over.

Letters as in ``_kernels``; G groups of cells with the same count and x, of which ``n`` has the numbers.
"""

import math

import numpy as np
from numba import njit

from keyhole.models.mixed_loglinear._split_kernels import log_base

TABLED = 7
"""The largest count whose cells are shared out among a row of values of log x."""

SPACING = 0.05
"""Of that row."""

SHORTEST, LONGEST = 0.02, 2.0
"""Of proposals, in log odds of weights and in the distance of effects."""

FARTHEST = 30.0
"""Log odds and distances beyond this are not proposed: exponentials would overflow."""


@njit(nogil=True, cache=True, error_model="numpy")
def share_out(f, x, z, common, lowest, row, others):
    """Cells of the first clusters as numbers of cells at a row of values of log x: row (counts, values).

    A sum over cells of a smooth function of log x is that of its cubic through the four values about each, so
    that each cell has a part, some negative, in four of them. Fills ``others`` with the cells whose count has no
    row; gives how many they are. Where x is 0 the count tells nothing of the clusters.
    """
    number = 0
    last = row.shape[1] - 3
    for k in range(f.size):
        if z[k] >= common or x[k] == 0.0:
            continue
        if f[k] > TABLED:
            others[number] = k
            number += 1
            continue
        place = (math.log(x[k]) - lowest) / SPACING
        g = min(max(int(place), 1), last)
        s = place - g
        row[f[k], g - 1] -= s * (s - 1.0) * (s - 2.0) / 6.0
        row[f[k], g] += (s + 1.0) * (s - 1.0) * (s - 2.0) / 2.0
        row[f[k], g + 1] -= (s + 1.0) * s * (s - 2.0) / 2.0
        row[f[k], g + 2] += (s + 1.0) * s * (s - 1.0) / 6.0
    return number


@njit(nogil=True, cache=True, error_model="numpy")
def fill_parts(f, x, t, w, top, part):
    """part (G,): w exp(f t - x exp(t)) of one cluster in each group, over exp(top)."""
    log_w, omega = math.log(w), math.exp(t)
    for g in range(f.size):
        part[g] = math.exp(log_w + f[g] * t - x[g] * omega - top[g])


@njit(nogil=True, cache=True, error_model="numpy")
def move_pairs(tries, f, x, n, t, w, least, base, constant, rng):
    r"""Moves two clusters at a time, some times; t and w change.

    Two clusters keep their weight and their part in the mean, :math:`w_1 + w_2` and
    :math:`w_1 \omega_1 + w_2 \omega_2`, of which counts tell most. The log odds of their weights and the
    distance of t_1 and t_2 take a step of a random walk; the density in these, with the sum of weights and the log
    of the mean effect, is the base at t_1 and t_2 times the likelihood: the Jacobian is 1. No weight gets below
    ``least``. Gives the number of steps that were made.
    """
    C, G = t.size, f.size
    top = np.full(G, -math.inf)
    for c in range(C):
        log_w, omega = math.log(w[c]), math.exp(t[c])
        for g in range(G):
            top[g] = max(top[g], log_w + f[g] * t[c] - x[g] * omega)
    part, total = np.empty((C, G)), np.zeros(G)
    for c in range(C):
        fill_parts(f, x, t[c], w[c], top, part[c])
        total += part[c]
    one, two, changed = np.empty(G), np.empty(G), np.empty(G)
    made = 0
    for _ in range(tries):
        i, j = int(rng.random() * C), int(rng.random() * (C - 1))
        j += j >= i
        scale = SHORTEST * math.exp(math.log(LONGEST / SHORTEST) * rng.random())
        odds = math.log(w[i] / w[j]) + scale * rng.standard_normal()
        apart = t[i] - t[j] + scale * rng.standard_normal()
        if abs(odds) > FARTHEST or abs(apart) > FARTHEST:
            continue
        whole, u = w[i] + w[j], 1.0 / (1.0 + math.exp(-odds))
        w_one, w_two = u * whole, (1.0 - u) * whole
        if not min(w_one, w_two) >= max(least, 1e-300):
            continue
        mean = math.log((w[i] * math.exp(t[i]) + w[j] * math.exp(t[j])) / whole)
        middle = math.log(u * math.exp((1.0 - u) * apart) + (1.0 - u) * math.exp(-u * apart))
        t_one, t_two = mean + (1.0 - u) * apart - middle, mean - u * apart - middle
        log_ratio = log_base(t_one, base, constant) + log_base(t_two, base, constant)
        log_ratio -= log_base(t[i], base, constant) + log_base(t[j], base, constant)
        fill_parts(f, x, t_one, w_one, top, one)
        fill_parts(f, x, t_two, w_two, top, two)
        for g in range(G):
            # What the others have, which rounding may make negative where it is nothing.
            rest = max(total[g] - part[i, g] - part[j, g], 0.0)
            changed[g] = max(rest + one[g] + two[g], 1e-300)
            log_ratio += n[g] * math.log(changed[g] / total[g])
        if math.log1p(-rng.random()) < log_ratio:
            t[i], t[j], w[i], w[j] = t_one, t_two, w_one, w_two
            part[i], part[j] = one, two
            total[:] = 0.0
            for c in range(C):
                total += part[c]
            made += 1
    return made
