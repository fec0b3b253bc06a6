"""The array types that travel between the layers."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
IntVector: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

Codes: TypeAlias = NDArray[np.integer[Any]]
"""Rows of level codes, one column per key variable, each code counted from 0."""


def alike(length: int, value: float) -> Vector:
    """A vector of equal values that takes no memory: a read-only view of one number.

    Examples
    --------
    >>> distinct(alike(1_000_000, 0.5)).tolist(), distinct(np.array([0.5, 0.5])).tolist()
    ([0.5], [0.5, 0.5])
    """
    return np.broadcast_to(np.float64(value), length)


def distinct(values: Vector) -> Vector:
    """One value for a vector made by `alike`, else the vector itself: sums then cost what they must."""
    return values[:1] if values.strides == (0,) else values
