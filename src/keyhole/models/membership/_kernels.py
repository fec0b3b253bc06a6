"""Compiled loops of the mixed membership sampler.

Letters: n records, J keys, R rows (one for each level of each key, numbered through), K profiles that exist,
C columns of room for them (K <= C). ``theta`` (R, C) holds the profiles, so that what one level needs is together
in memory; ``g0`` (C,) their weights; ``left`` the weight of all profiles that do not exist yet.
"""

import numpy as np
from numba import njit

from keyhole.numerics._alias_kernels import make_alias
from keyhole.numerics._log_concave_kernels import draw_of

BLOCK = 64
"""Records that are allocated together: few enough to stay in the processor's nearest cache."""


@njit(nogil=True, cache=True, error_model="numpy")
def share_tables(theta, g0, K, whole, keep, other):
    """Walker's alias tables of g0[k] theta[r, k] by row r: k is kept below keep[r, k], and is else other[r, k].

    ``whole`` (R,) becomes the sum over k.
    """
    small = np.empty(K, dtype=np.int64)
    large = np.empty(K, dtype=np.int64)
    for r in range(theta.shape[0]):
        total = 0.0
        for k in range(K):
            total += g0[k] * theta[r, k]
        whole[r] = total
        for k in range(K):
            keep[r, k] = g0[k] * theta[r, k] * (K / total) if total > 0.0 else 1.0
        make_alias(keep[r], other[r], small, large)


@njit(nogil=True, cache=True, error_model="numpy")
def draw_from_law(law, u, knot, curve, guide):
    """The quantile u of a tabulated law: its density is linear between knots, its distribution exact at them.

    curve[law, i] is the distribution function at knot i and the density there.
    """
    i = guide[law, np.uintp(u * guide.shape[1])]
    while curve[law, i + 1, 0] <= u:
        i += 1
    f0, f1 = curve[law, i, 1], curve[law, i + 1, 1]
    d = (u - curve[law, i, 0]) / (curve[law, i + 1, 0] - curve[law, i, 0])
    return knot[i] + (knot[i + 1] - knot[i]) * d * (f0 + f1) / (f0 + np.sqrt(f0 * f0 * (1.0 - d) + f1 * f1 * d))


@njit(nogil=True, cache=True, error_model="numpy")
def log_gamma(a, rng):
    """The logarithm of a Gamma variable of shape a, which may be tiny: one of shape a + 1 times U^(1/a)."""
    if a >= 1.0:
        return np.log(rng.standard_gamma(a))
    return np.log(rng.standard_gamma(a + 1.0)) + np.log(1.0 - rng.random()) / a


@njit(nogil=True, cache=True, error_model="numpy")
def draw_profile(theta, k, mass, base, start, counts, rng):
    """Fills column k of theta from Dirichlet(mass_j base_j + counts) for each key j."""
    for j in range(start.size - 1):
        top = -np.inf
        for r in range(start[j], start[j + 1]):
            theta[r, k] = log_gamma(mass[j] * base[r] + counts[r], rng)
            top = max(top, theta[r, k])
        total = 0.0
        for r in range(start[j], start[j + 1]):
            theta[r, k] = np.exp(theta[r, k] - top)
            total += theta[r, k]
        for r in range(start[j], start[j + 1]):
            theta[r, k] /= total


@njit(nogil=True, cache=True, error_model="numpy")
def draw_profiles(theta, mass, base, start, counts, rng):
    """Fills theta (R, K), column k given counts[:, k]."""
    for k in range(theta.shape[1]):
        draw_profile(theta, k, mass, base, start, counts[:, k], rng)


@njit(nogil=True, cache=True, error_model="numpy")
def broken_off(left, alpha0, rng):
    """The weight of one more profile: a Beta(1, alpha0) part of what is left."""
    return -left * np.expm1(np.log1p(-rng.random()) / alpha0)


@njit(nogil=True, cache=True, error_model="numpy")
def weigh_newborn(theta, g0, left, base, old, K, extra):
    """extra[r]: the weight, at row r, of the profiles from ``old`` on and of those that do not exist yet."""
    for r in range(theta.shape[0]):
        extra[r] = left * base[r]
        for k in range(old, K):
            extra[r] += g0[k] * theta[r, k]


