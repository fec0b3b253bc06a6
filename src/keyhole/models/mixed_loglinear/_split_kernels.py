"""Compiled splits and merges of clusters, whose cells are dealt out anew only where a move is made.

Letters as in ``_kernels``. Clusters come and go by themselves only while they have few cells; a large one may be
exchanged for two of nearly the same effect, and two for one, at once.
"""

import math

import numpy as np
from numba import njit

WIDEST = 7.0
"""Of the log odds of the parts of a cluster that is split."""

NEAREST, FARTHEST = 0.01, 4.0
"""Effects of two clusters that are split or merged are so far apart, as logarithms."""

BLUR = 0.05
"""Added to distances between clusters when one is chosen to merge with: near ones are chosen more often."""


@njit(nogil=True, cache=True, error_model="numpy")
def log_base(t, base, constant):
    """The log density of an effect."""
    rise, rate, inverse, narrow, centre = base
    value = rise * t - rate * math.exp(t) - narrow * (t - centre) ** 2 - constant
    return value - inverse * math.exp(-t) if inverse > 0.0 else value


@njit(nogil=True, cache=True, error_model="numpy")
def choose(C, w, rng):
    """A cluster, by the root of its weight."""
    total = 0.0
    for c in range(C):
        total += math.sqrt(w[c])
    y = rng.random() * total
    for c in range(C - 1):
        y -= math.sqrt(w[c])
        if y < 0.0:
            return c
    return C - 1


@njit(nogil=True, cache=True, error_model="numpy")
def nearness(own, c, t, w):
    """How readily a cluster with the effect ``own`` is merged with cluster c."""
    return math.sqrt(w[c]) / (BLUR + abs(t[c] - own))


@njit(nogil=True, cache=True, error_model="numpy")
def log_chance_of_pair(C, t, w, i, j, others_t, others_w):
    """That i and j would be chosen to merge, were they among the clusters with these effects and weights.

    The clusters are those of t and w but for i and j, which have the two values in ``others``.
    """
    roots = math.sqrt(others_w[0]) + math.sqrt(others_w[1])
    near = np.array([nearness(others_t[0], 1, others_t, others_w), nearness(others_t[1], 0, others_t, others_w)])
    sums = near.copy()
    for c in range(C):
        if c != i and c != j:
            roots += math.sqrt(w[c])
            for side in range(2):
                sums[side] += nearness(others_t[side], c, t, w)
    both = 0.0
    for side in range(2):
        both += math.sqrt(others_w[side]) / roots * near[side] / sums[side]
    return math.log(both)


@njit(nogil=True, cache=True, error_model="numpy")
def log_gain(first, after, f, x, share, t_one, t_two, t_whole):
    """The log likelihood of a list of cells with two effects, less that with one."""
    a, b, whole = math.exp(t_one), math.exp(t_two), math.exp(t_whole)
    total, product = 0.0, 1.0
    k = first
    while k >= 0:
        one, two = -x[k] * (a - whole), -x[k] * (b - whole)
        if f[k] > 0:
            one += f[k] * (t_one - t_whole)
            two += f[k] * (t_two - t_whole)
        most = max(one, two)
        if abs(most) > 100.0:  # so that a product that is not yet taken account of cannot overflow
            total += most
            one -= most
            two -= most
        product *= share * math.exp(one) + (1.0 - share) * math.exp(two)
        if product < 1e-200 or product > 1e200:
            total += math.log(product)
            product = 1.0
        k = after[k]
    return total + math.log(product)


@njit(nogil=True, cache=True, error_model="numpy")
def deal(c, new, first, after, f, x, share, t_one, t_two, z, rng):
    """Gives each cell of c one of two effects; those with the second become cluster ``new``. How many stay, go."""
    a, b = math.exp(t_one), math.exp(t_two)
    log_odds = math.log(share) - math.log1p(-share)
    k = first[c]
    first[c] = first[new] = -1
    stay = go = 0
    while k >= 0:
        following = after[k]
        to = c
        if rng.random() * (1.0 + math.exp(log_odds + f[k] * (t_one - t_two) - x[k] * (a - b))) < 1.0:
            to = new
        z[k] = to
        after[k] = first[to]
        first[to] = k
        stay += to == c
        go += to == new
        k = following
    return stay, go


@njit(nogil=True, cache=True, error_model="numpy")
def join(c, other, first, after, z):
    """Cells of ``other`` become cells of c."""
    k = first[other]
    while k >= 0:
        following = after[k]
        z[k] = c
        after[k] = first[c]
        first[c] = k
        k = following
    first[other] = -1


