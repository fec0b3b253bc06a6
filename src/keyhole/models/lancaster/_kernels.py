"""The compiled depth-first pass over all cells.

Shapes, the same in every kernel: J keys in the order of the pass, T levels of all keys together, P entries of all
pairs' tables, R entries of all triples', G values of lambda.

    sizes      (J,) int64       number of levels of each key
    offset     (J + 1,) int64   where the levels of each key begin among the T
    margin     (T,) float64     probability of each level
    pair_at    (J, J) int64     where the table of a pair k < l begins among the P, row by row
    triple     (R,) float64     d_ikl for i < k < l; empty in a second-order model
    triple_at  (J, J, J) int64  where the table of a triple begins
    three_low, three_high (J,)  sums of the smallest and largest d_ikl over the triples of keys from d on
    child      flat int64       node that a level leads to, nodes by levels for each key
    child_at   (J,) int64       where the children of a key's nodes begin
    threshold  (G,) float64     -1/lambda up to rounding, rising from -inf to -1: p(lambda) > 0 where S is above

What is known after the first d keys of a cell are chosen is row d of the following arrays. Row 0 never changes and
the others are room to work in, so that M and its bounds, as large as the tables, are made once for all walks.

    S  (J,)       the terms among the chosen keys
    q  (J,)       the product of their margins
    node (J,)     the node of the decision diagram: 0 impossible, 1 admissible whatever follows
    V  (J, T)     for each level of a later key, its terms with chosen keys alone
    M  (J, P)     for two levels of later keys k < l, d_kl plus their terms with one chosen key; one row in order 2
    low, high (J, T)  for each level of a later key the sum of the smallest (largest) M with keys after it

so the cell's S is that of row d, plus V of its later levels, plus M of its later pairs, plus later triples.
"""

import numpy as np
from numba import njit

IMPOSSIBLE, ADMISSIBLE = 0, 1


@njit(nogil=True, cache=True, error_model="numpy")
def bound_pairs(sizes, offset, pair_at, d, M, low, high):
    """Fill ``low`` and ``high`` for the keys from d on."""
    J = sizes.shape[0]
    for k in range(d, J):
        for x in range(sizes[k]):
            least, most = 0.0, 0.0
            for m in range(k + 1, J):
                at = pair_at[k, m] + x * sizes[m]
                smallest, largest = M[at], M[at]
                for y in range(1, sizes[m]):
                    smallest = min(smallest, M[at + y])
                    largest = max(largest, M[at + y])
                least += smallest
                most += largest
            low[offset[k] + x] = least
            high[offset[k] + x] = most


@njit(nogil=True, cache=True, error_model="numpy")
def choose(sizes, offset, margin, pair_at, triple, triple_at, child, child_at, d, x, S, q, node, V, M, low, high):
    """Fill row d + 1 from row d and level x of key d."""
    J = sizes.shape[0]
    third = triple.shape[0] > 0
    S[d + 1] = S[d] + V[d, offset[d] + x]
    q[d + 1] = q[d] * margin[offset[d] + x]
    node[d + 1] = node[d] if node[d] <= ADMISSIBLE else child[child_at[d] + node[d] * sizes[d] + x]
    row = d if third else 0
    for m in range(d + 1, J):
        at = pair_at[d, m] + x * sizes[m]
        o = offset[m]
        for y in range(sizes[m]):
            V[d + 1, o + y] = V[d, o + y] + M[row, at + y]
    if third:
        for k in range(d + 1, J):
            for m in range(k + 1, J):
                entries = sizes[k] * sizes[m]
                at = pair_at[k, m]
                from_triple = triple_at[d, k, m] + x * entries
                for e in range(entries):
                    M[d + 1, at + e] = M[d, at + e] + triple[from_triple + e]
        bound_pairs(sizes, offset, pair_at, d + 1, M[d + 1], low[d + 1], high[d + 1])


@njit(nogil=True, cache=True, error_model="numpy")
def bounds(sizes, offset, d, S, V, low, high):
    """Two numbers between which S lies for every cell below row d, triples of later keys left out."""
    least, most = S, S
    for k in range(d, sizes.shape[0]):
        smallest, largest = np.inf, -np.inf
        for t in range(offset[k], offset[k + 1]):
            smallest = min(smallest, V[t] + low[t])
            largest = max(largest, V[t] + high[t])
        least += smallest
        most += largest
    return least, most


@njit(nogil=True, cache=True, error_model="numpy")
def mean_interaction(offset, margin, d, S, V):
    """The mean of S below row d: terms of two or three later keys have mean zero under independence."""
    mean = S
    for t in range(offset[d], offset[-1]):
        mean += margin[t] * V[t]
    return mean


