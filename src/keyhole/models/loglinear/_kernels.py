"""Compiled loops over the cells a fit visits, which are the leaves of a tree with one layer per key.

Shapes, the same in every kernel. A layer has C nodes under the A nodes of the layer above, d keys deep:

    prefix    (d, A) uint8, uint16 or uint32   codes of the keys read before this layer, one column per node above
    branch    (A,) int32      number of nodes of this layer under each node above; they follow each other
    own       (C,) as prefix  code of this layer's key, rising under each node above
    value     (C,) float64    fitted mass of the node: the sum of the cells below it

A margin whose deepest key is that of the layer has its entry for a node at

    sum_r prefix[rows[r], a] strides[r] + own[c].

Sums are taken in two rows by turns, so that an addition need not wait for the one before it.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def ones_in(word):
    """The number of bits set in an unsigned word of 64."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(nogil=True, cache=True, error_model="numpy")
def holds(words, c):
    """Whether bit c of a row of words is set."""
    return (words[c >> 6] >> np.uint64(c & 63)) & np.uint64(1) != np.uint64(0)


@njit(nogil=True, cache=True, error_model="numpy")
def levels_that_may_follow(d, code, node, sizes, seen_first, seen, terms, strides, open_at, admitted, left):
    """Fill ``left`` with the levels of key d that neither an empty margin nor a structural zero forbids."""
    words = (sizes[d] + 63) >> 6
    for w in range(words):
        left[w] = admitted[open_at[d] + node * words + w]
    for k in range(seen_first[d], seen_first[d + 1]):
        at = 0
        for r in range(terms[k, 0], terms[k, 1]):
            at += code[strides[r, 0]] * strides[r, 1]
        for w in range(words):
            left[w] &= seen[terms[k, 2] + at * words + w]


@njit(nogil=True, cache=True, error_model="numpy")
def walk(
    sizes, seen_first, seen, terms, strides, open_at, admitted, child_at, child,
    codes, codes_at, branch, branch_at, width, code, node, left, nodes, at, budget,
):  # fmt: skip
    """Visit partial cells depth-first, ``budget`` of them or those there still are; return how many.

    sizes (J,); margins with deepest key d are seen_first[d]:seen_first[d + 1]; ``terms`` (T, 3) says where the
    rows of ``strides`` (key, stride) of a margin begin and end, and where its bits begin in ``seen``.
    ``admitted`` and ``child`` describe the walk through the structural zeros, those of key d from open_at[d] and
    child_at[d] on. With ``codes`` not empty, the nodes are also written: layer d from codes_at[d] on, as a (d +
    1, width[d]) matrix, the last layer as its own codes only; the numbers of nodes under each node above from
    branch_at[d] on.

    Where the walk stands is kept from one call to the next. ``code`` (J,) and ``node`` (J + 1,) are the current
    path and the nodes of the structural zeros along it, ``left`` (J, words) the levels that may follow; ``nodes``
    (J,) counts the nodes of each layer found to have cells below. ``at`` holds the depth, -1 at the end, and how
    many nodes of the path, from the top, are among those counted. A walk starts at code -1, its first node the
    root, and zeros.
    """
    last = sizes.shape[0] - 1
    fill = codes.shape[0] > 0
    d, counted = at[0], at[1]
    steps = 0
    levels_that_may_follow(d, code, node[d], sizes, seen_first, seen, terms, strides, open_at, admitted, left[d])
    while d >= 0 and steps < budget:
        if d == last:
            here = 0
            for w in range((sizes[d] + 63) >> 6):
                here += ones_in(left[d, w])
            if here > 0:
                for e in range(counted, last):
                    if fill:
                        for r in range(e + 1):
                            codes[codes_at[e] + r * width[e] + nodes[e]] = code[r]
                        branch[branch_at[e] + (nodes[e - 1] - 1 if e > 0 else 0)] += 1
                    nodes[e] += 1
                counted = last
                if fill:
                    place = codes_at[d] + nodes[d]
                    for c in range(sizes[d]):
                        if holds(left[d], c):
                            codes[place] = c
                            place += 1
                    branch[branch_at[d] + (nodes[d - 1] - 1 if d > 0 else 0)] = here
                nodes[d] += here
            d -= 1
            continue
        c = code[d] + 1
        while c < sizes[d] and not holds(left[d], c):
            c += 1
        if c == sizes[d]:
            d -= 1
            continue
        code[d] = c
        counted = min(counted, d)
        node[d + 1] = child[child_at[d] + node[d] * sizes[d] + c]
        d += 1
        code[d] = -1
        levels_that_may_follow(
            d, code, node[d], sizes, seen_first, seen, terms, strides, open_at, admitted, left[d]
        )
        steps += 1
    at[0], at[1] = d, counted
    return steps


