"""What the probabilities of cells say of the people who were not sampled."""

from dataclasses import dataclass
from typing import Protocol

from keyhole.arrays import IntVector, Vector
from keyhole.numerics.binomial_match import binomial_match, poisson_match
from keyhole.population.multinomial import MultinomialUnsampled
from keyhole.population.poisson import PoissonUnsampled
from keyhole.population.unsampled import UnsampledCounts


class CellLaw(Protocol):
    """How the unsampled people fall into cells of given probabilities."""

    def unsampled(self, probability: Vector, people: int) -> UnsampledCounts:
        """The law of the counts of cells that hold one record each."""

    def mean_match(self, counts: IntVector, probability: Vector, people: int) -> Vector:
        """E(1/F | f) of cells with these counts."""


@dataclass(frozen=True, slots=True)
class MultinomialCells:
    """So many people, each in a cell of its own choice."""

    def unsampled(self, probability: Vector, people: int) -> MultinomialUnsampled:
        return MultinomialUnsampled(probability, people)

    def mean_match(self, counts: IntVector, probability: Vector, people: int) -> Vector:
        return binomial_match(counts, people, probability)


@dataclass(frozen=True, slots=True)
class PoissonCells:
    """Independent counts with means in proportion to the probabilities, which need not add up to one."""

    def unsampled(self, probability: Vector, people: int) -> PoissonUnsampled:
        return PoissonUnsampled(probability * people)

    def mean_match(self, counts: IntVector, probability: Vector, people: int) -> Vector:
        return poisson_match(counts, probability * people)
