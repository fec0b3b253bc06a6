"""A fit under an L1 penalty, and the cells and margins that it is made on."""

from dataclasses import dataclass, field
from itertools import combinations
from math import prod

import numpy as np

from keyhole.arrays import Vector
from keyhole.errors import FitFailed
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.information import Design
from keyhole.population.sample import Sample

MOST_CELLS = 30_000_000
"""Admissible cells of the levels that occur, beyond which not all of them are visited."""


@dataclass(frozen=True, eq=False)
class PenalisedFit:
    """The fit for one penalty.

    Attributes
    ----------
    design
        The cells, and the margins of all keys and of all pairs of keys.
    penalty
        lambda, in records.
    effects
        The main effects and coefficients, in the order of the design.
    fitted
        The mean of each cell on the scale of the counts, times the cells that it stands for: 1 if it is occupied.
    weights
        How many cells each cell stands for; None if all are there.
    passes
        How often margins were taken.
    violation
        The largest violation of the conditions of the maximum.
    converged
        Whether it is within the tolerance.
    """

    design: Design
    penalty: float
    effects: Vector = field(repr=False)
    fitted: Vector = field(repr=False)
    weights: Vector | None = field(repr=False)
    passes: int
    violation: float
    converged: bool

    @property
    def cells(self) -> Cells:
        return self.design.cells

    def coefficients(self, pair: tuple[int, int]) -> Vector:
        """The coefficients of two keys, one axis for each."""
        for k, margin in enumerate(self.design.margins):
            if margin.generator == pair:
                block = self.effects[self.design.begins[k] : self.design.begins[k + 1]]
                return margin.in_table_order(block, self.design.cells.order)
        raise ValueError(f"There is no pair of keys at positions {pair}.")

    @property
    def pairs(self) -> tuple[tuple[int, ...], ...]:
        """The pairs of keys with some coefficient that is not zero."""
        found = [
            margin.generator
            for margin, begin in zip(self.design.margins, self.design.begins, strict=False)
            if len(margin.generator) == 2 and self.effects[begin : begin + margin.entries].any()
        ]
        return tuple(sorted(found))


def penalised_design(sample: Sample, *, most_cells: int = MOST_CELLS) -> Design:
    """All admissible cells of the levels that occur, and the margins of all keys and all pairs.

    Raises
    ------
    FitFailed
        There are too many cells; says how many.
    """
    sizes = [len(np.unique(column)) for column in sample.table.cells.T]
    keys = range(len(sizes))
    terms = (*((key,) for key in keys), *combinations(keys, 2))
    if sample.zeros is None and prod(sizes) > most_cells:
        raise FitFailed(
            f"The lasso gives a mean to every cell that somebody could be in: {prod(sizes):,} here, more than the "
            f"{most_cells:,} it can hold. Recode keys with many levels, leave out keys, or use another model."
        )
    # A cell takes its code and its mean, and the nodes above add less than as much again.
    return Design(Cells.of(sample, (), prune=False, most_bytes=20 * most_cells), terms)
