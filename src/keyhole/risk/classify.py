"""Which sample uniques to treat as population uniques."""

from dataclasses import dataclass

from keyhole.arrays import Vector
from keyhole.errors import InputError


@dataclass(frozen=True, slots=True)
class Classification:
    """Sample uniques by two thresholds: risky above kappa1, safe below kappa2, undecided between.

    References
    ----------
    Manrique-Vallier & Reiter (2012), section 5, after Fellegi & Sunter (1969).
    """

    kappa1: float
    kappa2: float
    risky: int
    undecided: int
    safe: int


def classify(r1: Vector, kappa1: float = 0.5, kappa2: float = 0.1) -> Classification:
    """Count the sample uniques whose chance of being population-unique is above kappa1 or below kappa2.

    Examples
    --------
    >>> import numpy as np
    >>> classify(np.array([0.9, 0.3, 0.05]))
    Classification(kappa1=0.5, kappa2=0.1, risky=1, undecided=1, safe=1)
    """
    check_thresholds(kappa1, kappa2)
    risky, safe = int((r1 > kappa1).sum()), int((r1 < kappa2).sum())
    return Classification(kappa1, kappa2, risky, len(r1) - risky - safe, safe)


def check_thresholds(kappa1: float, kappa2: float) -> None:
    """Refuse thresholds that are not probabilities in order."""
    if not 0 <= kappa2 <= kappa1 <= 1:
        raise InputError(
            f"The thresholds must satisfy 0 <= kappa2 <= kappa1 <= 1; found {kappa2:g} and {kappa1:g}."
        )
