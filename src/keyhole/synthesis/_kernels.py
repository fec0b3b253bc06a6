"""Compiled loops of the probabilities of combinations near a record.

Letters: B records, J keys, L levels of all keys together, K classes. ``rows`` (B, J) are the positions of a
record's levels among all, ``own`` (B,) the class that the record is taken away from, -1 for none.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def class_parts(rows, own, weight, share, total, begins, part, ratio):
    """Fills part (B, K) with P(class and record), the record itself taken away from its class.

    Fills ratio (B, L, K) with what each level does to it in place of the record's own.
    """
    J, K = rows.shape[1], share.shape[1]
    for i in range(rows.shape[0]):
        c = own[i]
        for k in range(K):
            part[i, k] = weight[c, k]
        for j in range(J):
            r = rows[i, j]
            for k in range(K):
                less = 1.0 if k == c else 0.0
                mine = max(share[r, k] - less, 1e-300)
                part[i, k] *= mine / max(total[j, k] - less, 1e-300)
                ratio[i, r, k] = 1.0 / mine
        for j in range(J):
            r = rows[i, j]
            for level in range(begins[j], begins[j + 1]):
                if level != r:
                    for k in range(K):
                        ratio[i, level, k] = share[level, k] * ratio[i, r, k]
            for k in range(K):
                ratio[i, r, k] = 1.0


@njit(nogil=True, cache=True, error_model="numpy")
def listed(rows, own, weight, share, total, candidates, known, found):
    """Fills found (B, C) with the probabilities of candidates (C, J), on known keys (J,) with the record's levels.

    Products over the other keys are the same for all records, but for the class that a record is taken from.
    """
    J, K = rows.shape[1], share.shape[1]
    C = candidates.shape[0]
    product = np.ones((C, K))
    for x in range(C):
        for j in range(J):
            if not known[j]:
                level = candidates[x, j]
                for k in range(K):
                    product[x, k] *= share[level, k] / total[j, k]
    part = np.empty(K)
    for i in range(rows.shape[0]):
        c = own[i]
        for k in range(K):
            part[k] = weight[c, k]
        for j in range(J):
            if known[j]:
                for k in range(K):
                    part[k] *= share[rows[i, j], k] / total[j, k]
        if c >= 0:
            part[c] = 0.0
        for x in range(C):
            chance = 0.0
            for k in range(K):
                chance += part[k] * product[x, k]
            if c >= 0:
                own_part = weight[c, c]
                for j in range(J):
                    level = rows[i, j] if known[j] else candidates[x, j]
                    less = 1.0 if level == rows[i, j] else 0.0
                    own_part *= (share[level, c] - less) / max(total[j, c] - 1.0, 1e-300)
                chance += own_part
            found[i, x] = chance
