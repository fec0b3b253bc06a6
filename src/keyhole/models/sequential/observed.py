"""The sample as the sequential logit sees it: levels that occur, densely coded, with the records of each cell."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keyhole.arrays import IntVector, Vector
from keyhole.population.sample import Sample


@dataclass(frozen=True, eq=False)
class Observed:
    """Occupied cells with the levels nobody has left out: an empty level has no probability to estimate.

    Attributes
    ----------
    cells
        One row of dense codes per occupied cell.
    records
        How many records each cell has.
    levels
        For each key, the table's code of each dense code.
    """

    cells: IntVector
    records: Vector
    levels: tuple[IntVector, ...]

    @classmethod
    def of(cls, sample: Sample) -> "Observed":
        """The cells of a sample, in the order of its table."""
        cells, levels = sample.table.dense()
        return cls(cells, sample.table.counts.astype(np.float64), levels)

    def subset(self, counts: IntVector) -> "Observed":
        """Only the cells with a positive count, each counted so often; its levels are coded afresh."""
        kept = counts > 0
        coded = [np.unique(column, return_inverse=True) for column in self.cells[kept].T]
        cells = np.stack([codes.astype(np.int64) for _, codes in coded], axis=1)
        levels = tuple(all_levels[found] for all_levels, (found, _) in zip(self.levels, coded, strict=True))
        return Observed(cells, counts[kept].astype(np.float64), levels)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of levels of each key that occur."""
        return tuple(len(levels) for levels in self.levels)

    def entropy(self, key: int) -> float:
        """The entropy of one key: tells keys with equally many levels apart, whatever their labels."""
        share = np.bincount(self.cells[:, key], self.records) / self.records.sum()
        return float(-(share * np.log(share)).sum())
