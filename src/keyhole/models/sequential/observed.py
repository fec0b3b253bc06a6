"""The sample as the sequential logit sees it: levels that occur, densely coded, with the weight of each cell."""

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
        The weight of each cell in the likelihood: its count, or its share of the effective sample size when
        survey weights differ.
    levels
        For each key, the table's code of each dense code.
    """

    cells: IntVector
    records: Vector
    levels: tuple[IntVector, ...]

    @classmethod
    def of(cls, sample: Sample) -> "Observed":
        """The cells of a sample, in the order of its table."""
        table = sample.table
        coded = [np.unique(table.cells[:, key], return_inverse=True) for key in range(len(table.keys))]
        cells = np.stack([codes.astype(np.int64) for _, codes in coded], axis=1)
        return cls(cells, pseudo_counts(sample), tuple(levels.astype(np.int64) for levels, _ in coded))

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


def pseudo_counts(sample: Sample) -> Vector:
    r"""What each cell counts in the likelihood.

    Without weights its records. With weights the pseudo-likelihood estimates the law of the population, each
    cell in proportion to its weights, at the effective size of the sample
    :math:`n_e = (\sum w)^2 / \sum w^2` (Kish): unequal weights cost precision.
    """
    table = sample.table
    counts = table.counts.astype(np.float64)
    if table.weights is None:
        return counts
    return np.asarray(table.weights * (sample.sample_size / design_effect(sample) / table.weights.sum()))


def design_effect(sample: Sample) -> float:
    """n times the sum of squared weights over the square of their sum; 1 without weights or with equal ones.

    Where the squares are not known, records of one cell are taken to weigh alike.
    """
    weights, squares, counts = sample.table.weights, sample.table.squared_weights, sample.table.counts
    if weights is None:
        return 1.0
    if squares is None:
        squares = weights**2 / counts
    return float(counts.sum() * squares.sum() / weights.sum() ** 2)
