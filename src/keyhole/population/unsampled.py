"""The hinge: how many unsampled people share each sample-unique cell.

Every model ends here and every risk measure begins here. With U = F - 1 the number of people of the
population who share the cell of a sample-unique record and are not in the sample,

    r1 = P(U = 0),    r2 = E[1 / (1 + U)],    tau1 = sum of 1{U = 0},    tau2 = sum of 1 / (1 + U).
"""

from typing import Protocol

from numpy.random import Generator

from keyhole.arrays import IntVector, Vector


class UnsampledCounts(Protocol):
    """The joint law of U over the sample-unique cells, in the order of ``ContingencyTable.uniques``."""

    def prob_none(self) -> Vector:
        """r1: the chance that nobody else in the population shares the cell."""

    def mean_match(self) -> Vector:
        """r2: the chance that a match to the cell is the right person."""

    def draw(self, rng: Generator) -> IntVector:
        """One joint draw of U over the cells."""