@njit(nogil=True, cache=True, error_model="numpy")
def doubled(theta, g0, counts, tables):
    """The same with twice the columns."""
    R, C = theta.shape
    more_theta = np.zeros((R, 2 * C))
    more_g0 = np.zeros(2 * C)
    more_counts = np.zeros((R, 2 * C), dtype=np.int64)
    more_tables = np.zeros(2 * C, dtype=np.int64)
    more_theta[:, :C] = theta
    more_g0[:C] = g0
    more_counts[:, :C] = counts
    more_tables[:C] = tables
    return more_theta, more_g0, more_counts, more_tables


@njit(nogil=True, cache=True, error_model="numpy")
def throw(b0, size, u, a, row, whole, extra, edge, x, pick):
    """Where the uniform number of each record of a block, from b0 on, falls among its entries.

    x is the place on the whole length, edge[J] + a (whole + extra); pick the entry of the first bucket it is in.
    """
    J = edge.shape[0] - 1
    for b in range(b0, size):
        x[b] = u[b] * (edge[J, b] + a[b] * (whole[row[b]] + extra[row[b]]))
        pick[b] = 0
    for e in range(1, J):
        for b in range(b0, size):
            pick[b] += x[b] >= edge[e, b]


@njit(nogil=True, cache=True, error_model="numpy")
def holders(z, K):
    """The keys of each of K profiles, with room for births."""
    # Neighbours that share a profile would wait for each other in one tally.
    tally = np.zeros((4, max(K, 1)), dtype=np.int64)
    if K > 0:
        for i in range(z.shape[0]):
            for j in range(z.shape[1]):
                tally[np.uintp(j % 4), np.uintp(z[i, j])] += 1
    return tally.sum(axis=0)[:K]


@njit(nogil=True, cache=True, error_model="numpy")
def alike(own, k, size):
    """How many keys of the records of a block have a profile."""
    found = 0
    for j in range(own.shape[0]):
        for b in range(size):
            found += own[j, b] == k
    return found


@njit(nogil=True, cache=True, error_model="numpy")
def weigh_profiles(j, b, r, a, K, left, theta, g0, base, own, rng):
    """A profile for key j of record b, all of them weighed; K for one that does not exist yet.

    Dead ones have no weight.
    """
    weight = np.empty(K + 1)
    total = a * left * base[r]
    weight[K] = total
    for k in range(K):
        weight[k] = a * g0[k]
    for m in range(own.shape[0]):
        if m != j:
            weight[own[m, b]] += 1.0
    for k in range(K):
        weight[k] *= theta[r, k]
        total += weight[k]
    y = rng.random() * total
    k = np.uint32(0)
    while k < K and y >= weight[k]:
        y -= weight[k]
        k += np.uint32(1)
    return k


