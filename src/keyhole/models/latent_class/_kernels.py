"""Compiled parts of the latent class sampler: arrays in, arrays out."""

import math

import numpy as np
from numba import njit

MANY = 64
"""Records of a cell from which its count is split by binomials instead of one by one."""

SMALLEST = 1e-290
"""Sums of products below this may have lost their digits and are formed again in logarithms."""


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _sum(values):
    """A sum in four strands, which a processor adds at once; the same on every machine."""
    size = len(values)
    a = b = c = d = 0.0
    whole = size - size % 4
    for k in range(0, whole, 4):
        a += values[k]
        b += values[k + 1]
        c += values[k + 2]
        d += values[k + 3]
    for k in range(whole, size):
        a += values[k]
    return (a + b) + (c + d)


@njit(nogil=True, cache=True, error_model="numpy")
def cell_probabilities(rows, depth, theta, log_theta, weight, log_share, log_admissible, extreme, found):
    """Sum over classes of weight times the product of the probabilities of a cell's levels.

    A cell shares the products of its first ``depth`` keys with the cell before it. Classes whose factors may be
    too large or too small for that are ``extreme``: theirs are added as logarithms.
    """
    cells, keys = rows.shape
    classes = len(weight)
    partial = np.empty((keys + 1, classes))
    partial[0] = weight
    for c in range(cells):
        for j in range(depth[c], keys):
            row = rows[c, j]
            for k in range(classes):
                partial[j + 1, k] = partial[j, k] * theta[row, k]
        for k in extreme:
            partial[keys, k] = math.exp(_log_product(rows[c], k, log_theta, log_share, log_admissible))
        found[c] = _sum(partial[keys])


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _log_product(row_of_cell, k, log_theta, log_share, log_admissible):
    """The log probability of one cell and one class.

    No cell has more than the admissible mass. Where logarithms are so large that their difference is nothing but
    rounding it would be anything else.
    """
    total = -log_admissible[k]
    for row in row_of_cell:
        total += log_theta[row, k]
    return log_share[k] + min(total, 0.0)


@njit(nogil=True, cache=True, error_model="numpy")
def _in_logarithms(row_of_cell, log_theta, log_share, log_admissible, last):
    """Products of one cell relative to the largest, for cells so unlikely that products vanish."""
    classes = len(log_share)
    largest = -np.inf
    for k in range(classes):
        last[k] = _log_product(row_of_cell, k, log_theta, log_share, log_admissible)
        largest = max(largest, last[k])
    whole = 0.0
    for k in range(classes):
        last[k] = math.exp(last[k] - largest)
        whole += last[k]
    return whole


@njit(nogil=True, cache=True, error_model="numpy")
def allocate(
    rows,
    depth,
    counts,
    theta,
    log_theta,
    weight,
    log_share,
    log_admissible,
    extreme,
    rng,
    uniforms,
    member,
    sizes,
    level_counts,
):
    """Give each record a class, given the parameters: records of one cell after the other.

    Fills the class of each record, the size of each class and, by level and class, the records.
    """
    cells, keys = rows.shape
    classes = len(weight)
    partial = np.empty((keys + 1, classes))
    partial[0] = weight
    share = np.zeros(classes, dtype=np.int64)
    sizes[:] = 0
    level_counts[:] = 0
    record = 0
    for c in range(cells):
        for j in range(depth[c], keys):
            row = rows[c, j]
            for k in range(classes):
                partial[j + 1, k] = partial[j, k] * theta[row, k]
        last = partial[keys]
        for k in extreme:
            last[k] = math.exp(_log_product(rows[c], k, log_theta, log_share, log_admissible))
        total = _sum(last)
        if not total > SMALLEST:
            total = _in_logarithms(rows[c], log_theta, log_share, log_admissible, last)
        if counts[c] == 1:
            k = _pick(last, uniforms[record] * total)
            member[record] = k
            record += 1
            sizes[k] += 1
            for j in range(keys):
                level_counts[rows[c, j], k] += 1
            continue
        if counts[c] < MANY:
            for i in range(counts[c]):
                share[_pick(last, uniforms[record + i] * total)] += 1
        else:
            _split(counts[c], last, total, rng, share)
        for k in range(classes):
            if share[k]:
                member[record : record + share[k]] = k
                record += share[k]
                sizes[k] += share[k]
                for j in range(keys):
                    level_counts[rows[c, j], k] += share[k]
                share[k] = 0


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _pick(masses, reach):
    """The class in whose part of the cumulated masses a number falls."""
    k, last = 0, len(masses) - 1
    so_far = masses[0]
    while so_far < reach and k < last:
        k += 1
        so_far += masses[k]
    return k


