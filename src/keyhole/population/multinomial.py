"""Unsampled people who fall into cells independently with known probabilities."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector


@dataclass(frozen=True, slots=True)
class MultinomialUnsampled:
    r"""N - n unsampled people choose cells; everything but the unique cells is one remainder cell.

    .. math:: r_1 = (1 - p)^m, \qquad r_2 = \frac{1 - (1 - p)^{m + 1}}{(m + 1)\,p}

    Attributes
    ----------
    probability
        The probability of each sample-unique cell, renormalised over admissible cells.
    trials
        m = N - n.

    Examples
    --------
    >>> MultinomialUnsampled(np.array([0.0, 1.0]), 3).mean_match().tolist()
    [1.0, 0.25]
    """

    probability: Vector
    trials: int

    def prob_none(self) -> Vector:
        return np.exp(_log_missed(self.probability, self.trials))

    def mean_match(self) -> Vector:
        times = self.trials + 1.0
        positive = self.probability > 0
        chance = np.where(positive, self.probability, 1.0)
        return np.asarray(np.where(positive, -np.expm1(_log_missed(chance, times)) / (times * chance), 1.0))

    def draw(self, rng: Generator) -> IntVector:
        # Rounding may lift the sum of the cells above 1, which NumPy refuses.
        whole = float(self.probability.sum())
        cells = self.probability / max(whole, 1.0)
        return rng.multinomial(self.trials, np.append(cells, max(1.0 - whole, 0.0)))[:-1]


def _log_missed(probability: Vector, times: float) -> Vector:
    """log of (1 - p)^times, with 0^0 = 1."""
    if times == 0:
        return np.zeros_like(probability)
    with np.errstate(divide="ignore"):
        return np.asarray(times * np.log1p(-probability))