@njit(nogil=True, cache=True, error_model="numpy")
def allocate(
    alone, records, z, alpha, each, K, left, theta, g0, alpha0, mass, base, start,
    whole, keep, other, u, v, knot, curve, guide, counts, tables, rng,
):  # fmt: skip
    """Redraws z, key by key if they move ``alone``, and the tables and alpha of each record in any case.

    P(z_ij = k) is proportional to (n_ik without j + alpha_i g0_k) theta[r, k]. The counts make the first bucket,
    one entry for each other key of the record; the rest is alpha_i times a table that all records share. Adds to
    counts (R, C), the records by level and profile, and to tables (C,). ``u`` (J, n) and ``v`` (n,) are uniform.
    Records have an alpha ``each``, which is redrawn, or share alpha[0], which is left as it is.

    A profile that no other key has is as one that does not exist yet: what is known of it comes from this key
    alone. It gives its weight back before the key is drawn, and is dead from then on.

    The tables are those of a Chinese restaurant with concentration alpha_i g0_k per profile. Where a uniform
    number fell within the interval that it chose is again uniform, and seats the customer; that of a key which
    stays is still unused.

    Records are taken in blocks, key by key within a block: what one record needs does not wait for another's.
    Returns K, left and the arrays theta, g0, counts, tables, which are larger ones if there was no more room.
    """
    n, J = records.shape
    R = theta.shape[0]
    old = K
    extra = np.zeros(R)
    weigh_newborn(theta, g0, left, base, old, K, extra)
    scale = old / whole
    last = old - 1e-9
    dead = False
    # Unsigned numbers spare the compiler a check for indices that count from the end.
    own = np.empty((J, BLOCK), dtype=np.uint32)
    row = np.empty((J, BLOCK), dtype=np.uint32)
    edge = np.zeros((J + 1, BLOCK))
    place = np.empty((J, BLOCK))
    width = np.empty((J, BLOCK))
    a = np.empty(BLOCK)
    inverse = np.empty(BLOCK)
    x = np.empty(BLOCK)
    pick = np.empty(BLOCK, dtype=np.uint32)
    same = np.empty(BLOCK, dtype=np.int32)
    total = np.empty(BLOCK, dtype=np.int32)
    seen = np.zeros(R)
    counted = each and alone
    outside = holders(z, theta.shape[1] if counted else 0)
    inside = np.zeros(theta.shape[1], dtype=np.bool_)  # profiles that nobody outside of the block has
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        for b in range(size):
            for j in range(J):
                own[j, b] = z[first + b, j]
                row[j, b] = start[j] + records[first + b, j]
        for b in range(size):
            a[b] = alpha[first + b] if each else alpha[0]
            inverse[b] = 1.0 / a[b]
        if counted:
            for j in range(J):
                for b in range(size):
                    outside[own[j, b]] -= 1
            for k in range(K):
                inside[k] = outside[k] == 0
        for j in range(J):
            if not alone:
                for b in range(size):
                    place[j, b] = u[j, first + b]
                    width[j, b] = 1.0
                continue
            for m in range(J):
                if m == j:
                    edge[m + 1] = edge[m]
                else:
                    for b in range(size):
                        edge[m + 1, b] = edge[m, b] + theta[row[j, b], own[m, b]]
            throw(0, size, u[j, first:], a, row[j], whole, extra, edge, x, pick)
            for b in range(size):
                r = row[j, b]
                k = np.uint32(K + 1)
                y = x[b] - edge[J, b]
                died = inside[own[j, b]] and alike(own, own[j, b], size) == 1
                if died:
                    left += g0[own[j, b]]
                    g0[own[j, b]] = 0.0
                    dead = True
                elif y < 0.0:
                    m = np.uintp(pick[b])
                    own[j, b] = own[m, b]
                    place[j, b] = x[b] - edge[m, b]
                    width[j, b] = edge[m + 1, b] - edge[m, b]
                    continue
                elif y * inverse[b] < whole[r] or extra[r] == 0.0:
                    y = min(y * inverse[b] * scale[r], last)
                    column = np.int64(y)
                    y -= column
                    k = np.uint32(column)
                    # Written without a branch: which of the two it is cannot be foreseen.
                    limit = keep[r, k]
                    kept = y < limit
                    k = k if kept else np.uint32(other[r, k])
                    place[j, b] = y if kept else y - limit
                    width[j, b] = limit if kept else 1.0 - limit
                    if not dead or g0[k] > 0.0:
                        own[j, b] = k
                        continue
                    k = np.uint32(K + 1)
                else:
                    y = y * inverse[b] - whole[r]
                    k = np.uint32(old)
                    while k < K and y >= g0[k] * theta[r, k]:
                        y -= g0[k] * theta[r, k]
                        k += np.uint32(1)
                    if k < K:
                        place[j, b] = y
                        width[j, b] = g0[k] * theta[r, k]
                weighed = k > K
                if weighed:
                    k = weigh_profiles(j, b, r, a[b], K, left, theta, g0, base, own, rng)
                own[j, b] = k
                born = k == K
                if weighed or born:
                    place[j, b] = rng.random()
                    width[j, b] = 1.0
                if born:
                    if theta.shape[1] == K:
                        theta, g0, counts, tables = doubled(theta, g0, counts, tables)
                        outside = np.append(outside, np.zeros_like(outside))
                        inside = np.append(inside, np.zeros_like(inside))
                    seen[r] = 1.0
                    draw_profile(theta, K, mass, base, start, seen, rng)
                    seen[r] = 0.0
                    g0[K] = broken_off(left, alpha0, rng)
                    left -= g0[K]
                    inside[K] = True
                    K += 1
                if died or born:
                    weigh_newborn(theta, g0, left, base, old, K, extra)
                    throw(b + 1, size, u[j, first:], a, row[j], whole, extra, edge, x, pick)
        if counted:
            for j in range(J):
                for b in range(size):
                    outside[own[j, b]] += 1
        total[:] = 0
        for j in range(J):
            same[:] = 0
            for m in range(j):
                for b in range(size):
                    same[b] += own[m, b] == own[j, b]
            for b in range(size):
                k = own[j, b]
                counts[row[j, b], k] += 1
                weight = a[b] * g0[k]
                opened = (place[j, b] * (weight + same[b]) < weight * width[j, b]) | (same[b] == 0)
                tables[k] += opened
                total[b] += opened
        for b in range(size):
            for j in range(J):
                z[first + b, j] = own[j, b]
            if each:
                alpha[first + b] = draw_from_law(total[b], v[first + b], knot, curve, guide)
    return K, left, theta, g0, counts, tables


