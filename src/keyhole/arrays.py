"""The array types that travel between the layers."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
IntVector: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

Array = TypeVar("Array", bound=NDArray[Any])

Codes: TypeAlias = NDArray[np.integer[Any]]
"""Rows of level codes, one column per key variable, each code counted from 0."""


def read_only(values: Array) -> Array:
    """A view of an array that cannot be written to: what frozen results hold."""
    view = values.view()
    view.flags.writeable = False
    return view


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
