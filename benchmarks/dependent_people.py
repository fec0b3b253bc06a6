"""People whose keys depend on each other, for benchmarks that need many of them and know the truth."""

from collections.abc import Sequence

import numpy as np

from keyhole.arrays import IntVector


def dependent_people(
    size: int, levels: Sequence[int], *, parents: int, strength: float, rng: np.random.Generator
) -> IntVector:
    """Codes of everybody: each key a multinomial logit of some of those before it."""
    codes = np.empty((size, len(levels)), dtype=np.int64)
    for key, number in enumerate(levels):
        logit = np.broadcast_to(rng.normal(0, 0.8, number), (size, number)).copy()
        for parent in rng.permutation(key)[:parents]:
            logit += rng.normal(0, strength, (levels[parent], number))[codes[:, parent]]
        codes[:, key] = np.argmax(logit + rng.gumbel(size=logit.shape), axis=1)
    return codes