@njit(nogil=True, cache=True, error_model="numpy")
def relabel(z, label):
    """z becomes label[z]."""
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] = label[z[i, j]]


@njit(nogil=True, cache=True, error_model="numpy")
def draw_weights(tables, shape, rate, g0, rng):
    """Fills g0 (K,) given the tables of profiles; gives alpha0, of a Gamma prior, and the weight that is left."""
    customers = 0
    for k in range(tables.size):
        customers += tables[k]
    nobody = np.zeros(0, dtype=np.int64)
    alpha0 = draw_of((shape + tables.size, rate, 0.0, 0.0, 0.0, nobody, customers), rng)
    whole = 0.0
    for k in range(tables.size):
        g0[k] = rng.standard_gamma(float(tables[k]))
        whole += g0[k]
    left = rng.standard_gamma(alpha0)
    whole += left
    for k in range(tables.size):
        g0[k] /= whole
    return alpha0, left / whole


@njit(nogil=True, cache=True, error_model="numpy")
def tables_of(customers, a, rng):
    """The tables of a Chinese restaurant with that many customers and concentration a.

    Customer c = 0, 1, ... opens one with probability a/(a + c): if a Poisson process has a point in [c, c + 1),
    where its intensity is log(1 + a/c). From c = 2 on candidates come from a process of intensity a/(x - 1), which
    is never less, and are thinned.
    """
    found = 0
    for c in range(min(customers, 2)):
        if rng.random() * (a + c) < a:
            found += 1
    before = 1.0  # x - 1
    while True:
        before *= np.exp(rng.standard_exponential() / a)
        if not before + 1.0 < customers:
            return found
        c = np.floor(before + 1.0)
        if rng.random() * a < np.log1p(a / c) * before:
            found += 1
            before = c


@njit(nogil=True, cache=True, error_model="numpy")
def draw_level_prior(counts, mass, base, start, rng):
    """Redraws mass (J,) and base (R,) given the records by row and profile (R, K), the profiles integrated out.

    Records of row r and profile k sit at tables with concentration mass_j base_r. With t tables and c_k records
    of profile k, base_j ~ Dirichlet(1 + t), eta_k ~ Beta(mass_j, c_k), mass_j ~ Gamma(1 + sum t, 1 - sum log eta).
    """
    for j in range(start.size - 1):
        found, rate, whole = 0, 1.0, 0.0
        for k in range(counts.shape[1]):
            records = 0
            for r in range(start[j], start[j + 1]):
                records += counts[r, k]
            if records > 0:
                own, others = log_gamma(mass[j], rng), np.log(rng.standard_gamma(float(records)))
                rate -= own - np.logaddexp(own, others)
        for r in range(start[j], start[j + 1]):
            here = 0
            for k in range(counts.shape[1]):
                if counts[r, k] > 0:
                    here += tables_of(counts[r, k], mass[j] * base[r], rng)
            found += here
            base[r] = rng.standard_gamma(1.0 + here)
            whole += base[r]
        # Not zero by underflow, since both divide.
        for r in range(start[j], start[j + 1]):
            base[r] = max(base[r] / whole, 1e-12)
        mass[j] = max(rng.standard_gamma(1.0 + found) / rate, 1e-8)


