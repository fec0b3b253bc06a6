"""Splitting cells over latent classes, and the probability of a cell under a mixture of classes.

Levels of all variables are numbered through: ``cells`` holds such numbers, one row per cell and one column per
variable, and ``log_level`` has one row per level and one column per class.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def class_log_weights(cell, log_weight, log_level, into):
    """log of weight times probability of the cell's levels, by class, written to ``into``; gives the largest."""
    largest = -np.inf
    for k in range(len(log_weight)):
        into[k] = log_weight[k]
    for level in cell:
        for k in range(len(log_weight)):
            into[k] += log_level[level, k]
    for k in range(len(log_weight)):
        largest = max(largest, into[k])
    return largest


@njit(nogil=True, cache=True)
def split_cells(cells, counts, log_weight, log_level, rng):
    """Records by class and by level and class, after a multinomial split of every cell's count."""
    classes = len(log_weight)
    sizes = np.zeros(classes, np.int64)
    level_counts = np.zeros(log_level.shape, np.int64)
    share = np.empty(classes)
    for c in range(len(cells)):
        largest = class_log_weights(cells[c], log_weight, log_level, share)
        rest = 0.0
        for k in range(classes):
            share[k] = np.exp(share[k] - largest)
            rest += share[k]
        left = counts[c]
        # One record: where its uniform falls. More: one binomial after the other.
        fall = rng.random() * rest if left == 1 else 0.0
        for k in range(classes):
            if left == 0:
                break
            if share[k] == 0.0:
                continue
            if counts[c] == 1:
                fall -= share[k]
                taken = 1 if fall < 0.0 else 0
            elif share[k] >= rest:
                taken = left
            else:
                taken = rng.binomial(left, share[k] / rest)
            rest -= share[k]
            if taken > 0:
                left -= taken
                sizes[k] += taken
                for level in cells[c]:
                    level_counts[level, k] += taken
        if left > 0:  # rounding left nothing for the last class: the likeliest one takes them
            k = np.argmax(share)
            sizes[k] += left
            for level in cells[c]:
                level_counts[level, k] += left
    return sizes, level_counts


@njit(nogil=True, cache=True)
def swap_labels(sizes, log_weight, rng):
    """An order of the classes after as many proposals to swap two labels as there are classes.

    Records and level probabilities of k and m change places and the weights stay, so the ratio of the densities
    is (w_k / w_m)^(n_m - n_k). Entry k of the order is the class whose records move to place k.
    """
    classes = len(sizes)
    order = np.arange(classes)
    for _ in range(classes):
        k, m = rng.integers(0, classes), rng.integers(0, classes)
        gain = (log_weight[k] - log_weight[m]) * (sizes[order[m]] - sizes[order[k]])
        if k != m and np.log1p(-rng.random()) < gain:
            order[k], order[m] = order[m], order[k]
    return order


@njit(nogil=True, cache=True)
def mixture_probability(cells, log_weight, log_level):
    """The probability of each cell."""
    probability = np.zeros(len(cells))
    share = np.empty(len(log_weight))
    for c in range(len(cells)):
        class_log_weights(cells[c], log_weight, log_level, share)
        for k in range(len(log_weight)):
            probability[c] += np.exp(share[k])
    return probability
