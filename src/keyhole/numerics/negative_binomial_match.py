"""The mean of 1/F when F counts the trials up to the f-th success."""

import numpy as np

from keyhole.arrays import IntVector, Vector

_FEW = 40
"""Below this f the recursion is used for small p; above it the series needs few terms whatever p is."""


def negative_binomial_match(count: IntVector, probability: Vector) -> Vector:
    r"""E(1/F) for F the number of trials up to success number f.

    .. math:: E(1/F) = \frac{p^f}{f}\,{}_2F_1(f, f; f + 1; 1 - p) = \frac{p}{f}\,{}_2F_1(1, 1; f + 1; 1 - p)

    The series of the second form has positive terms with ratio (1 - p)(j + 1)/(f + 1 + j) and converges fast
    unless f and p are both small; there :math:`J_{f+1} = \frac{p}{1 - p}\big(\frac1f - J_f\big)`, which shrinks
    errors when p < 1/2, starts from the exact :math:`J_1 = -p \log p/(1 - p)`.

    Examples
    --------
    >>> negative_binomial_match(np.array([1, 4]), np.array([1.0, 1.0])).tolist()
    [1.0, 0.25]
    """
    count, probability = np.broadcast_arrays(np.asarray(count), np.asarray(probability, dtype=float))
    match = np.zeros(count.shape)
    slow = (count < _FEW) & (probability < 0.5)
    some = probability > 0
    match[slow & some] = _by_recursion(count[slow & some], probability[slow & some])
    match[~slow] = _by_series(count[~slow].astype(float), probability[~slow])
    return match


def _by_recursion(count: IntVector, p: Vector) -> Vector:
    value = -p * np.log(p) / (1.0 - p)
    odds = p / (1.0 - p)
    match = np.where(count == 1, value, 0.0)
    for f in range(1, int(count.max(initial=1))):
        value = odds * (1.0 / f - value)
        match = np.where(count == f + 1, value, match)
    return match


def _by_series(count: Vector, p: Vector) -> Vector:
    term, total, j = np.ones_like(p), np.ones_like(p), 0
    while np.any(term > 1e-17 * total):
        term = term * (1.0 - p) * (j + 1.0) / (count + 1.0 + j)
        total = total + term
        j += 1
    return np.asarray(p / count * total)
