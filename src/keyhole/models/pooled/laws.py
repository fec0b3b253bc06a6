"""The laws of a pool: so many of each member's as its share says."""

from collections.abc import Iterator, Sequence

import numpy as np

from keyhole.arrays import IntVector
from keyhole.inference.fit import Member
from keyhole.population.unsampled import UnsampledCounts

MOST_LAWS = 600
"""Laws of a pool, where its members have so many."""


def pooled_laws(members: Sequence[Member]) -> Iterator[UnsampledCounts]:
    """The members' laws in turn, evenly taken, their numbers in proportion to the shares.

    A member with one law, a plug-in fit, gives the same one again: its draws are new each time.
    """
    counting = [member for member in members if member.share > 0]
    if len(counting) == 1:
        yield from counting[0].fit.unsampled()
        return
    laws = [list(member.fit.unsampled()) for member in counting]
    numbers = numbers_of([len(own) for own in laws], [member.share for member in counting])
    for own, number in zip(laws, numbers, strict=True):
        places = np.floor((np.arange(number) + 0.5) * len(own) / number).astype(int)
        yield from (own[place] for place in places)


def numbers_of(available: Sequence[int], shares: Sequence[float]) -> IntVector:
    """How many laws to take of each member, as near to the shares as whole numbers come.

    Examples
    --------
    >>> numbers_of([200, 2000], [0.8, 0.2]).tolist()
    [200, 50]
    >>> numbers_of([200, 1], [0.5, 0.5]).tolist()
    [200, 200]
    """
    most = min(
        (number / share for number, share in zip(available, shares, strict=True) if number > 1), default=MOST_LAWS
    )
    total = min(most, MOST_LAWS)
    return np.maximum(np.rint(np.array(shares) * total), 1).astype(np.int64)
