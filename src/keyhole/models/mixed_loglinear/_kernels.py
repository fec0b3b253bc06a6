"""Compiled loops of the mixed-effects log-linear sampler.

Letters: K cells, C clusters that exist. Of cell k ``x[k]`` is the mean of its count where its effect is 1, and
``f[k]`` its count; of cluster c ``t[c]`` is the logarithm of the effect, ``w[c]`` the weight. ``left`` is the
weight of all clusters that do not exist yet, ``base`` the five coefficients of the law of their effects.
"""

import math

import numpy as np
from numba import njit

from keyhole.numerics._log_concave_kernels import draw_log_concave, fallen, log_density, mode_of

PATIENCE = 6
"""Clusters that are proposed to a cell before all of them are weighed."""

FEW_PEOPLE = 8
"""The largest count whose cells share proposals."""

MANY_REFUSALS, NEVER = 20.0, 70.0
"""Log odds: of clusters nobody has looked at, by their bound; and against anything but rounding."""

NOTHING = 1e-290
"""Weight below this is none: differences of such numbers would be rounded to no difference at all."""

BINS = 4096
"""Parts of all weight that empty cells choose from."""

STEPS, FINEST = 128, 0.1
"""Of log x, between the values for which proposals are worked out."""


@njit(nogil=True, cache=True, error_model="numpy")
def draw_effect(base, f, x, nobody, rng):
    """The logarithm of an effect, given counts that add up to f and means that add up to x times the effect."""
    rise, rate, inverse, narrow, centre = base
    if inverse == 0.0 and narrow == 0.0:
        # A gamma variable, in logarithms since shapes may be tiny.
        shape = rise + f
        return (
            math.log(rng.standard_gamma(shape + 1.0)) + math.log(1.0 - rng.random()) / shape - math.log(rate + x)
        )
    return draw_log_concave((rise + f, rate + x, inverse, narrow, centre, nobody, 0), rng)


@njit(nogil=True, cache=True, error_model="numpy")
def draw_effects(base, f, x, found, rng):
    """Fills ``found`` with one effect for each count."""
    nobody = np.zeros(0, dtype=np.int64)
    for c in range(f.size):
        found[c] = draw_effect(base, f[c], x[c], nobody, rng)


@njit(nogil=True, cache=True, error_model="numpy")
def moments(base, f, x, nobody):
    """Of omega^f exp(-x omega) under the base: log of the integral, up to the base's constant, mean and variance.

    Sums at equal steps, which for a smooth peak are as exact as numbers are, once steps are a fifth of its width.
    """
    rise, rate, inverse, narrow, centre = base
    if inverse == 0.0 and narrow == 0.0:
        shape, whole = rise + f, rate + x
        return math.lgamma(shape) - shape * math.log(whole), shape / whole, shape / whole**2
    law = (rise + f, rate + x, inverse, narrow, centre, nobody, 0)
    mode = mode_of(law)
    peak = log_density(mode, law)
    step = 0.2 * min(fallen(mode, peak, 1.0, law)[0], fallen(mode, peak, -1.0, law)[0])
    total, first, second = 1.0, 1.0, 1.0
    for side in (-1.0, 1.0):
        at = 1
        while True:
            away = side * at * step
            term = math.exp(log_density(mode + away, law) - peak)
            total += term
            first += term * math.exp(away)
            second += term * math.exp(2.0 * away)
            if term * math.exp(2.0 * max(away, 0.0)) < 1e-17:
                break
            at += 1
    scale = math.exp(mode)
    mean = first / total
    return peak + math.log(total * step), scale * mean, scale * scale * (second / total - mean * mean)


@njit(nogil=True, cache=True, error_model="numpy")
def all_moments(base, f, x, found):
    """Fills found (3, K), less the constant of the base."""
    nobody = np.zeros(0, dtype=np.int64)
    log_base = moments(base, 0.0, 0.0, nobody)[0]
    for k in range(f.size):
        found[0, k], found[1, k], found[2, k] = moments(base, f[k], x[k], nobody)
        found[0, k] -= log_base


@njit(nogil=True, cache=True, error_model="numpy")
def gamma_law(a, b, f, log_x, highest, found):
    """Fills found (3, K) for a gamma base: log of the negative binomial law but for what depends on f alone, its
    slope and minus its curvature in log x."""
    for k in range(f.size):
        x = math.exp(min(log_x[k], highest))
        share = x / (b + x)
        value = -a * math.log1p(x / b)
        if f[k] > 0:
            value += f[k] * math.log(max(share, 1e-300))
        whole = (a + f[k]) * share
        found[0, k], found[1, k], found[2, k] = value, f[k] - whole, whole * (1.0 - share)


