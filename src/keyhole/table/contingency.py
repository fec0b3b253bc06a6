"""Who shares a combination: the occupied cells of a cross-classification, and their counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from keyhole.arrays import Codes, IntVector, Vector, read_only
from keyhole.errors import InvalidKeys, InvalidPopulation, UnknownKeyVariable
from keyhole.keys.variable import KeyVariable
from keyhole.table.packing import Packing, code_type, rank_rows
from keyhole.table.size_index import SizeIndex


@dataclass(frozen=True, eq=False)
class ContingencyTable:
    """The occupied cells of a table: memory grows with who is there, not with the cross product.

    Attributes
    ----------
    keys
        The cross-classified key variables.
    cells
        One row of level codes per occupied cell; rows are distinct and in lexicographic order.
    counts
        Number of records in each occupied cell, at least 1.
    weights
        Sum of the survey weights of the records of each cell, if the sample is weighted.
    squared_weights
        Sum of their squares, which tells how unequal they are; None where it is not known.

    Examples
    --------
    >>> sex, age = KeyVariable("SEX", ("f", "m")), KeyVariable("AGE", ("0-29", "30-59", "60+"))
    >>> table = ContingencyTable.from_codes((sex, age), np.array([[1, 2], [0, 1], [1, 2]]))
    >>> table.cells.tolist(), table.counts.tolist(), table.size
    ([[0, 1], [1, 2]], [1, 2], 6)
    """

    keys: tuple[KeyVariable, ...]
    cells: Codes = field(repr=False)
    counts: IntVector = field(repr=False)
    weights: Vector | None = field(default=None, repr=False)
    squared_weights: Vector | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.weights is not None and not (self.weights > 0).all():
            low = int(np.count_nonzero(~(self.weights > 0)))
            raise InvalidPopulation(f"Weights must be positive; {low:,} of {len(self.weights):,} cells have none.")
        for name in ("cells", "counts", "weights", "squared_weights"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, read_only(values))

    @classmethod
    def from_codes(
        cls,
        keys: Sequence[KeyVariable],
        codes: Codes,
        counts: IntVector | None = None,
        weights: Vector | None = None,
        squared_weights: Vector | None = None,
    ) -> "ContingencyTable":
        """Tabulate rows of codes, which may repeat; each row stands for ``counts`` records (default 1).

        The squares of the weights are only needed where a row stands for several records.
        """
        sizes = tuple(len(key) for key in keys)
        first, cell = rank_rows(Packing(sizes).pack(codes))
        occupied = len(first)
        if counts is None:
            summed = np.bincount(cell, minlength=occupied).astype(np.int64)
        else:
            summed = np.zeros(occupied, dtype=np.int64)
            np.add.at(summed, cell, counts)
        if weights is not None and counts is None:
            squared_weights = np.square(weights)
        heavy, squares = (
            None if values is None else np.bincount(cell, values, occupied).astype(np.float64)
            for values in (weights, squared_weights)
        )
        return cls(tuple(keys), codes[first].astype(code_type(sizes)), summed, heavy, squares)

    @cached_property
    def packing(self) -> Packing:
        """The numbering of this table's cells."""
        return Packing(self.levels)

    @cached_property
    def _packed(self) -> IntVector:
        return self.packing.pack(self.cells)

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of each key."""
        return tuple(len(key) for key in self.keys)

    @property
    def size(self) -> int:
        """The number of cells of the whole cross product, exactly."""
        return prod(self.levels)

    @property
    def occupied(self) -> int:
        return len(self.counts)

    @cached_property
    def records(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def uniques(self) -> IntVector:
        """The occupied cells that hold exactly one record, as positions in ``cells``."""
        return np.flatnonzero(self.counts == 1)

    @cached_property
    def size_index(self) -> SizeIndex:
        return SizeIndex.of(self.counts)

    def margin(self, names: Sequence[str]) -> "ContingencyTable":
        """The table of the named keys alone, in the order given; the cross product is never built."""
        position = {key.name: j for j, key in enumerate(self.keys)}
        if len(set(names)) < len(names):
            raise InvalidKeys(f"A margin needs each key once, not {', '.join(names)}.")
        unknown = [name for name in names if name not in position]
        if unknown:
            raise UnknownKeyVariable(
                f"{', '.join(unknown)} not among the keys of the table: {', '.join(position)}."
            )
        kept = [position[name] for name in names]
        keys = tuple(self.keys[j] for j in kept)
        totals = self.counts, self.weights, self.squared_weights
        return ContingencyTable.from_codes(keys, self.cells[:, kept], *totals)

    def dense(self) -> tuple[IntVector, tuple[IntVector, ...]]:
        """The occupied cells in codes of the levels that occur, and for each key the table's codes of these.

        Examples
        --------
        >>> key = KeyVariable("AGE", ("0-29", "30-59", "60+"))
        >>> cells, levels = ContingencyTable.from_codes((key,), np.array([[2], [0]])).dense()
        >>> cells.tolist(), levels[0].tolist()
        ([[0], [1]], [0, 2])
        """
        coded = [np.unique(column, return_inverse=True) for column in self.cells.T]
        cells = np.stack([codes.astype(np.int64) for _, codes in coded], axis=1)
        return cells, tuple(levels.astype(np.int64) for levels, _ in coded)

    def find(self, cells: Codes) -> IntVector:
        """The position of each given cell among the occupied ones, -1 where nobody is."""
        wanted = self.packing.pack(cells)
        if wanted.shape[1] > 1:
            _, rank = rank_rows(np.concatenate([self._packed, wanted]))
            position = np.full(len(rank), -1)
            position[rank[: self.occupied]] = np.arange(self.occupied)
            return position[rank[self.occupied :]]
        if not self.occupied:
            return np.full(len(cells), -1)
        place = np.searchsorted(self._packed[:, 0], wanted[:, 0])
        place[place == self.occupied] = 0
        return np.where(self._packed[place, 0] == wanted[:, 0], place, -1)