@njit(nogil=True, cache=True, error_model="numpy")
def first_without(threshold, S):
    """The first lambda of the grid at which a cell with this S <= -1 has no probability."""
    g = threshold.shape[0] - 1
    while threshold[g - 1] >= S:
        g -= 1
    return g


@njit(nogil=True, cache=True, error_model="numpy")
def last_key(offset, margin, child, threshold, admissible, S, q, V, total, hole):
    """Add the cells that differ in the last key alone; ``child`` says which are admissible if not all are."""
    o = offset[-2]
    for t in range(o, offset[-1]):
        s = S + V[t]
        if not admissible:
            if child[t - o] != ADMISSIBLE:
                continue
            total[0] += q * margin[t]
            total[1] += q * margin[t] * s
        if s <= threshold[-1]:
            g = first_without(threshold, s)
            mass = q * margin[t]
            hole[g, 0] += mass
            hole[g, 1] += mass * s


@njit(nogil=True, cache=True, error_model="numpy")
def walk(
    prefix, sizes, offset, margin, pair_at, triple, triple_at, three_low, three_high, M, low, high,
    child, child_at, root, threshold, S, q, node, V, budget, total, hole,
):  # fmt: skip
    """Add all cells that begin with the levels of ``prefix``; return how many cells and branches were visited.

    ``total`` (2,) gains the sums of q and q S over admissible cells, row g of ``hole`` (G, 2) those over the
    admissible cells that have no probability from the g-th lambda on. A branch ends early where every cell has
    some, or where all lose it at the same lambda, so that closed forms serve; and when ``budget`` is exceeded.
    """
    J = sizes.shape[0]
    last, base = J - 1, prefix.shape[0]
    third = triple.shape[0] > 0
    for d in range(base):
        choose(sizes, offset, margin, pair_at, triple, triple_at, child, child_at, d, prefix[d], S, q, node, V,
               M, low, high)  # fmt: skip
    following = np.zeros(J, dtype=np.int64)
    d, visited = base, 0
    arrived = True
    while d >= base and visited <= budget:
        if arrived:
            following[d] = 0
            visited += 1
            done = node[d] == IMPOSSIBLE
            if node[d] == ADMISSIBLE and (d == base or node[d - 1] != ADMISSIBLE):
                total[0] += q[d]
                total[1] += q[d] * mean_interaction(offset, margin, d, S[d], V[d])
            if not done and d == last:
                at = child_at[d] + node[d] * sizes[d]
                open_to = child[at : at + sizes[d]]
                free = node[d] == ADMISSIBLE
                last_key(offset, margin, open_to, threshold, free, S[d], q[d], V[d], total, hole)
                visited += sizes[d]
                done = True
            elif node[d] == ADMISSIBLE:
                row = d if third else 0
                least, most = bounds(sizes, offset, d, S[d], V[d], low[row], high[row])
                least += three_low[d]
                most += three_high[d]
                if least > threshold[-1]:
                    done = True
                elif most <= threshold[-1] and first_without(threshold, least) == first_without(threshold, most):
                    g = first_without(threshold, most)
                    hole[g, 0] += q[d]
                    hole[g, 1] += q[d] * mean_interaction(offset, margin, d, S[d], V[d])
                    done = True
            if done:
                d -= 1
                arrived = False
                continue
        if following[d] == sizes[d]:
            d -= 1
            arrived = False
            continue
        x = following[d]
        following[d] += 1
        choose(sizes, offset, margin, pair_at, triple, triple_at, child, child_at, d, x, S, q, node, V, M, low,
               high)  # fmt: skip
        d += 1
        arrived = True
    return visited


@njit(nogil=True, cache=True, error_model="numpy")
def walk_all(
    prefixes, sizes, offset, margin, pair_at, triple, triple_at, three_low, three_high, M, low, high,
    child, child_at, root, threshold, budget, total, hole,
):  # fmt: skip
    """Walk from every row of ``prefixes``, as long as the budget lasts; return how much was visited."""
    J = sizes.shape[0]
    S, q, node, V = np.zeros(J), np.ones(J), np.full(J, root), np.zeros((J, offset[J]))
    visited = 0
    for prefix in prefixes:
        if visited > budget:
            break
        visited += walk(
            prefix, sizes, offset, margin, pair_at, triple, triple_at, three_low, three_high, M, low, high,
            child, child_at, root, threshold, S, q, node, V, budget - visited, total, hole,
        )  # fmt: skip
    return visited
