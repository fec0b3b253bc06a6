"""From sums over draws to the chances of a record's candidates, with their Monte Carlo error.

Every estimator of P(copy | record is x) comes down to ratios of sums over draws: over draws made with a copy or
weighed by it, over draws of the file alone. Sums are kept by group of consecutive draws, so that all can be worked
out again with some groups left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from keyhole.arrays import IntVector, Mask, Vector

GROUPS = 8
"""Of consecutive draws; the spread of answers with one group left out tells the Monte Carlo error."""

SMALLEST = 1e-300
"""Stands for sums too small to be told from zero."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """Answers of a block of records: probabilities by place, from all copies and from the first few of them.

    Attributes
    ----------
    chance
        By number of copies (1 to m), record and place.
    error
        Monte Carlo standard error of the chance of the truth, all copies used.
    before
        The intruder's belief beforehand, by record and place.
    khat
        Of the worst set of weights, by record.
    known
        Chance of the truth for somebody who knows the parameters that made the copies: more no copy of any size
        can tell. None where they are not known.
    """

    chance: Vector = field(repr=False)
    error: Vector = field(repr=False)
    before: Vector = field(repr=False)
    khat: Vector = field(repr=False)
    known: Vector | None = field(repr=False)


def grouped(values: Vector) -> Vector:
    """Sums by group of consecutive draws, which are along the first axis."""
    groups = np.array_split(np.arange(len(values)), GROUPS)
    return np.stack([values[group].sum(axis=0) for group in groups])


@dataclass(frozen=True, eq=False)
class Before:
    """What the intruder believed beforehand.

    Attributes
    ----------
    mask
        Which places are candidates, by record.
    given
        The logarithm of his beliefs, by record and place; None if all is alike.
    by_model
        Whether he believed what the model says of the others in the file.
    """

    mask: Mask = field(repr=False)
    given: Vector | None = field(repr=False)
    by_model: bool

    def log(self, predicted: Vector) -> Vector:
        """Their logarithm, up to a constant, where the model predicts the candidates like this."""
        log = np.zeros(self.mask.shape) if self.given is None else self.given
        if self.by_model:
            log = np.log(np.maximum(predicted, SMALLEST))
        return np.where(self.mask, log, -np.inf)


def chances(log_before: Vector, sums: Sequence[Vector]) -> Vector:
    """Normalised chances from the first copy, the first two, ...: sums of the copies over those of the file."""
    log_ratio = np.log(np.maximum(np.array(sums[1:]), SMALLEST)) - np.log(np.maximum(sums[0], SMALLEST))
    return np.array([normal(log_before + upto) for upto in np.cumsum(log_ratio, axis=0)])


def chances_with_error(sums: Sequence[Vector], predicted: Vector, before: Before) -> tuple[Vector, Vector, Vector]:
    """Chances by number of copies, the error of the truth's from all copies, and the log beliefs.

    Parameters
    ----------
    sums
        By group of draws, record and place: of the file, then of each copy.
    predicted
        Sums of the probabilities that the file without the record gives, likewise.
    """
    log_before = before.log(predicted.sum(axis=0))
    chance = chances(log_before, [one.sum(axis=0) for one in sums])

    def truth_by(groups: IntVector) -> Vector:
        """The chance of the truth from some groups of draws."""
        some = [one[groups].sum(axis=0) for one in sums]
        return np.asarray(chances(before.log(predicted[groups].sum(axis=0)), some)[-1][:, 0])

    every = np.arange(GROUPS)
    left_out = np.array([truth_by(every[every != g]) for g in every])
    error = np.sqrt((GROUPS - 1) / GROUPS * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    # Chains that settled in classes of their own differ more than groups within them do.
    first_half, second_half = (truth_by(part) for part in np.array_split(every, 2))
    return chance, np.maximum(error, np.abs(first_half - second_half) / 2.0), log_before


def normal(log: Vector) -> Vector:
    """Shares from their logarithms, up to a constant in each row."""
    shares = np.exp(log - log.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def ranks(chance: Vector, mask: Mask) -> IntVector:
    """The rank of the truth, which is in the first place: 1 if nothing is likelier."""
    return np.asarray(((chance > chance[:, :1]) & mask).sum(axis=1) + 1)
