"""Unsampled counts known only by draws."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import IntVector, Vector


@dataclass(frozen=True, slots=True)
class SimulatedUnsampled:
    """r1 and r2 are averages over the given draws; a draw is one of them.

    Attributes
    ----------
    draws
        One row per joint draw, one column per sample-unique cell; at least one row.
    """

    draws: NDArray[np.int64]

    def prob_none(self) -> Vector:
        return np.asarray((self.draws == 0).mean(axis=0))

    def mean_match(self) -> Vector:
        return np.asarray((1.0 / (1.0 + self.draws)).mean(axis=0))

    def draw(self, rng: Generator) -> IntVector:
        return np.array(self.draws[int(rng.integers(len(self.draws)))])
