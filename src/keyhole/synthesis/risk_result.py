"""What synthetic files give away, as numbers."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.pareto_weights import HEAVY
from keyhole.synthesis.importance import CopyWeights

COARSE = 0.5
"""Monte Carlo error, as a share of a chance, above which the chance is not to be relied on."""

Estimator = Literal["bridge", "importance"]
Prior = Literal["uniform", "model", "given"]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Risk after so many copies, or from copies of so many records."""

    number: int
    mean_probability: float
    max_probability: float
    top_ranked: int


@dataclass(frozen=True, eq=False)
class Combinations:
    """What copies tell of each distinct combination of the confidential file, one value each.

    Attributes
    ----------
    cells, counts
        The combination, and the records that have it.
    probability
        That the intruder gives to the truth.
    error
        Its Monte Carlo standard error.
    rank
        Of the truth among the candidates, 1 if nothing is likelier.
    before
        What he gave to it before he saw the copies.
    candidates
        How many he weighs.
    needed
        How many times likelier than the front runner he must hold the truth beforehand to put it first (eq. 18).
    khat
        How heavy the tail of the worst weights is.
    learned, learned_before
        Chance of the true levels of the keys he wants to learn (eq. 17), with the copies and before; None if no
        keys were named.
    known
        The probability for somebody who knows the parameters that made the copies; None where they are not known.
    """

    cells: Codes = field(repr=False)
    counts: IntVector = field(repr=False)
    probability: Vector = field(repr=False)
    error: Vector = field(repr=False)
    rank: IntVector = field(repr=False)
    before: Vector = field(repr=False)
    candidates: IntVector = field(repr=False)
    needed: Vector = field(repr=False)
    khat: Vector = field(repr=False)
    learned: Vector | None = field(repr=False)
    learned_before: Vector | None = field(repr=False)
    known: Vector | None = field(repr=False)

    def __len__(self) -> int:
        return len(self.counts)

    def above(self, times: float) -> int:
        """Combinations whose probability is more than so many times what it was before."""
        return int((self.probability > times * self.before).sum())

    def ranked(self, within: int) -> int:
        """Combinations whose truth is among the first so many."""
        return int((self.rank <= within).sum())


@dataclass(frozen=True, eq=False)
class SyntheticRisk:
    """What copies tell of all combinations, to somebody who knows all other records.

    Attributes
    ----------
    weights
        What the published importance sampler would have to go by.
    by_copies, by_records
        The risk after one copy, two, ..., and from copies with fewer records, if that was asked for.
    """

    copies: int
    records: int
    support: str
    estimator: Estimator
    prior: Prior
    combinations: Combinations
    weights: CopyWeights = field(repr=False)
    by_copies: tuple[CurvePoint, ...]
    by_records: tuple[CurvePoint, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def untrusted(self) -> Mask:
        """Combinations whose probability is not to be relied on."""
        if self.estimator == "importance" and not self.weights.trusted:
            return np.ones(len(self.combinations), dtype=bool)
        found = self.combinations
        return np.asarray((found.khat > HEAVY) | (found.error > COARSE * found.probability))

    @property
    def trusted(self) -> bool:
        """Whether the whole result is to be relied on."""
        return all(one.verdict != "untrusted" for one in self.diagnostics)