@njit(nogil=True, cache=True, error_model="numpy")
def _split(count, masses, total, rng, share):
    """Split a count over the classes by conditional binomials."""
    left, rest = count, total
    for k in range(len(masses) - 1):
        if left == 0:
            return
        chance = masses[k] / rest if rest > 0.0 else 0.0
        if chance >= 1.0:
            share[k] += left
            return
        taken = rng.binomial(left, chance) if chance > 0.0 else 0
        share[k] += taken
        left -= taken
        rest -= masses[k]
    share[len(masses) - 1] += left


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def log_gamma_draw(shape, rng):
    """The logarithm of a gamma variate, which for a small shape may lie far below the smallest number."""
    if shape < 1.0:
        return math.log(rng.standard_gamma(shape + 1.0)) + math.log1p(-rng.random()) / shape
    return math.log(rng.standard_gamma(shape))


@njit(nogil=True, cache=True, error_model="numpy")
def draw_levels(prior, level_counts, begins, rng, log_theta):
    """Each class's probabilities of the levels of each key: Dirichlet laws with the records added to the prior."""
    classes = level_counts.shape[1]
    for j in range(len(begins) - 1):
        for k in range(classes):
            largest = -np.inf
            for row in range(begins[j], begins[j + 1]):
                log_theta[row, k] = log_gamma_draw(prior[row] + level_counts[row, k], rng)
                largest = max(largest, log_theta[row, k])
            whole = 0.0
            for row in range(begins[j], begins[j + 1]):
                whole += math.exp(log_theta[row, k] - largest)
            norm = largest + math.log(whole)
            for row in range(begins[j], begins[j + 1]):
                log_theta[row, k] -= norm


@njit(nogil=True, cache=True, error_model="numpy")
def draw_sticks(sizes, concentration, rng, log_weight):
    """Log weights by stick-breaking given the sizes of the classes; gives the sum of log(1 - V)."""
    classes = len(sizes)
    beyond = 0
    for k in range(classes):
        beyond += sizes[k]
    left, lost = 0.0, 0.0
    for k in range(classes - 1):
        beyond -= sizes[k]
        own = log_gamma_draw(1.0 + sizes[k], rng)
        others = log_gamma_draw(concentration + beyond, rng)
        high = max(own, others)
        both = high + math.log(math.exp(own - high) + math.exp(others - high))
        log_weight[k] = left + own - both
        left += others - both
        lost += others - both
    log_weight[classes - 1] = left
    return lost


@njit(nogil=True, cache=True, error_model="numpy")
def _log_sticks(size, beyond, concentration):
    """log of B(1 + N_k, a + N_>k) / B(1, a): what one stick, integrated out, makes of the sizes."""
    return (
        math.lgamma(1.0 + size)
        + math.lgamma(concentration + beyond)
        - math.lgamma(1.0 + concentration + size + beyond)
        + math.log(concentration)
    )


