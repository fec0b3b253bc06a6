"""How a sample is drawn from a known population: simple random, Bernoulli, or by strata."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.errors import InputError
from keyhole.validation.population import KnownPopulation


class Drawn(NamedTuple):
    """The rows of the people drawn, and how many people each stands for where that differs."""

    chosen: IntVector
    weights: Vector | None = None


class Design(Protocol):
    """A way to draw a sample."""

    @property
    def settings(self) -> Mapping[str, object]:
        """All that the sample depends on besides its size and the generator."""

    def draw(self, population: KnownPopulation, size: int, *, rng: Generator) -> Drawn: ...


@dataclass(frozen=True, slots=True)
class SimpleRandom:
    """Every set of ``size`` people is as likely as any other.

    Examples
    --------
    >>> from keyhole.keys.variable import KeyVariable
    >>> people = KnownPopulation.from_codes((KeyVariable("SEX", ("f", "m")),), np.array([[0], [0], [1]]))
    >>> len(SimpleRandom().draw(people, 2, rng=np.random.default_rng(1)).chosen)
    2
    """

    @property
    def settings(self) -> Mapping[str, object]:
        return {"design": "srs"}

    def draw(self, population: KnownPopulation, size: int, *, rng: Generator) -> Drawn:
        return Drawn(rng.choice(len(population), size, replace=False))


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Everybody joins on their own with the same chance; ``size`` is what is expected."""

    @property
    def settings(self) -> Mapping[str, object]:
        return {"design": "bernoulli"}

    def draw(self, population: KnownPopulation, size: int, *, rng: Generator) -> Drawn:
        return Drawn(np.flatnonzero(rng.random(len(population)) < size / len(population)))


@dataclass(frozen=True, slots=True)
class Stratified:
    """Simple random samples from strata.

    Attributes
    ----------
    columns
        Each combination of their levels is a stratum.
    allocation
        Shares of the sample in proportion to the strata, or equally many people from each (all of a small one).
    weighted
        Whether an equal allocation gives the models its weights. A proportional one has none: everybody has the
        same chance.
    """

    columns: tuple[str, ...]
    allocation: Literal["proportional", "equal"] = "proportional"
    weighted: bool = True

    @property
    def settings(self) -> Mapping[str, object]:
        told = {"columns": list(self.columns), "weighted": self.gives_weights}
        return {"design": "stratified", **asdict(self), **told}

    @property
    def gives_weights(self) -> bool:
        return self.weighted and self.allocation == "equal"

    def draw(self, population: KnownPopulation, size: int, *, rng: Generator) -> Drawn:
        stratum = population.strata(self.columns)
        people = np.bincount(stratum)
        if size < len(people):
            raise InputError(f"A sample of {size:,} cannot be drawn from {len(people):,} strata.")
        allocate = proportional if self.allocation == "proportional" else equal
        taken = allocate(people, size, rng)
        chosen = np.concatenate(
            [rng.choice(np.flatnonzero(stratum == h), n, replace=False) for h, n in enumerate(taken)]
        )
        return Drawn(chosen, np.repeat(people / np.maximum(taken, 1), taken) if self.gives_weights else None)


def proportional(people: IntVector, size: int, rng: Generator) -> IntVector:
    """Shares of ``size`` in proportion to the strata, rounded at random so that each is right on average.

    Rounding to the nearest would never draw anybody of a stratum that is due less than half a person. Here the
    strata are laid end to end, in random order, and every point at a whole distance from a random start is one.

    Examples
    --------
    >>> proportional(np.array([60, 30, 10]), 10, np.random.default_rng(1)).tolist()
    [6, 3, 1]
    """
    order = rng.permutation(len(people))
    # Whole numbers, so that the ends are exact.
    ends, every = np.cumsum(people[order]) * size, int(people.sum())
    passed = (ends + int(rng.integers(every))) // every
    taken: IntVector = np.empty(len(people), dtype=np.int64)
    taken[order] = np.diff(passed, prepend=0)
    return taken


def equal(people: IntVector, size: int, rng: Generator) -> IntVector:
    """Equally many from each stratum and all of those that are smaller; chance decides who gives one more.

    Examples
    --------
    >>> equal(np.array([60, 30, 10]), 71, np.random.default_rng(1)).tolist()
    [31, 30, 10]
    """
    low, high = 0, int(people.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(people, middle).sum() <= size else (low, middle - 1)
    taken: IntVector = np.minimum(people, low)
    more = rng.permutation(np.flatnonzero(people > taken))[: size - int(taken.sum())]
    taken[more] += 1
    return taken
