"""Importance weights whose heavy tail is smoothed, and how heavy it is."""

import numpy as np

from keyhole.arrays import Vector

HEAVY = 0.7
"""k-hat above which weights do not average out (Vehtari et al. 2024, *J. of Machine Learning Research* 25)."""

ALIKE = 1e-9
"""Logarithms of weights that differ by less are the same weight."""

FEWEST = 25
"""Weights below which there is no tail to look at."""


def smoothed_weights(log_weight: Vector) -> tuple[Vector, Vector]:
    """Pareto-smoothed weights, adding up to 1 in each row, and k-hat of each row.

    Rows of fewer than 25 weights are left as they are, with a k-hat of infinity unless all are alike; a row of
    equal weights has k-hat 0.
    """
    weight = np.array(log_weight, dtype=np.float64)
    khat = np.zeros(len(weight))
    uneven = np.ptp(weight, axis=1) > ALIKE
    if weight.shape[1] < FEWEST:
        khat[uneven] = np.inf
    else:
        # Imported here: it takes a second, which runs without weights should not pay.
        from arviz_stats.base import array_stats  # type: ignore[attr-defined]

        for row in np.flatnonzero(uneven):
            try:
                # It takes minus the logarithms, as they are where weights are 1 over a likelihood.
                with np.errstate(divide="ignore", invalid="ignore"):
                    smooth, khat[row] = array_stats.psislw(-weight[row])  # type: ignore[no-untyped-call]
            except ValueError:
                continue  # a tail of equal weights needs no smoothing
            if np.isfinite(smooth).all():  # nor does one of nearly equal weights, of which it makes NaN
                weight[row] = smooth
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True), np.where(np.isnan(khat), np.inf, khat)