@njit(nogil=True, cache=True, error_model="numpy")
def log_prior_of_sizes(sizes, concentration):
    """The log probability of an allocation with these class sizes, the sticks integrated out."""
    beyond = 0
    for k in range(len(sizes)):
        beyond += sizes[k]
    total = 0.0
    for k in range(len(sizes) - 1):
        beyond -= sizes[k]
        total += _log_sticks(sizes[k], beyond, concentration)
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def swap_labels(sizes, concentration, rng, label):
    """Exchange the labels of neighbouring classes by Metropolis steps, from the last pair to the first.

    The sticks are integrated out, so that the chance depends on the sizes only. ``label[k]`` becomes the class
    that is now called k.
    """
    beyond = 0
    last = len(sizes) - 1
    for k in range(last - 1, -1, -1):
        one, other = sizes[k], sizes[k + 1]
        if one != other:
            change = _log_sticks(other, one + beyond, concentration) - _log_sticks(
                one, other + beyond, concentration
            )
            if k + 1 < last:
                change += _log_sticks(one, beyond, concentration) - _log_sticks(other, beyond, concentration)
            if math.log1p(-rng.random()) < change:
                sizes[k], sizes[k + 1] = other, one
                label[k], label[k + 1] = label[k + 1], label[k]
        beyond += sizes[k + 1]


@njit(nogil=True, cache=True, error_model="numpy")
def _log_mass_density(log_mass, base, sums, classes):
    """Of log mass: a Gamma(1, 1) prior and Dirichlet(mass base) laws with given sums of logarithms."""
    mass = math.exp(log_mass)
    total = log_mass - mass + classes * math.lgamma(mass)
    for x in range(len(base)):
        total += mass * base[x] * sums[x] - classes * math.lgamma(mass * base[x])
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _log_pair_density(share, whole, mass, first, second, classes):
    """Of the share that the first of two levels has in their part of the base."""
    a, b = mass * whole * share, mass * whole * (1.0 - share)
    return a * first + b * second - classes * (math.lgamma(a) + math.lgamma(b))


@njit(nogil=True, cache=True, error_model="numpy")
def draw_base(log_theta, sizes, begins, rng, mass, base):
    """Mass and base of each key given the level probabilities of the occupied classes, by slice sampling."""
    occupied = 0
    for k in range(len(sizes)):
        occupied += sizes[k] > 0
    for j in range(len(begins) - 1):
        low, high = begins[j], begins[j + 1]
        sums = np.zeros(high - low)
        for row in range(low, high):
            for k in range(len(sizes)):
                if sizes[k] > 0:
                    sums[row - low] += log_theta[row, k]
        own = base[low:high]
        mass[j] = _slice_mass(mass[j], own, sums, occupied, rng)
        for turn in range(high - low if high - low > 1 else 0):
            x = turn
            y = (x + 1 + rng.integers(0, high - low - 1)) % (high - low)
            _slice_pair(x, y, own, mass[j], sums, occupied, rng)


@njit(nogil=True, cache=True, error_model="numpy")
def _slice_mass(mass, base, sums, occupied, rng):
    """A slice step of the logarithm of the mass, stepping out by two."""
    now = math.log(mass)
    height = _log_mass_density(now, base, sums, occupied) + math.log1p(-rng.random())
    low = now - 2.0 * rng.random()
    high = low + 2.0
    while _log_mass_density(low, base, sums, occupied) > height and low > -40.0:
        low -= 2.0
    while _log_mass_density(high, base, sums, occupied) > height and high < 40.0:
        high += 2.0
    while True:
        proposed = low + (high - low) * rng.random()
        if _log_mass_density(proposed, base, sums, occupied) > height:
            return math.exp(proposed)
        if proposed < now:
            low = proposed
        else:
            high = proposed
        if high - low < 1e-12:
            return mass


@njit(nogil=True, cache=True, error_model="numpy")
def _slice_pair(x, y, base, mass, sums, occupied, rng):
    """A slice step of how two levels share their part of the base."""
    whole = base[x] + base[y]
    now = base[x] / whole
    height = _log_pair_density(now, whole, mass, sums[x], sums[y], occupied) + math.log1p(-rng.random())
    low, high = 0.0, 1.0
    while high - low > 1e-14:
        proposed = low + (high - low) * rng.random()
        if 0.0 < proposed < 1.0 and _log_pair_density(proposed, whole, mass, sums[x], sums[y], occupied) > height:
            base[x], base[y] = whole * proposed, whole * (1.0 - proposed)
            return
        if proposed < now:
            low = proposed
        else:
            high = proposed