@njit(nogil=True, cache=True, error_model="numpy")
def weigh_all(f, x, log_most, C, t, omega, log_w, left, weight, base, nobody, u):
    """A cluster of a cell, all of them weighed; C for the others, weighed as if they were as likely as can be.

    Where the base has next to nothing at the effect that would suit the cell best, that is far too much, and the
    others would be looked at by the thousands. The chance of all of them is at most their mean weight over that of
    the known ones; where it is below exp(-NEVER), they are left out.
    """
    top = -math.inf
    for c in range(C):
        weight[c] = log_w[c] + f * t[c] - x * omega[c]
        top = max(top, weight[c])
    if left > 0.0 and math.log(left) + log_most > top + MANY_REFUSALS:
        mean = moments(base, f, x, nobody)[0] - moments(base, 0.0, 0.0, nobody)[0]
        if math.log(left) + mean < top - NEVER:
            left = 0.0
    weight[C] = math.log(left) + log_most
    top = max(top, weight[C])
    total = 0.0
    for c in range(C + 1):
        # What is nothing beside 1 in double precision needs no exponential.
        weight[c] = math.exp(weight[c] - top) if weight[c] > top - 45.0 else 0.0
        total += weight[c]
    y = u * total
    c = 0
    while c < C and y >= weight[c]:
        y -= weight[c]
        c += 1
    return c if left > 0.0 else min(c, C - 1)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_proposals(f, x, C, t, omega, log_w, left, sums):
    """Sums, cluster by cluster, of w omega^f exp(-x omega); all others are as if they were as likely as can be."""
    top = math.log(left) + f * (math.log(f / x) - 1.0)
    sums[C] = top
    for c in range(C):
        sums[c] = log_w[c] + f * t[c] - x * omega[c]
        top = max(top, sums[c])
    total = 0.0
    for c in range(C + 1):
        total += math.exp(sums[c] - top)
        sums[c] = total


@njit(nogil=True, cache=True, error_model="numpy")
def fill_guide(w, C, left, guide, ends):
    """Of BINS equal parts of all weight, which cluster has all of each (C for the others), or -1; and sums."""
    total = w[:C].sum() + left
    y, filled = 0.0, 0
    for c in range(C + 1):
        y += (w[c] if c < C else left) / total
        ends[c] = y
        whole = min(int(y * BINS), BINS)
        while filled < whole:
            guide[filled] = c
            filled += 1
        if filled == whole and filled < BINS and c < C:
            guide[filled] = -1
            filled += 1
    while filled < BINS:
        guide[filled] = C if left > 0.0 else C - 1
        filled += 1