@njit(nogil=True, cache=True, error_model="numpy")
def split_and_merge(tries, f, x, C, t, w, mass, base, constant, z, rng):
    r"""Tries to split a cluster or to merge two, some times; t and w have room for ``tries`` more.

    With :math:`\omega` integrated over nothing but with cells summed over both parts, the posterior density of
    clusters (w, t) with the cells A changes, when one becomes two, by

    .. math:: m \frac{w}{w_1 w_2} \frac{g_0(t_1) g_0(t_2)}{g_0(t)}
        \prod_{k \in A} \frac{u L_k(t_1) + (1 - u) L_k(t_2)}{L_k(t)}, \quad L_k(t) = e^{f_k t - x_k e^t}

    with w_1 = u w, w_2 = (1 - u) w. A split has the log odds of u uniform within WIDEST, t_1 - t_2 of either sign
    and uniform in its logarithm, and keeps w_1 omega_1 + w_2 omega_2 = w omega; the Jacobian is w. A part without
    cells is not a cluster: such a split is not made.

    Fills z; gives C, and the splits and merges that were made.
    """
    after = np.empty(f.size, dtype=np.int32)
    first = np.full(t.size, -1, dtype=np.int32)
    for k in range(f.size - 1, -1, -1):
        after[k] = first[z[k]]
        first[z[k]] = k
    splits = merges = 0
    range_of_logs = math.log(FARTHEST / NEAREST)
    pair_t, pair_w = np.empty(2), np.empty(2)
    for _ in range(tries):
        i = choose(C, w, rng)
        if rng.random() < 0.5:
            u = 1.0 / (1.0 + math.exp(WIDEST * (2.0 * rng.random() - 1.0)))
            apart = NEAREST * math.exp(range_of_logs * rng.random())
            if rng.random() < 0.5:
                apart = -apart
            middle = math.log(u * math.exp((1.0 - u) * apart) + (1.0 - u) * math.exp(-u * apart))
            pair_t[0], pair_t[1] = t[i] + (1.0 - u) * apart - middle, t[i] - u * apart - middle
            pair_w[0], pair_w[1] = u * w[i], (1.0 - u) * w[i]
            log_ratio = log_change(
                C, t, w, i, i, t[i], pair_t, pair_w, mass, base, constant, range_of_logs
            ) + log_gain(first[i], after, f, x, u, pair_t[0], pair_t[1], t[i])
            if math.log1p(-rng.random()) < log_ratio:
                stay, go = deal(i, C, first, after, f, x, u, pair_t[0], pair_t[1], z, rng)
                if stay == 0 or go == 0:
                    if stay == 0:
                        join(i, C, first, after, z)
                    continue
                t[i], w[i] = pair_t[0], pair_w[0]
                t[C], w[C] = pair_t[1], pair_w[1]
                C += 1
                splits += 1
        elif C > 1:
            total = 0.0
            for c in range(C):
                if c != i:
                    total += nearness(t[i], c, t, w)
            y = rng.random() * total
            j = -1
            for c in range(C):
                if c != i:
                    j = c
                    y -= nearness(t[i], c, t, w)
                    if y < 0.0:
                        break
            whole_w = w[i] + w[j]
            u, apart = w[i] / whole_w, t[i] - t[j]
            if abs(math.log(w[i] / w[j])) > WIDEST or not NEAREST <= abs(apart) <= FARTHEST:
                continue
            whole_t = t[j] + math.log(u * math.exp(apart) + 1.0 - u)
            pair_t[0], pair_t[1], pair_w[0], pair_w[1] = t[i], t[j], w[i], w[j]
            log_ratio = log_change(C, t, w, i, j, whole_t, pair_t, pair_w, mass, base, constant, range_of_logs)
            log_ratio += log_gain(first[i], after, f, x, u, t[i], t[j], whole_t)
            log_ratio += log_gain(first[j], after, f, x, u, t[i], t[j], whole_t)
            if math.log1p(-rng.random()) < -log_ratio:
                join(i, j, first, after, z)
                t[i], w[i] = whole_t, whole_w
                C -= 1
                if j != C:
                    join(j, C, first, after, z)
                    t[j], w[j] = t[C], w[C]
                merges += 1
    return C, splits, merges


@njit(nogil=True, cache=True, error_model="numpy")
def log_change(C, t, w, i, j, whole_t, pair_t, pair_w, mass, base, constant, range_of_logs):
    """Log of all but the likelihood in the ratio of two clusters to one; i = j where there is one, to be split."""
    roots = math.sqrt(pair_w[0] + pair_w[1])
    for c in range(C):
        if c != i and c != j:
            roots += math.sqrt(w[c])
    log_chance_of_one = 0.5 * math.log(pair_w[0] + pair_w[1]) - math.log(roots)
    prior = log_base(pair_t[0], base, constant) + log_base(pair_t[1], base, constant)
    prior += math.log(mass) - log_base(whole_t, base, constant)
    proposal = math.log(2.0 * WIDEST * abs(pair_t[0] - pair_t[1]) * range_of_logs)
    return prior + proposal + log_chance_of_pair(C, t, w, i, j, pair_t, pair_w) - log_chance_of_one