@njit(nogil=True, cache=True, error_model="numpy")
def descend(start, own, wanted, at):
    """Move ``at``, a node of the layer above for each wanted code, to the node with that code, or to -1."""
    for i in range(at.shape[0]):
        if at[i] >= 0:
            low, end = start[at[i]], start[at[i] + 1]
            high = end
            while low < high:
                middle = (low + high) >> 1
                if own[middle] < wanted[i]:
                    low = middle + 1
                else:
                    high = middle
            at[i] = low if low < end and own[low] == wanted[i] else -1


@njit(nogil=True, cache=True, error_model="numpy")
def spell_out(branch, above, below):
    """Repeat each column of ``above`` (d, A) once for each node below it, into ``below`` (d, C)."""
    for r in range(above.shape[0]):
        c = 0
        for a in range(branch.shape[0]):
            for _ in range(branch[a]):
                below[r, c] = above[r, a]
                c += 1


@njit(nogil=True, cache=True, error_model="numpy")
def entry(prefix, a, rows, strides):
    """Where the entries of a margin begin for the nodes under node a."""
    if rows.shape[0] == 1:
        return prefix[rows[0], a] * strides[0]
    at = 0
    for r in range(rows.shape[0]):
        at += prefix[rows[r], a] * strides[r]
    return at


@njit(nogil=True, cache=True, error_model="numpy")
def sum_margin(prefix, branch, own, value, rows, strides, sums):
    """Add the values to a margin."""
    c = 0
    for a in range(branch.shape[0]):
        at = entry(prefix, a, rows, strides)
        for _ in range(branch[a]):
            sums[a & 1, at + own[c]] += value[c]
            c += 1


@njit(nogil=True, cache=True, error_model="numpy")
def scale_and_sum(prefix, branch, own, value, rows, strides, factor, next_rows, next_strides, sums):
    """Scale the values to one margin and add them to the next."""
    c = 0
    for a in range(branch.shape[0]):
        at = entry(prefix, a, rows, strides)
        to = entry(prefix, a, next_rows, next_strides)
        for _ in range(branch[a]):
            level = own[c]
            v = value[c] * factor[at + level]
            value[c] = v
            sums[a & 1, to + level] += v
            c += 1


@njit(nogil=True, cache=True, error_model="numpy")
def scale_and_lift(prefix, branch, own, value, rows, strides, factor, above):
    """Scale the values to one margin and give each node above the sum of those below it."""
    c = 0
    for a in range(branch.shape[0]):
        at = entry(prefix, a, rows, strides)
        total = 0.0
        for _ in range(branch[a]):
            v = value[c] * factor[at + own[c]]
            value[c] = v
            total += v
            c += 1
        above[a] = total


@njit(nogil=True, cache=True, error_model="numpy")
def lift(branch, value, above):
    """Give each node above the sum of the values below it."""
    c = 0
    for a in range(branch.shape[0]):
        total = 0.0
        for _ in range(branch[a]):
            total += value[c]
            c += 1
        above[a] = total


@njit(nogil=True, cache=True, error_model="numpy")
def share_out(branch, value, above):
    """Scale the values below each node so that they add up to its own."""
    c = 0
    for a in range(branch.shape[0]):
        total = 0.0
        for i in range(c, c + branch[a]):
            total += value[i]
        ratio = above[a] / total if total > 0.0 else 0.0
        for _ in range(branch[a]):
            value[c] *= ratio
            c += 1


