"""Where a chain of the mixed membership model is."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import IntVector, Vector


@dataclass
class Memberships:
    """Parameters, and the profile of every key of every record.

    Attributes
    ----------
    z
        The profile of each record and key (n, J).
    theta
        Profiles: the probability of each level of each key (R, K), keys one after the other.
    g0
        The weight of each profile (K,).
    left
        The weight of all profiles that do not exist yet; 0 where their number is fixed.
    alpha
        The concentration of each record (n,), or one for all.
    alpha0
        The concentration of the weights.
    mass, base
        The prior of the profiles, by key and by level.
    imaginary
        Inadmissible records that were drawn beside the real ones.
    """

    z: NDArray[np.int16] = field(repr=False)
    theta: Vector = field(repr=False)
    g0: Vector = field(repr=False)
    left: float
    alpha: Vector = field(repr=False)
    alpha0: float
    mass: Vector = field(repr=False)
    base: Vector = field(repr=False)
    imaginary: int = 0

    @property
    def profiles(self) -> int:
        return len(self.g0)


@dataclass
class Room:
    """Profiles with room for more, which kernels fill.

    Attributes
    ----------
    counts
        Records by level and profile (R, C).
    tables
        Tables of each profile (C,).
    profiles
        Columns in use.
    """

    theta: Vector
    g0: Vector
    counts: IntVector
    tables: IntVector
    profiles: int
    left: float

    @classmethod
    def of(cls, state: Memberships, more: int) -> "Room":
        """With so many columns to spare."""
        K = state.profiles
        theta = np.zeros((len(state.theta), K + more))
        theta[:, :K] = state.theta
        return cls(
            theta,
            np.concatenate([state.g0, np.zeros(more)]),
            np.zeros(theta.shape, dtype=np.int64),
            np.zeros(K + more, dtype=np.int64),
            K,
            state.left,
        )

    def take(
        self, profiles: int, left: float, theta: Vector, g0: Vector, counts: IntVector, tables: IntVector
    ) -> None:
        """What a kernel gives back: the arrays are others if it needed more room."""
        self.profiles, self.left = int(profiles), float(left)
        self.theta, self.g0, self.counts, self.tables = theta, g0, counts, tables

    @property
    def used(self) -> IntVector:
        """The profiles somebody has."""
        return np.flatnonzero(self.tables[: self.profiles])
