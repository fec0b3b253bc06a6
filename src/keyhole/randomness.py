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


def stream_beside(rng: Generator, of: str, purpose: str) -> Generator:
    """What `stream` gives for another purpose with the seed of this one; of another generator, one of its own.

    Examples
    --------
    >>> auto = stream(7, "auto")
    >>> bool(stream_beside(auto, "auto", "pitman").random() == stream(7, "pitman").random())
    True
    >>> one, two = (stream_beside(own, "auto", "pitman") for own in np.random.default_rng(7).spawn(2))
    >>> bool(one.random() == two.random())
    False
    """
    seeds = rng.bit_generator.seed_seq
    assert isinstance(seeds, SeedSequence)
    before = seeds.spawn_key
    if before[-1:] == (crc32(of.encode()),):
        before = before[:-1]
    return np.random.default_rng(SeedSequence(seeds.entropy, spawn_key=(*before, crc32(purpose.encode()))))
