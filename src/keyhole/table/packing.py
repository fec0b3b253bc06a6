"""Cells as whole numbers: the level codes of a cell packed into as few 64-bit words as will hold them.

A table of up to 2^63 cells needs one word a cell. A larger one is cut into groups of neighbouring keys, a
word for each group. Word by word, packed cells sort like the rows of codes they came from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from keyhole.arrays import Codes, IntVector

WORD = 2**63 - 1
"""The largest number of cells that one word (a signed 64-bit integer) can tell apart."""


@dataclass(frozen=True)
class Packing:
    """A mixed-radix numbering of the cells of a table with ``sizes`` levels per key.

    Examples
    --------
    >>> packing = Packing((2, 3))
    >>> packing.pack(np.array([[1, 2], [0, 1]])).tolist()
    [[5], [1]]
    >>> packing.unpack(np.array([[5]])).tolist()
    [[1, 2]]
    """

    sizes: tuple[int, ...]

    @cached_property
    def words(self) -> tuple[tuple[int, ...], ...]:
        """The key positions that each word holds, first word most significant."""
        words: list[tuple[int, ...]] = []
        current: tuple[int, ...] = ()
        for position, size in enumerate(self.sizes):
            if current and prod(self.sizes[k] for k in current) * size > WORD:
                words.append(current)
                current = ()
            current = (*current, position)
        return (*words, current)

    def strides(self, word: Sequence[int]) -> list[int]:
        """What one step of each key of ``word`` adds to the packed number."""
        return [prod(self.sizes[k] for k in word[i + 1 :]) for i in range(len(word))]

    def pack(self, cells: Codes) -> IntVector:
        """Rows of level codes to rows of words."""
        packed = np.zeros((len(cells), len(self.words)), dtype=np.int64)
        for w, word in enumerate(self.words):
            for key, stride in zip(word, self.strides(word), strict=True):
                packed[:, w] += cells[:, key].astype(np.int64) * stride
        return packed

    def unpack(self, packed: IntVector) -> Codes:
        """Rows of words back to rows of level codes, in the smallest integer type that holds them."""
        cells = np.empty((len(packed), len(self.sizes)), dtype=code_type(self.sizes))
        for w, word in enumerate(self.words):
            for key, stride in zip(word, self.strides(word), strict=True):
                cells[:, key] = packed[:, w] // stride % self.sizes[key]
        return cells


def code_type(sizes: Sequence[int]) -> np.dtype[np.signedinteger]:
    """The smallest signed integer type that holds every level code."""
    return np.result_type(np.int8, np.min_scalar_type(-max(sizes, default=1)))


def one_word(packed: IntVector) -> IntVector | np.ndarray[tuple[int], np.dtype[np.void]]:
    """A one-dimensional array that orders and compares like the rows of ``packed``."""
    if packed.shape[1] == 1:
        return packed[:, 0]
    fields = np.dtype([(f"word{w}", np.int64) for w in range(packed.shape[1])])
    return np.ascontiguousarray(packed).view(fields)[:, 0]
