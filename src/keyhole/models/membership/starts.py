"""Where chains begin: records gathered around a few of them, or around many."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import Codes

FEW, MANY = 2, 60
"""Profiles at the start, where their number is not fixed."""


def allocations(records: Codes, components: int, crowded: bool, rng: Generator) -> NDArray[np.int16]:
    """One profile for all keys of each record: that of the nearest of some records drawn at random.

    With a fixed number of profiles all of them have records at a crowded start, and two at the other, or one where
    there are but two.
    """
    n = len(records)
    most = components or MANY
    number = min(most if crowded else max(min(FEW, most - 1), 1), max(n, 1))
    centres = records[rng.choice(n, number, replace=False)] if n else records
    nearest = np.zeros(n, dtype=np.int16)
    fewest = np.full(n, np.inf)
    for k, centre in enumerate(centres):
        # Ties are broken at random: equal centres share their records.
        apart = (records != centre).sum(axis=1) + rng.random(n)
        nearest[apart < fewest] = k
        np.minimum(fewest, apart, out=fewest)
    return np.repeat(nearest[:, None], records.shape[1], axis=1)
