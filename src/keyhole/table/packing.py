"""Cells as whole numbers: the level codes of a cell packed into as few 64-bit words as will hold them.

A table of up to 2^63 cells needs one word a cell. A larger one is cut into groups of neighbouring keys, a
word for each group. Word by word, packed cells sort like the rows of codes they came from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import mul

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
        current: list[int] = []
        cells = 1
        for position, size in enumerate(self.sizes):
            if current and cells * size > WORD:
                words.append(tuple(current))
                current, cells = [], 1
            current.append(position)
            cells *= size
        return (*words, tuple(current))

    def strides(self, word: Sequence[int]) -> list[int]:
        """What one step of each key of ``word`` adds to the packed number."""
        return list(accumulate((self.sizes[key] for key in word[:0:-1]), mul, initial=1))[::-1][: len(word)]

    def pack(self, cells: Codes) -> IntVector:
        """Rows of level codes to rows of words.

        Raises
        ------
        ValueError
            A code that is not a level: packed, it would be taken for another cell.
        """
        if cells.ndim != 2 or cells.shape[1] != len(self.sizes):
            raise ValueError(f"Cells of shape {cells.shape} need one column for each of {len(self.sizes)} keys.")
        if len(cells) and not ((cells.min(axis=0) >= 0).all() and (cells.max(axis=0) < self.sizes).all()):
            raise ValueError("Cells have codes outside the levels of their keys.")
        packed = np.zeros((len(self.words), len(cells)), dtype=np.int64)
        for numbers, word in zip(packed, self.words, strict=True):
            for key in word:
                numbers *= self.sizes[key]
                numbers += cells[:, key].astype(np.int64, copy=False)
        return packed.T

    def unpack(self, packed: IntVector) -> Codes:
        """Rows of words back to rows of level codes, in the smallest integer type that holds them."""
        cells = np.empty((len(packed), len(self.sizes)), dtype=code_type(self.sizes))
        for w, word in enumerate(self.words):
            rest = packed[:, w]
            for key in word[:0:-1]:
                rest, cells[:, key] = np.divmod(rest, self.sizes[key])
            for key in word[:1]:
                cells[:, key] = rest
        return cells


def code_type(sizes: Sequence[int]) -> np.dtype[np.signedinteger]:
    """The smallest signed integer type that holds every level code.

    Examples
    --------
    >>> [str(code_type((size,))) for size in (0, 128, 129, 2**31, 2**31 + 1)]
    ['int8', 'int8', 'int16', 'int32', 'int64']
    """
    return np.result_type(np.int8, np.min_scalar_type(-max(1, *sizes, 1)))


def rank_rows(packed: IntVector) -> tuple[IntVector, IntVector]:
    """Where each distinct row is first met, in lexicographic order, and the rank of every row among them.

    Words are renumbered one after the other: the rank so far and the rank of the next word make one number
    (at most rows squared, so it fits), and sorting numbers is much faster than sorting rows.

    Examples
    --------
    >>> first, rank = rank_rows(np.array([[7, 2], [7, 1], [7, 2]]))
    >>> first.tolist(), rank.tolist()
    ([1, 0], [1, 0, 1])
    """
    number = packed[:, 0]
    for word in packed.T[1:]:
        _, ahead = np.unique(number, return_inverse=True)
        values, behind = np.unique(word, return_inverse=True)
        number = ahead * len(values) + behind
    _, first, rank = np.unique(number, return_index=True, return_inverse=True)
    return first, rank


def distinct_rows(rows: IntVector) -> tuple[IntVector, IntVector]:
    """The distinct rows in the order in which they are first seen, and the place of every row among them."""
    first, rank = rank_rows(Packing((int(rows.max(initial=0)) + 1,) * rows.shape[1]).pack(rows))
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return rows[first[order]], place[rank]
