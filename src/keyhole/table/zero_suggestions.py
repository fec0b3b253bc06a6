"""Pairs of levels that look impossible: never seen together although chance would have brought them together."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from keyhole.table.contingency import ContingencyTable

EXPECTED = 20.0
"""Records that a pair would be expected to have, were its keys independent, before it is suggested."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One level of a key with levels of another that no record has together.

    Attributes
    ----------
    expected
        Records that all these pairs would have together, were the two keys independent.
    """

    key: str
    level: str
    other: str
    levels: tuple[str, ...]
    expected: float

    @property
    def rule(self) -> str:
        """The suggestion as a line of a file of structural zeros; JSON strings are YAML strings."""
        names = [json.dumps(text, ensure_ascii=False) for text in (self.key, self.level, self.other)]
        levels = ", ".join(json.dumps(level, ensure_ascii=False) for level in self.levels)
        key, level, other = names
        return f"- {{{key}: {level}, {other}: [{levels}]}}"


def suggest_zeros(table: ContingencyTable, expected: float = EXPECTED) -> tuple[Suggestion, ...]:
    """Pairs of levels without a record whose expected number of records is at least ``expected``.

    Levels of one key that are missing beside the same level of the other are one suggestion; of the two ways to
    group a pair of keys the shorter list is taken. The most expected come first.

    Examples
    --------
    >>> from keyhole.keys.variable import KeyVariable
    >>> age, state = KeyVariable("AGE", ("child", "adult")), KeyVariable("STATE", ("single", "married"))
    >>> cells = np.array([[0, 0], [1, 0], [1, 1]])
    >>> found = suggest_zeros(ContingencyTable((age, state), cells, np.array([40, 40, 80])))
    >>> [(one.rule, one.expected) for one in found]
    [('- {"AGE": "child", "STATE": ["married"]}', 20.0)]
    """
    found: list[Suggestion] = []
    for first, second in combinations(range(len(table.keys)), 2):
        pairs = np.zeros((len(table.keys[first]), len(table.keys[second])))
        np.add.at(pairs, (table.cells[:, first], table.cells[:, second]), table.counts)
        chance = np.outer(pairs.sum(axis=1), pairs.sum(axis=0)) / max(pairs.sum(), 1.0)
        missing = (pairs == 0) & (chance >= expected)
        ways = [
            _grouped(table, first, second, missing, chance),
            _grouped(table, second, first, missing.T, chance.T),
        ]
        found += ways[0] if len(ways[0]) <= len(ways[1]) else ways[1]
    return tuple(sorted(found, key=lambda one: -one.expected))


def _grouped(
    table: ContingencyTable, first: int, second: int, missing: np.ndarray, chance: np.ndarray
) -> Sequence[Suggestion]:
    key, other = table.keys[first], table.keys[second]
    return [
        Suggestion(
            key.name,
            key.levels[a],
            other.name,
            tuple(other.levels[b] for b in np.flatnonzero(missing[a])),
            float(chance[a, missing[a]].sum()),
        )
        for a in np.flatnonzero(missing.any(axis=1))
    ]
