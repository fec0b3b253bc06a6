"""Does a fitted model reproduce the sample's own frequencies of frequencies?"""

import numpy as np

from keyhole.arrays import Vector
from keyhole.inference.fit import ExpectsSizeIndex, Fit

BINS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 9), (10, 19), (20, 49))
"""Sizes compared; beyond the last bin cells are few and large, and say nothing about uniqueness."""


def size_index_misfit(fit: Fit) -> float | None:
    r"""Mean squared standardised difference between the observed and the expected size index.

    .. math:: \frac{1}{B} \sum_{b=1}^{B} \frac{(f_b - E f_b)^2}{E f_b}

    with :math:`f_b` the number of cells whose size is in bin b; about 1 or less when the model's law could
    have produced the sample, since :math:`f_b` is then nearly Poisson. None for models that do not describe
    the size index.
    """
    if not isinstance(fit, ExpectsSizeIndex):
        return None
    sizes = np.arange(1, BINS[-1][1] + 1)
    expected = _binned(fit.expected_size_index(sizes), sizes)
    observed = _binned(np.array([fit.sample.size_index.at(int(size)) for size in sizes], dtype=np.float64), sizes)
    # An expected count below one cannot be told from zero.
    return float(np.mean((observed - expected) ** 2 / np.maximum(expected, 1.0)))


def _binned(values: Vector, sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Vector:
    return np.array([values[(sizes >= low) & (sizes <= high)].sum() for low, high in BINS])
