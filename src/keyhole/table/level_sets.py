"""Sets of levels of one key, and the groups of levels that none of them tells apart."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.arrays import IntVector, Mask


@dataclass(frozen=True)
class LevelSet:
    """The levels with these codes, or, ``negated``, all the others.

    Examples
    --------
    >>> LevelSet(frozenset({0, 2}), negated=True).count(5)
    3
    """

    codes: frozenset[int]
    negated: bool = False

    def count(self, levels: int) -> int:
        """The number of levels in the set, of a key that has ``levels``."""
        return levels - len(self.codes) if self.negated else len(self.codes)


def tell_apart(sets: Sequence[LevelSet], levels: int) -> tuple[IntVector, Mask]:
    """The group of each level, and the groups of each set; levels of a group are in the same sets.

    The work is that of the levels the sets name, not of all levels of the key.

    Examples
    --------
    >>> group, member = tell_apart([LevelSet(frozenset({1})), LevelSet(frozenset({0, 1}), negated=True)], 4)
    >>> group.tolist(), member.astype(int).tolist()
    ([1, 2, 0, 0], [[0, 0, 1], [1, 0, 0]])
    """
    named_by: defaultdict[int, list[int]] = defaultdict(list)
    for position, chosen in enumerate(sets):
        for code in chosen.codes:
            named_by[code].append(position)

    group = np.zeros(levels, dtype=np.int64)
    # Levels that no set names are a group of their own, if there are any.
    signatures: dict[tuple[int, ...], int] = {} if len(named_by) == levels else {(): 0}
    for code in sorted(named_by):
        group[code] = signatures.setdefault(tuple(named_by[code]), len(signatures))

    member = np.zeros((len(sets), len(signatures)), dtype=np.bool_)
    for signature, number in signatures.items():
        member[list(signature), number] = True
    return group, member ^ np.array([chosen.negated for chosen in sets], dtype=np.bool_)[:, None]
