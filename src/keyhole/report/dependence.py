"""Which keys go together, in the words of the report."""

import math
from dataclasses import dataclass

from keyhole.inference.dependence import Dependence, PairDependence, TripleDependence
from keyhole.report.words import clean, in_prose, plural
from keyhole.risk.compare import Comparison

PAIRS_SAID, TRIPLES_SAID = 5, 5
"""Pairs and three-way terms that are told one by one."""

PAIRS_LISTED = 50
"""Pairs in the table of numbers."""

FAINT = 0.05
"""A strength that reads as 0.0 is called none."""


@dataclass(frozen=True, slots=True)
class KeyDependence:
    """What one model found; the names of the keys are safe to show."""

    model: str
    found: Dependence

    @property
    def in_words(self) -> str:
        """The strongest pairs and triples in one or two sentences."""
        return f"By model {self.model}. {self.found.renamed(in_prose).in_words()}"

    @property
    def pairs_in_words(self) -> tuple[str, ...]:
        """The strongest pairs, one line each."""
        strong = [pair for pair in self.found.pairs[:PAIRS_SAID] if pair.strength >= FAINT]
        return tuple(map(pair_in_words, strong))

    @property
    def triples_in_words(self) -> tuple[str, ...]:
        """The three-way terms that tell most, one line each."""
        return tuple(map(triple_in_words, self.found.triples[:TRIPLES_SAID]))

    @property
    def more_triples(self) -> str:
        """How many three-way terms are not told; empty if none."""
        more = len(self.found.triples) - TRIPLES_SAID
        return f"{plural(more, 'weaker term')} {'is' if more == 1 else 'are'} not listed." if more > 0 else ""

    @property
    def listed(self) -> tuple[PairDependence, ...]:
        """The pairs of the table of numbers."""
        return self.found.pairs[:PAIRS_LISTED]


def key_dependence(comparison: Comparison) -> KeyDependence | None:
    """What the recommended model found or, if it does not look, the first other that can be trusted and does."""
    trusted = [found for found in comparison.assessments if found.status == "ok"]
    first = [] if comparison.chosen is None else [comparison.chosen]
    for assessment in (*first, *trusted):
        if assessment.dependence is not None and assessment.dependence.pairs:
            return KeyDependence(clean(assessment.model), assessment.dependence.renamed(clean))
    return None


def pair_in_words(pair: PairDependence) -> str:
    """A pair and its strength.

    Examples
    --------
    >>> pair_in_words(PairDependence("AGE", "MARITAL", 1.29))
    'AGE and MARITAL: strength 1.3, odds change 3.6-fold'
    """
    return (
        f"{in_prose(pair.first)} and {in_prose(pair.second)}: strength {pair.strength:.1f}, {odds(pair.strength)}"
    )


def triple_in_words(triple: TripleDependence) -> str:
    """A three-way term.

    Examples
    --------
    >>> triple_in_words(TripleDependence("SEX", "MARITAL", "JOB", 36.2))
    'What MARITAL says of JOB is not the same for every SEX (score 36)'
    """
    first, second, on = map(in_prose, (triple.first, triple.second, triple.on))
    score = f"{triple.score:.0f}" if triple.score >= 9.95 else f"{triple.score:.1f}"
    return f"What {second} says of {on} is not the same for every {first} (score {score})"


def odds(strength: float) -> str:
    """What a typical change of a log-odds does to odds.

    Examples
    --------
    >>> [odds(strength) for strength in (0.01, 0.2, 0.6931, 2.47)]
    ['odds hardly change', 'odds change by 22%', 'odds change 2-fold', 'odds change 12-fold']
    """
    if strength < FAINT:
        return "odds hardly change"
    factor = math.exp(min(strength, 10.0))
    if factor < 1.95:
        return f"odds change by {factor - 1:.0%}"
    if factor >= 100:
        return "odds change 100-fold or more"
    return (
        f"odds change {factor:.0f}-fold"
        if factor >= 9.95
        else f"odds change {factor:.1f}-fold".replace(".0-", "-")
    )
