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
def cell_probabilities(rows, depth, theta, log_theta, weight, log_weight, extreme, found):
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
            partial[keys, k] = _product(rows[c], k, log_theta, log_weight)
        found[c] = _sum(partial[keys])


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _product(row_of_cell, k, log_theta, log_weight):
    """The product of one cell and one class."""
    total = log_weight[k]
    for row in row_of_cell:
        total += log_theta[row, k]
    return math.exp(total)


@njit(nogil=True, cache=True, error_model="numpy")
def _in_logarithms(row_of_cell, log_theta, log_weight, last):
    """Products of one cell relative to the largest, for cells so unlikely that products vanish."""
    classes = len(log_weight)
    largest = -np.inf
    for k in range(classes):
        total = log_weight[k]
        for row in row_of_cell:
            total += log_theta[row, k]
        last[k] = total
        largest = max(largest, total)
    whole = 0.0
    for k in range(classes):
        last[k] = math.exp(last[k] - largest)
        whole += last[k]
    return whole


@njit(nogil=True, cache=True, error_model="numpy")
def allocate(
    rows, depth, counts, theta, log_theta, weight, log_weight, extreme, rng, uniforms, member, sizes, level_counts
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
            last[k] = _product(rows[c], k, log_theta, log_weight)
        total = _sum(last)
        if not total > SMALLEST:
            total = _in_logarithms(rows[c], log_theta, log_weight, last)
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
def draw_levels(prior, level_counts, begins, rng, log_theta, theta):
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
                theta[row, k] = math.exp(log_theta[row, k] - largest)
                whole += theta[row, k]
            norm = largest + math.log(whole)
            for row in range(begins[j], begins[j + 1]):
                log_theta[row, k] -= norm
                theta[row, k] /= whole


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


@njit(nogil=True, cache=True, error_model="numpy")
def split_or_merge(rows, cell_of, prior, mass, concentration, rng, member, sizes, level_counts):
    """Propose to split the class that two random records share, or to merge their two classes.

    A split deals the records of the class to the two seeds' sides one after the other, in random order, with the
    chances that the records dealt so far give (Dahl 2005). Sticks and level probabilities are integrated out.
    Gives whether the proposal was accepted.
    """
    records, keys = len(member), rows.shape[1]
    classes = len(sizes)
    i = rng.integers(0, records)
    j = (i + 1 + rng.integers(0, records - 1)) % records
    home, guest = member[i], member[j]
    splits = home == guest
    empty = 0
    for k in range(classes):
        empty += sizes[k] == 0
    if splits:
        if empty == 0:
            return False
        which = rng.integers(0, empty)
        for k in range(classes):
            if sizes[k] == 0:
                if which == 0:
                    guest = k
                    break
                which -= 1
    crowd = np.empty(sizes[home] + (0 if splits else sizes[guest]), dtype=np.int64)
    found = 0
    for r in range(records):
        if (member[r] == home or member[r] == guest) and r != i and r != j:
            crowd[found] = r
            found += 1
    for turn in range(found - 1, 0, -1):
        other = rng.integers(0, turn + 1)
        crowd[turn], crowd[other] = crowd[other], crowd[turn]
    tally = np.zeros((2, level_counts.shape[0]))
    people = np.ones(2)
    for t in range(keys):
        tally[0, rows[cell_of[i], t]] += 1.0
        tally[1, rows[cell_of[j], t]] += 1.0
    guests = np.zeros(found, dtype=np.bool_)
    log_dealt = 0.0
    for position in range(found):
        own = rows[cell_of[crowd[position]]]
        log_odds = math.log(people[1] / people[0])
        for t in range(keys):
            row = own[t]
            odds = (tally[1, row] + prior[row]) / (tally[0, row] + prior[row])
            log_odds += math.log(odds * ((people[0] + mass[t]) / (people[1] + mass[t])))
        u = 1.0 - rng.random()
        moves = math.log(u) - math.log1p(-u) < log_odds if splits else member[crowd[position]] == guest
        guests[position] = moves
        # log of the logistic function of plus or minus the log odds
        against = -log_odds if moves else log_odds
        log_dealt -= against + math.log1p(math.exp(-against)) if against > 0.0 else math.log1p(math.exp(against))
        side = 1 if moves else 0
        people[side] += 1.0
        for t in range(keys):
            tally[side, own[t]] += 1.0
    apart = sizes.copy()
    apart[home], apart[guest] = int(people[0]), int(people[1])
    together = sizes.copy()
    together[home], together[guest] = int(people[0] + people[1]), 0
    gain = log_prior_of_sizes(apart, concentration) - log_prior_of_sizes(together, concentration)
    # Marginal likelihoods of the two sides against that of the whole.
    for row in range(level_counts.shape[0]):
        whole = tally[0, row] + tally[1, row]
        if whole > 0.0:
            gain += math.lgamma(prior[row] + tally[0, row]) + math.lgamma(prior[row] + tally[1, row])
            gain -= math.lgamma(prior[row] + whole) + math.lgamma(prior[row])
    for t in range(keys):
        gain += math.lgamma(mass[t] + people[0] + people[1]) + math.lgamma(mass[t])
        gain -= math.lgamma(mass[t] + people[0]) + math.lgamma(mass[t] + people[1])
    # A split chose one of the empty labels; a merge leaves one more of them to choose from.
    gain += math.log(empty if splits else empty + 1.0) - log_dealt
    if not splits:
        gain = -gain
    if not math.log1p(-rng.random()) < gain:
        return False
    if splits:
        member[j] = guest
        for position in range(found):
            if guests[position]:
                member[crowd[position]] = guest
        sizes[home], sizes[guest] = int(people[0]), int(people[1])
        for row in range(level_counts.shape[0]):
            level_counts[row, guest] = int(tally[1, row])
            level_counts[row, home] -= int(tally[1, row])
    else:
        for r in range(records):
            if member[r] == guest:
                member[r] = home
        sizes[home] += sizes[guest]
        sizes[guest] = 0
        for row in range(level_counts.shape[0]):
            level_counts[row, home] += level_counts[row, guest]
            level_counts[row, guest] = 0
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _log_group_weights(log_theta, k, first, last, group_of, found):
    """Log probabilities of a key's levels, added up by group."""
    found[:] = -np.inf
    for row in range(first, last):
        found[group_of[row]] = max(found[group_of[row]], log_theta[row, k])
    sums = np.zeros(len(found))
    for row in range(first, last):
        largest = found[group_of[row]]
        if largest > -np.inf:
            sums[group_of[row]] += math.exp(log_theta[row, k] - largest)
    for g in range(len(found)):
        if found[g] > -np.inf:
            found[g] += math.log(sums[g])


@njit(nogil=True, cache=True, error_model="numpy")
def _log_below(log_theta, k, begins, keys, nodes, groups, edges, child, group_of, weights, below):
    """The log admissible mass below every node of the diagram, for one class."""
    layers = len(keys)
    below[nodes[layers]], below[nodes[layers] + 1] = -np.inf, 0.0
    for d in range(layers - 1, -1, -1):
        _log_group_weights(log_theta, k, begins[keys[d]], begins[keys[d] + 1], group_of, weights[: groups[d]])
        for v in range(nodes[d + 1] - nodes[d]):
            largest = -np.inf
            for g in range(groups[d]):
                largest = max(largest, weights[g] + below[nodes[d + 1] + child[edges[d] + v * groups[d] + g]])
            total = 0.0
            if largest > -np.inf:
                for g in range(groups[d]):
                    ahead = below[nodes[d + 1] + child[edges[d] + v * groups[d] + g]]
                    total += math.exp(weights[g] + ahead - largest)
                largest += math.log(total)
            below[nodes[d] + v] = largest


@njit(nogil=True, cache=True, error_model="numpy")
def log_admissible_mass(log_theta, begins, keys, nodes, groups, edges, child, group_of, root, log_mass):
    """The log chance of each class that independent levels make an admissible cell."""
    below = np.empty(nodes[len(keys)] + 2)
    weights = np.empty(groups.max())
    for k in range(len(log_mass)):
        _log_below(log_theta, k, begins, keys, nodes, groups, edges, child, group_of, weights, below)
        log_mass[k] = below[root]


@njit(nogil=True, cache=True, error_model="numpy")
def draw_admissible_cells(
    member, log_theta, begins, keys, nodes, groups, edges, child, group_of, root, rng, codes
):
    """Cells of people of given classes, sorted by class; no draw is ever rejected."""
    below = np.empty(nodes[len(keys)] + 2)
    weights = np.empty(groups.max())
    now = -1
    for i in range(len(member)):
        k = member[i]
        if k != now:
            _log_below(log_theta, k, begins, keys, nodes, groups, edges, child, group_of, weights, below)
            now = k
        node = root
        for d in range(len(keys)):
            first, last = begins[keys[d]], begins[keys[d] + 1]
            reach = rng.random()
            chosen = -1
            for row in range(first, last):
                ahead = child[edges[d] + node * groups[d] + group_of[row]]
                share = math.exp(log_theta[row, k] + below[nodes[d + 1] + ahead] - below[nodes[d] + node])
                if share > 0.0:
                    chosen = row
                    reach -= share
                    if reach < 0.0:
                        break
            codes[i, keys[d]] = chosen - first
            node = child[edges[d] + node * groups[d] + group_of[chosen]]


@njit(nogil=True, cache=True, error_model="numpy")
def draw_admissible_levels(
    prior, level_counts, sizes, begins, keys, nodes, groups, edges, child, group_of, root, rng, log_theta, log_mass
):
    """Each class's level probabilities where some cells are impossible, and its log admissible mass.

    The conditional of one key's probabilities is a Dirichlet law over A^N, with A linear in them. Scaled by a
    gamma variate they are independent gamma variates G; and A^-N is an integral over u of u^(N-1) exp(-u A).
    Given u the G are gamma variates again, of the rates 1 + u h. One pass up the diagram gives the mass below
    every node; on the way down each key is drawn anew and its derivatives h follow from what is above, new, and
    below, old. All in logarithms: the mass of an empty class may be far below the smallest number.
    """
    layers = len(keys)
    below = np.empty(nodes[layers] + 2)
    reach = np.empty(nodes[layers] + 2)
    weights, slope = np.empty(groups.max()), np.empty(groups.max())
    for k in range(len(sizes)):
        _log_below(log_theta, k, begins, keys, nodes, groups, edges, child, group_of, weights, below)
        reach[:] = -np.inf
        reach[root] = 0.0
        mass = below[root]
        for d in range(layers):
            first, last = begins[keys[d]], begins[keys[d] + 1]
            here, ahead, start = nodes[d], nodes[d + 1], edges[d]
            _log_slopes(reach, below, here, ahead, child, start, groups[d], slope)
            log_u = -np.inf
            if sizes[k] > 0:
                whole = 0.0
                for row in range(first, last):
                    whole += prior[row]
                log_u = math.log(rng.standard_gamma(float(sizes[k]))) - log_gamma_draw(whole, rng) - mass
            largest = -np.inf
            for row in range(first, last):
                drawn = log_gamma_draw(prior[row] + level_counts[row, k], rng)
                rate = log_u + slope[group_of[row]]
                if rate > -np.inf:
                    drawn -= rate + math.log1p(math.exp(-rate)) if rate > 0.0 else math.log1p(math.exp(rate))
                log_theta[row, k] = drawn
                largest = max(largest, drawn)
            total = 0.0
            for row in range(first, last):
                total += math.exp(log_theta[row, k] - largest)
            norm = largest + math.log(total)
            for row in range(first, last):
                log_theta[row, k] -= norm
            _log_group_weights(log_theta, k, first, last, group_of, weights[: groups[d]])
            mass = -np.inf
            for g in range(groups[d]):
                mass = _log_add(mass, weights[g] + slope[g])
            for v in range(ahead - here):
                if reach[here + v] > -np.inf:
                    for g in range(groups[d]):
                        node = ahead + child[start + v * groups[d] + g]
                        reach[node] = _log_add(reach[node], reach[here + v] + weights[g])
        log_mass[k] = mass


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _log_add(a, b):
    """log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a + math.log1p(math.exp(b - a)) if b > -np.inf else a


@njit(nogil=True, cache=True, error_model="numpy")
def _log_slopes(reach, below, here, ahead, child, start, groups, slope):
    """Log derivatives of the admissible mass by the probability of each group of a layer's levels."""
    for g in range(groups):
        slope[g] = -np.inf
        for v in range(ahead - here):
            if reach[here + v] > -np.inf:
                slope[g] = _log_add(slope[g], reach[here + v] + below[ahead + child[start + v * groups + g]])
