"""The steps of a penalised fit on one margin: soft thresholds, their conditions, medians and extrapolation."""

from collections.abc import Sequence

import numpy as np

from keyhole.arrays import Mask, Vector


def thresholded(n: Vector, m: Vector, u: Vector, penalty: float) -> Vector:
    """The coefficients of a block after its step; those without a cell stay as they are.

    Examples
    --------
    >>> thresholded(np.array([8.0, 5.0, 0.0]), np.array([4.0, 4.0, 4.0]), np.zeros(3), 2.0).round(3).tolist()
    [0.405, 0.0, -0.693]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        up = u + np.log(np.maximum(n - penalty, 0.0) / m)
        down = u + np.log((n + penalty) / m)
    new = np.where(up > 0, up, np.where(down < 0, down, 0.0))
    return np.where(m > 0, new, u)


def violations(n: Vector, m: Vector, u: Vector, penalty: float) -> Vector:
    """By how much coefficients of a block miss the conditions of the maximum, in proportion to n + lambda."""
    slope = n - m
    missed = np.where(u != 0, np.abs(slope - penalty * np.sign(u)), np.maximum(np.abs(slope) - penalty, 0.0))
    return np.divide(missed, n + penalty, out=np.zeros(len(n)), where=(n + penalty > 0) & (m > 0))


def middle(block: Vector, possible: Mask, axis: int) -> Vector:
    """The median of the possible entries along an axis, where there is a choice the one nearest to zero.

    Examples
    --------
    >>> block, possible = np.array([[1.0, 2.0, 5.0], [-1.0, 3.0, 9.0]]), np.array([[1, 1, 1], [1, 1, 0]], bool)
    >>> middle(block, possible, 1).tolist()
    [2.0, 0.0]
    """
    ordered = np.sort(np.where(possible, block, np.inf), axis=axis)
    there = possible.sum(axis=axis, keepdims=True)
    low, high = (
        np.take_along_axis(ordered, np.maximum(place, 0), axis).squeeze(axis)
        for place in ((there - 1) // 2, np.minimum(there // 2, block.shape[axis] - 1))
    )
    return np.where(there.squeeze(axis) > 0, np.clip(0.0, low, high), 0.0)


def extrapolated(iterates: Sequence[Vector]) -> Vector:
    r"""Where the changes between iterates would vanish if each were a linear map of the one before.

    .. math:: \sum_{i \ge 1} c_i u_i, \qquad c = \arg\min_{\sum c_i = 1} \| \sum c_i (u_i - u_{i-1}) \|

    Examples
    --------
    >>> extrapolated([np.array([x, 1.0]) for x in (8.0, 4.0, 2.0)]).round(6).tolist()
    [0.0, 1.0]
    """
    points = np.array(iterates)
    finite = np.isfinite(points).all(axis=0)
    change = np.diff(points[:, finite], axis=0)
    products = change @ change.T
    # A little more on the diagonal keeps changes that point the same way from making it singular.
    products += np.eye(len(change)) * (1e-10 * np.trace(products) + np.finfo(float).tiny)
    share = np.linalg.solve(products, np.ones(len(change)))
    leap = np.asarray(points[-1], dtype=np.float64).copy()
    leap[finite] = (share / share.sum()) @ points[1:, finite]
    return leap
