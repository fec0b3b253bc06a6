"""Frequencies of frequencies: how many cells hold one record, two records, three, ..."""

from dataclasses import dataclass

import numpy as np

from keyhole.arrays import IntVector


@dataclass(frozen=True, eq=False)
class SizeIndex:
    """``cells[i]`` cells hold exactly ``sizes[i]`` records; empty sizes are left out.

    Examples
    --------
    >>> index = SizeIndex.of(np.array([1, 1, 3, 1]))
    >>> index.sizes.tolist(), index.cells.tolist(), index.records, index.occupied
    ([1, 3], [3, 1], 6, 4)
    """

    sizes: IntVector
    cells: IntVector

    @classmethod
    def of(cls, counts: IntVector) -> "SizeIndex":
        """The size index of the counts of occupied cells."""
        sizes, cells = np.unique(counts, return_counts=True)
        return cls(sizes.astype(np.int64), cells.astype(np.int64))

    @property
    def records(self) -> int:
        return int(self.sizes @ self.cells)

    @property
    def occupied(self) -> int:
        return int(self.cells.sum())

    def at(self, size: int) -> int:
        """The number of cells that hold exactly ``size`` records."""
        return int(self.cells[self.sizes == size].sum())
