"""A seed becomes recorded, independent streams: one per model, one per chain."""

from zlib import crc32

import numpy as np
from numpy.random import Generator, SeedSequence

DEFAULT_SEED = 1


def stream(seed: int, purpose: str) -> Generator:
    """A generator that depends on the seed and on what it is for, and on nothing else.

    Naming the purpose keeps a model's draws the same whether it runs alone or beside others.

    Examples
    --------
    >>> bool(stream(7, "pitman").random() == stream(7, "pitman").random())
    True
    >>> bool(stream(7, "pitman").random() == stream(7, "ewens").random())
    False
    """
    return np.random.default_rng(SeedSequence(seed, spawn_key=(crc32(purpose.encode()),)))


def stream_beside(rng: Generator, purpose: str) -> Generator:
    """The stream that `stream` gives for another purpose with the seed of this one.

    Examples
    --------
    >>> bool(stream_beside(stream(7, "auto"), "pitman").random() == stream(7, "pitman").random())
    True
    """
    seeds = rng.bit_generator.seed_seq
    assert isinstance(seeds, SeedSequence)
    key = (*seeds.spawn_key[:-1], crc32(purpose.encode()))
    return np.random.default_rng(SeedSequence(seeds.entropy, spawn_key=key))