@njit(nogil=True, cache=True, error_model="numpy")
def reveal(C, t, w, omega, log_w, left, mass, base, nobody, rng):
    """Draws the next cluster that nobody has, a part of what is left; gives what is left then."""
    t[C] = draw_effect(base, 0.0, 0.0, nobody, rng)
    omega[C] = math.exp(t[C])
    w[C] = -left * math.expm1(math.log1p(-rng.random()) / mass)
    log_w[C] = math.log(w[C])
    left -= w[C]
    return left if left > NOTHING else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def allocate_from(k, tries, f, x, old, old_left, C, left, t, w, omega, log_w, mass, base, rows, sums, z, rng):
    """Goes on with cell k, to which some clusters were proposed already; until there is no room for a new one."""
    nobody = np.zeros(0, dtype=np.int64)
    guide, ends = np.empty(BINS, dtype=np.int32), np.empty(old + 1)
    fill_guide(w, old, old_left, guide, ends)
    weight = np.empty(t.size + 1)
    lowest, step = rows
    last = old if old_left > 0.0 else old - 1  # where nothing is left, rounding must not find it
    while k < f.size:
        chosen, smaller, at, ahead = -1, 0.0, 0, 1
        log_most, log_most_smaller = 0.0, 0.0
        few = f[k] <= FEW_PEOPLE
        if f[k] > 0:
            log_x = math.log(x[k])
            log_most = f[k] * (math.log(f[k]) - log_x - 1.0)
            if few:
                place = min(max(int((log_x - lowest) / step), 0), STEPS)
                log_smaller = lowest + place * step
                smaller = math.exp(log_smaller)
                log_most_smaller = f[k] * (math.log(f[k]) - log_smaller - 1.0)
                at = (f[k] - 1) * (STEPS + 1) + place
                if sums[at, old] == 0.0:
                    fill_proposals(f[k], smaller, old, t, omega, log_w, old_left, sums[at])
        while chosen < 0:
            if t.size == C:
                return k, tries, C, left
            proposed = few and tries < PATIENCE
            tries += 1
            u = rng.random()
            if proposed:
                if f[k] == 0:
                    place = int(u * BINS)
                    c = guide[place]
                    if c >= 0:
                        u = u * BINS - place  # what is not used up yet
                    else:
                        c = min(np.searchsorted(ends, u, side="right"), last)
                        u = rng.random()
                else:
                    c = min(np.searchsorted(sums[at], u * sums[at, old], side="right"), last)
                    u = rng.random()
                new = c == old
                if new:
                    y = rng.random() * old_left
                    while c < C and y >= w[c]:
                        y -= w[c]
                        c += 1
            else:
                c = weigh_all(f[k], x[k], log_most, C, t, omega, log_w, left, weight, base, nobody, u)
                u = rng.random()
                new = c == C
            if c == C:
                left = reveal(C, t, w, omega, log_w, left, mass, base, nobody, rng)
                C += 1
            if proposed or new:
                if not new:
                    loss = (x[k] - smaller) * omega[c]
                elif proposed and f[k] > 0:
                    loss = x[k] * omega[c] - f[k] * t[c] + log_most_smaller
                else:
                    loss = x[k] * omega[c] - f[k] * t[c] + log_most
                if u < 1.0 - loss or u < math.exp(-loss):
                    chosen = c
                elif not proposed:
                    # To look at more of them than one at a time changes nothing but the cost of weighing them all.
                    for _ in range(min(ahead, t.size - C)):
                        if left > 0.0:
                            left = reveal(C, t, w, omega, log_w, left, mass, base, nobody, rng)
                            C += 1
                    ahead *= 2
            else:
                chosen = c
        z[k] = chosen
        tries = 0
        k += 1
    return k, tries, C, left


@njit(nogil=True, cache=True, error_model="numpy")
def allocate(f, x, C, t, w, left, mass, base, z, rng):
    """Gives every cell a cluster: P(c) is proportional to w[c] exp(f t[c] - x exp(t[c])).

    Clusters have no end. Those that no cell has are drawn as they are looked at, each a Beta(1, mass) part of what
    is left with an effect from the base, and stay as they were drawn: given all clusters cells are independent.

    A cluster is proposed as for a cell with the same count and a smaller x, and taken with probability
    exp(-(x - smaller) omega). For an empty cell the smaller x is 0: clusters are proposed by weight, at a cost
    that does not depend on how many there are, and 1 - y < exp(-y) spares nearly all exponentials. For a cell with
    few people it is the next of a row of values, whose proposals many cells share. Clusters that did not exist at
    the beginning are proposed by weight, as if omega^f exp(-x omega) were as large as it can be at the smaller x.
    A cell with many people, or one that has refused all proposals, weighs all clusters that were looked at, and
    the rest by that largest value at its own x.

    Fills z (K,). Gives C, left, t and w, which are larger arrays if there was no more room.
    """
    old, old_left = C, left
    lowest, highest = math.inf, -math.inf
    for k in range(f.size):
        if 0 < f[k] <= FEW_PEOPLE:
            lowest, highest = min(lowest, x[k]), max(highest, x[k])
    lowest = math.log(lowest) if lowest > 0.0 else -700.0
    step = max((math.log(highest) - lowest) / STEPS, FINEST) if highest > 0.0 else 1.0
    sums = np.zeros((FEW_PEOPLE * (STEPS + 1), C + 1))
    k = tries = 0
    # The loop over cells is a function of its own since compiled code is slow where arrays may be replaced.
    while True:
        omega, log_w = np.exp(t), np.log(w)
        k, tries, C, left = allocate_from(
            k, tries, f, x, old, old_left, C, left, t, w, omega, log_w, mass, base, (lowest, step), sums, z, rng
        )
        if k == f.size:
            return C, left, t, w
        t, w = np.concatenate((t, t)), np.concatenate((w, w))


@njit(nogil=True, cache=True, error_model="numpy")
def totals(z, f, x, cells, counts, exposures):
    """Cells, counts and sums of x by cluster."""
    for k in range(z.size):
        c = z[k]
        cells[c] += 1
        counts[c] += f[k]
        exposures[c] += x[k]
