"""All cells that somebody could be in, empty ones included: a model with an effect for every cell needs them."""

from dataclasses import dataclass
from math import prod

import numpy as np

from keyhole.arrays import IntVector, Vector
from keyhole.errors import FitFailed
from keyhole.population.sample import Sample

MOST_CELLS = 20_000_000
"""Of the whole table; each takes about 60 bytes while a chain runs."""

AT_ONCE = 1 << 18
"""Cells that the structural zeros are asked about together."""


@dataclass(frozen=True, eq=False)
class FullTable:
    """The counts of all admissible cells.

    Attributes
    ----------
    levels
        The number of levels of each key; cells are numbered as in an array of this shape.
    place
        The numbers of the admissible cells, rising; None where all are.
    counts
        Records in each of them.
    fraction
        The sampling fraction.
    """

    levels: tuple[int, ...]
    place: IntVector | None
    counts: IntVector
    fraction: float

    @classmethod
    def of(cls, sample: Sample) -> "FullTable":
        """The table of a sample.

        Raises
        ------
        FitFailed
            There are too many cells.
        """
        table = sample.table
        if table.size > MOST_CELLS:
            raise FitFailed(
                f"The table has {table.size:,} cells, and this model has an effect for each: more than "
                f"{MOST_CELLS:,} are too many. Use fewer keys or broader levels, or another model."
            )
        counts = np.zeros(table.size, dtype=np.int64)
        counts[np.ravel_multi_index(tuple(table.cells.T), table.levels)] = table.counts
        if sample.zeros is None:
            return cls(table.levels, None, counts, sample.sampling_fraction)
        sample.zeros.check(table)
        possible = []
        for first in range(0, table.size, AT_ONCE):
            numbers = np.arange(first, min(first + AT_ONCE, table.size))
            codes = np.stack(np.unravel_index(numbers, table.levels), axis=1).astype(np.int32)
            possible.append(numbers[~sample.zeros.contains(codes)])
        place = np.concatenate(possible)
        return cls(table.levels, place, counts[place], sample.sampling_fraction)

    def __len__(self) -> int:
        return len(self.counts)

    def spread(self, values: Vector) -> Vector:
        """Values of the admissible cells as an array with one axis for each key; 0 elsewhere."""
        if self.place is None:
            return values.reshape(self.levels)
        whole = np.zeros(prod(self.levels))
        whole[self.place] = values
        return whole.reshape(self.levels)

    def gathered(self, whole: Vector) -> Vector:
        """The values of the admissible cells, from an array with one axis for each key."""
        flat = whole.reshape(-1)
        return flat if self.place is None else flat[self.place]

    def with_counts(self, counts: IntVector) -> "FullTable":
        return FullTable(self.levels, self.place, counts, self.fraction)
