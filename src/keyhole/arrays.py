"""The array types that travel between the layers."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
IntVector: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

Codes: TypeAlias = NDArray[np.integer[Any]]
"""Rows of level codes, one column per key variable, each code counted from 0."""
