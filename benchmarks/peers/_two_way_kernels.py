"""Cells with no empty two-way margin, and proportional fitting over them.

A cell is one integer: the code of variable d sits in the bits from ``shift[d]`` on, the first variable highest,
so that cells found depth-first come in increasing order.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def active_cells(seen, levels, shift, most):
    """Packed cells all of whose pairs of levels were seen, and the steps taken; stops after ``most`` + 1 cells.

    ``seen[a, b]`` tells whether levels a and b occur together; the levels of variable d are numbered from
    ``sum(levels[:d])`` on.
    """
    keys = len(levels)
    offset = np.zeros(keys, np.int64)
    for d in range(1, keys):
        offset[d] = offset[d - 1] + levels[d - 1]
    found = np.empty(1024, np.int64)
    number, steps = 0, 0
    code = np.full(keys, -1, np.int64)
    packed = np.zeros(keys + 1, np.int64)
    d = 0
    while d >= 0 and number <= most:
        code[d] += 1
        if code[d] == levels[d]:
            code[d] = -1
            d -= 1
            continue
        steps += 1
        level = offset[d] + code[d]
        possible = seen[level, level]
        for e in range(d):
            if not seen[offset[e] + code[e], level]:
                possible = False
                break
        if not possible:
            continue
        packed[d + 1] = packed[d] | (code[d] << shift[d])
        if d < keys - 1:
            d += 1
            continue
        if number == len(found):
            grown = np.empty(2 * number, np.int64)
            grown[:number] = found
            found = grown
        found[number] = packed[keys]
        number += 1
    return found[:number].copy(), steps


@njit(nogil=True, cache=True)
def fit_margins(cells, value, high, low, mask, width, start, target, tolerance, most_rounds):
    """Scale ``value`` in place to each margin in turn, until a whole round finds all within ``tolerance``.

    Margin t crosses the variables at bits ``high[t]`` and ``low[t]``, whose bits fill ``mask[t, 0]`` and
    ``mask[t, 1]``; its entry (a, b) is number ``start[t] + a * width[t] + b`` of ``target``. Gives the number of
    rounds and the largest difference that the last of them found. Each pass scales to one margin and sums
    the next.
    """
    margins = len(high)
    summed = np.zeros(len(target))
    for c in range(len(cells)):
        a, b = (cells[c] >> high[0]) & mask[0, 0], (cells[c] >> low[0]) & mask[0, 1]
        summed[start[0] + a * width[0] + b] += value[c]
    rounds, worst = 0, np.inf
    while rounds < most_rounds and worst > tolerance:
        rounds, worst = rounds + 1, 0.0
        for t in range(margins):
            s = (t + 1) % margins
            factor = np.zeros(start[t + 1] - start[t])
            for m in range(len(factor)):
                now, wanted = summed[start[t] + m], target[start[t] + m]
                worst = max(worst, abs(now - wanted))
                factor[m] = wanted / now if now > 0.0 else 0.0
            following = np.zeros(start[s + 1] - start[s])
            high_t, low_t, mask_a, mask_b, width_t = high[t], low[t], mask[t, 0], mask[t, 1], width[t]
            high_s, low_s, mask_c, mask_d, width_s = high[s], low[s], mask[s, 0], mask[s, 1], width[s]
            for c in range(len(cells)):
                cell = cells[c]
                scaled = value[c] * factor[((cell >> high_t) & mask_a) * width_t + ((cell >> low_t) & mask_b)]
                value[c] = scaled
                following[((cell >> high_s) & mask_c) * width_s + ((cell >> low_s) & mask_d)] += scaled
            summed[start[s] : start[s + 1]] = following
    return rounds, worst