@njit(nogil=True, cache=True, error_model="numpy")
def share_out_and_sum(prefix, branch, own, value, above, rows, strides, sums):
    """As ``share_out``, and add the values to a margin."""
    c = 0
    for a in range(branch.shape[0]):
        at = entry(prefix, a, rows, strides)
        total = 0.0
        for i in range(c, c + branch[a]):
            total += value[i]
        ratio = above[a] / total if total > 0.0 else 0.0
        for _ in range(branch[a]):
            v = value[c] * ratio
            value[c] = v
            sums[a & 1, at + own[c]] += v
            c += 1


@njit(nogil=True, cache=True, error_model="numpy")
def multiply_out(prefix, branch, own, above, first, rows, strides, begins, effects, value):
    """Fill ``value`` with the node above times the effects of all margins that end in this layer.

    Margin k has the rows first[k]:first[k + 1] of ``rows`` and ``strides``; its effects begin at begins[k].
    """
    K = begins.shape[0]
    c = 0
    for a in range(branch.shape[0]):
        stop = c + branch[a]
        for i in range(c, stop):
            value[i] = above[a]
        for k in range(K):
            at = begins[k] + entry(prefix, a, rows[first[k] : first[k + 1]], strides[first[k] : first[k + 1]])
            for i in range(c, stop):
                value[i] *= effects[at + own[i]]
        c = stop


@njit(nogil=True, cache=True, error_model="numpy")
def product_and_sums(prefix, branch, own, above, first, rows, strides, begins, effects, sums):
    """Add the products of ``multiply_out`` to all margins that end in this layer; ``above`` gets what is below it.

    The products themselves are not kept: one sweep, and no memory but the margins.
    """
    K = begins.shape[0]
    at = np.empty(K, np.int64)
    product = np.empty(branch.max())
    c = 0
    for a in range(branch.shape[0]):
        below = branch[a]
        for i in range(below):
            product[i] = above[a]
        for k in range(K):
            at[k] = begins[k]
            for r in range(first[k], first[k + 1]):
                at[k] += prefix[rows[r], a] * strides[r]
            for i in range(below):
                product[i] *= effects[at[k] + own[c + i]]
        total = 0.0
        for i in range(below):
            total += product[i]
        above[a] = total
        for k in range(K):
            for i in range(below):
                sums[at[k] + own[c + i]] += product[i]
        c += below


@njit(nogil=True, cache=True, error_model="numpy")
def sum_margins(prefix, branch, own, value, first, rows, strides, begins, sums):
    """Add the values to all margins that end in this layer, laid out as for ``multiply_out``."""
    c = 0
    for a in range(branch.shape[0]):
        stop = c + branch[a]
        start = c
        while start < stop and value[start] == 0.0:
            start += 1
        if start < stop:
            for k in range(begins.shape[0]):
                at = begins[k]
                for r in range(first[k], first[k + 1]):
                    at += prefix[rows[r], a] * strides[r]
                for i in range(start, stop):
                    sums[at + own[i]] += value[i]
        c = stop


@njit(nogil=True, cache=True, error_model="numpy")
def thin(value, step, start, kept):
    """Systematic sampling: fill ``kept`` with step times the points start, start + step, ... in each value."""
    reached = 0.0
    point = start
    for c in range(value.shape[0]):
        reached += value[c]
        kept[c] = 0.0
        while point < reached:
            kept[c] += step
            point += step


@njit(nogil=True, cache=True, error_model="numpy")
def thin_small(value, floor, step, start):
    """Keep values whose size, value + floor, is at least step; of the others a systematic sample, in place.

    A point falls on every step of the sum of the sizes; a value that is hit is divided by its chance, size/step.
    """
    reached = 0.0
    point = start
    for c in range(value.shape[0]):
        size = value[c] + floor
        if size < step:
            reached += size
            if point < reached:
                value[c] *= step / size
                point += step
            else:
                value[c] = 0.0
