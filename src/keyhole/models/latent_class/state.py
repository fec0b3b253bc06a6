"""Where a chain of the latent class model is."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import Vector


@dataclass(eq=False)
class LatentClasses:
    """Parameters and records of the classes.

    Attributes
    ----------
    log_weight
        Log shares of the classes among the people, all of whom are admissible.
    log_theta
        Log probabilities by level, the levels of one key after those of another, and class.
    log_admissible
        Log chance of each class that independent levels make an admissible cell; 0 without structural zeros.
    mass, base
        The prior of a class's probabilities of the levels of key j is Dirichlet(mass_j base_j).
    concentration
        Of the sticks that the weights are broken from.
    records
        How many records there are.
    occupied
        Classes that had records in the last sweep.
    """

    log_weight: Vector = field(repr=False)
    log_theta: NDArray[np.float64] = field(repr=False)
    log_admissible: Vector = field(repr=False)
    mass: Vector = field(repr=False)
    base: Vector = field(repr=False)
    concentration: float
    records: int
    occupied: int = 0
