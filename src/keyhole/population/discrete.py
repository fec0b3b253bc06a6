"""Unsampled counts with finitely many possible values, alike and independent in every cell."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector, alike


@dataclass(frozen=True, slots=True)
class DiscreteUnsampled:
    """U takes ``values[i]`` with ``probability[i]``.

    Attributes
    ----------
    cells
        The number of sample-unique cells.
    values, probability
        The distinct possible counts and their probabilities, which add up to 1.
    """

    cells: int
    values: IntVector
    probability: Vector

    def prob_none(self) -> Vector:
        return alike(self.cells, float(self.probability[self.values == 0].sum()))

    def mean_match(self) -> Vector:
        return alike(self.cells, float((self.probability / (1.0 + self.values)).sum()))

    def draw(self, rng: Generator) -> IntVector:
        if self.cells == 0:
            return np.zeros(0, dtype=np.int64)
        # How many cells take each value, then who: far fewer variables than one search per cell.
        times = rng.multinomial(self.cells, self.probability / self.probability.sum())
        return rng.permutation(np.repeat(self.values, times))
