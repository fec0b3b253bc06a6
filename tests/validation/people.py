"""A small made-up population for tests."""

import numpy as np

from keyhole.keys.variable import KeyVariable
from keyhole.validation.population import KnownPopulation

KEYS = tuple(
    KeyVariable(name, tuple(f"{name}{i}" for i in range(size)))
    for name, size in zip("ABC", (12, 9, 7), strict=True)
)


def people(number: int = 4000, seed: int = 5) -> KnownPopulation:
    """People whose keys are independent and uneven."""
    rng = np.random.default_rng(seed)
    codes = [rng.choice(len(key), number, p=rng.dirichlet(np.full(len(key), 0.7))) for key in KEYS]
    return KnownPopulation.from_codes(KEYS, np.column_stack(codes))
