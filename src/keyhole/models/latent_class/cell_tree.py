"""The distinct cells of a sample in an order in which neighbours share their first keys."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector
from keyhole.table.packing import Packing, rank_rows


@dataclass(frozen=True, eq=False)
class CellTree:
    """Cells whose products of probabilities share factors: only what differs from the cell before is multiplied.

    Attributes
    ----------
    rows
        For each cell and each key, in the order of the tree, the position of its level among the levels of all
        keys of the table.
    depth
        The first key, in the order of the tree, in which a cell differs from the one before it.
    counts
        The records of each cell.
    """

    rows: NDArray[np.int32] = field(repr=False)
    depth: NDArray[np.int32] = field(repr=False)
    counts: IntVector = field(repr=False)

    @classmethod
    def of(cls, sizes: Sequence[int], codes: Codes, counts: IntVector | None = None) -> "CellTree":
        """From rows of codes, which may repeat; each stands for ``counts`` records (default 1)."""
        begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        # Keys with few levels first: more neighbours share them.
        order = np.argsort(sizes, kind="stable")
        turned = np.ascontiguousarray(codes[:, order])
        first, cell = rank_rows(Packing(tuple(sizes[j] for j in order)).pack(turned))
        rows = (turned[first].astype(np.int64) + begins[order]).astype(np.int32)
        records = np.ones(len(codes), dtype=np.int64) if counts is None else counts
        summed = np.bincount(cell, records, len(first)).astype(np.int64)
        return cls(rows, first_difference(rows), summed)

    @property
    def records(self) -> int:
        return int(self.counts.sum())


def first_difference(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """The first column in which each row differs from the one before it; 0 for the first row.

    Examples
    --------
    >>> first_difference(np.array([[4, 7], [4, 8], [5, 8]], dtype=np.int32)).tolist()
    [0, 1, 0]
    """
    differs = np.ones(rows.shape, dtype=bool)
    differs[1:] = rows[1:] != rows[:-1]
    return np.asarray(differs.argmax(axis=1), dtype=np.int32)