@njit(nogil=True, cache=True, error_model="numpy")
def imagine(
    wanted, most, alpha, each, K, left, theta, g0, alpha0, mass, base, start, whole, keep, other,
    knot, curve, guide, order, group, groups, child, child_start, root,
    counts, tables, longer, x, z, rng,
):  # fmt: skip
    """Draws records from the model until ``wanted`` are admissible or ``most`` are not.

    A record is drawn key by key in the diagram's order and left as soon as it is decided. Inadmissible ones add to
    counts (R, C), to tables (C,) and to longer (J,), the records with more than d keys drawn. If x (wanted, J) has
    rows, admissible records are drawn to the end and stored with their z and alpha.

    ``whole``, ``keep``, ``other`` are the alias table of the weights, as a table with one row.
    Returns the numbers of admissible and inadmissible records, K, left and the arrays theta, g0, counts, tables.
    """
    R = theta.shape[0]
    J = start.size - 1
    old = K
    profile = theta.T.copy()
    own = np.empty(J, dtype=np.int64)
    row = np.empty(J, dtype=np.int64)
    opened = np.empty(J, dtype=np.int64)
    nobody = np.zeros(R)
    stored = x.shape[0] > 0
    got = 0
    missed = 0
    while got < wanted and missed < most:
        a = draw_from_law(0, rng.random(), knot, curve, guide) if each else alpha[0]
        node = root
        d = 0
        while d < J and node != 0 and (node != 1 or stored):
            seat = rng.random() * (a + d)
            if seat < d:
                k = own[int(seat)]
                opened[d] = 0
            else:
                opened[d] = 1
                k = -1
                u = rng.random()
                u *= whole[0] + left + g0[old:K].sum()
                if u < whole[0] or (left == 0.0 and old == K):
                    u = min(u / whole[0], 0.9999999999999999) * old
                    k = int(u)
                    if u - k >= keep[0, k]:
                        k = other[0, k]
                else:
                    u -= whole[0]
                    for m in range(old, K):
                        if u < g0[m]:
                            k = m
                            break
                        u -= g0[m]
                    if k < 0:
                        k = K
                        if theta.shape[1] == K:
                            theta, g0, counts, tables = doubled(theta, g0, counts, tables)
                            profile = theta.T.copy()
                        draw_profile(theta, K, mass, base, start, nobody, rng)
                        for r in range(R):
                            profile[K, r] = theta[r, K]
                        g0[K] = broken_off(left, alpha0, rng)
                        left -= g0[K]
                        K += 1
            j = order[d]
            u = rng.random()
            r = start[j]
            while r < start[j + 1] - 1 and u >= profile[k, r]:
                u -= profile[k, r]
                r += 1
            own[d] = k
            row[d] = r
            node = child[child_start[d] + node * groups[d] + group[r]]
            d += 1
        if node == 0:
            for e in range(d):
                counts[row[e], own[e]] += 1
                tables[own[e]] += opened[e]
                longer[e] += 1
            missed += 1
        else:
            if stored:
                for e in range(J):
                    x[got, order[e]] = row[e] - start[order[e]]
                    z[got, order[e]] = own[e]
                if each:
                    alpha[got] = a
            got += 1
    return got, missed, K, left, theta, g0, counts, tables


@njit(nogil=True, cache=True, error_model="numpy")
def draw_memberships(points, alpha, each, share, knot, curve, guide, g, rng):
    """Fills g (T, K) with memberships from Dirichlet(alpha share); where ``each`` has an alpha, from its prior.

    Sticks v ~ Beta(1, alpha) are broken off one after the other, each for a profile drawn from ``share``. The
    first use the columns of points (T, 1 + 2 S), later ones random numbers, until hardly anything is left.
    """
    T, K = g.shape
    edge = np.cumsum(share)
    S = (points.shape[1] - 1) // 2
    for t in range(T):
        a = draw_from_law(0, points[t, 0], knot, curve, guide) if each else alpha
        rest = 1.0
        for k in range(K):
            g[t, k] = 0.0
        s = 0
        while rest > 0.01:
            u, v = (points[t, 1 + 2 * s], points[t, 2 + 2 * s]) if s < S else (rng.random(), rng.random())
            kept = np.exp(np.log1p(-u) / a)
            k = min(np.searchsorted(edge, v * edge[K - 1], side="right"), K - 1)
            g[t, k] += rest * (1.0 - kept)
            rest *= kept
            s += 1
        for k in range(K):
            g[t, k] += rest * share[k]


@njit(nogil=True, cache=True, error_model="numpy")
def mean_products(cells, start, mixed, block, mean):
    """mean[c]: the mean over t of the product over keys j of mixed[start_j + cells[c, j], t].

    Cells in lexicographic order share the products of the first keys with their predecessor.
    """
    N, J = cells.shape
    T = mixed.shape[1]
    product = np.empty((J + 1, block))
    product[0] = 1.0
    for c in range(N):
        mean[c] = 0.0
    for first in range(0, T, block):
        width = min(block, T - first)
        for c in range(N):
            d = 0
            while c > 0 and d < J and cells[c, d] == cells[c - 1, d]:
                d += 1
            for j in range(d, J):
                row = mixed[start[j] + cells[c, j]]
                for t in range(width):
                    product[j + 1, t] = product[j, t] * row[first + t]
            total = 0.0
            for t in range(width):
                total += product[J, t]
            mean[c] += total
    for c in range(N):
        mean[c] /= T
