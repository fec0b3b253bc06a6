"""Which key variables go together: what a model of the keys found, for people to read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class PairDependence:
    """Two keys and how strongly the level of one moves the odds of the other.

    Attributes
    ----------
    strength
        The typical change of a log-odds, 0 if the keys are independent given the others; 0.7 doubles odds.
    """

    first: str
    second: str
    strength: float


@dataclass(frozen=True, slots=True)
class TripleDependence:
    """Two keys that act jointly on a third, and the score of the test that found them."""

    first: str
    second: str
    on: str
    score: float


@dataclass(frozen=True, slots=True)
class Dependence:
    """Pairs of keys by falling strength, and the three-way terms that were added by falling score."""

    keys: tuple[str, ...]
    pairs: tuple[PairDependence, ...]
    triples: tuple[TripleDependence, ...]

    def in_words(self, most: int = 3) -> str:
        """The strongest pairs and triples in one sentence."""
        if not self.pairs:
            return "There is one key, so nothing to depend on."
        pairs = ", ".join(f"{pair.first} with {pair.second}" for pair in self.pairs[:most])
        words = f"The keys that go together most: {pairs}."
        if self.triples:
            triples = ", ".join(f"{one.first} and {one.second} on {one.on}" for one in self.triples[:most])
            terms = (
                "1 three-way term was" if len(self.triples) == 1 else f"{len(self.triples)} three-way terms were"
            )
            words += f" {terms} added{', first' if len(self.triples) > most else ''}: {triples}."
        return words

    def renamed(self, shown: Callable[[str], str]) -> "Dependence":
        """The same with every key called as ``shown`` says.

        Examples
        --------
        >>> Dependence(("a", "b"), (PairDependence("a", "b", 0.8),), ()).renamed(str.upper).in_words()
        'The keys that go together most: A with B.'
        """
        return Dependence(
            tuple(map(shown, self.keys)),
            tuple(replace(pair, first=shown(pair.first), second=shown(pair.second)) for pair in self.pairs),
            tuple(
                replace(one, first=shown(one.first), second=shown(one.second), on=shown(one.on))
                for one in self.triples
            ),
        )


@runtime_checkable
class FindsDependence(Protocol):
    """A fit that knows which keys go together."""

    @property
    def dependence(self) -> Dependence: ...
