"""What a structural-zero rule says: the labels it names, and the levels of the keys they stand for."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from keyhole.errors import InvalidRules
from keyhole.keys.variable import KeyVariable
from keyhole.table.level_sets import LevelSet

Box = dict[int, LevelSet]
"""A rule in codes: for some key positions, the levels it is about; it is about all levels of the others."""


@dataclass(frozen=True)
class Labels:
    """Any of these labels of a key, or, ``negated``, any but these."""

    key: str
    labels: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True)
class ZeroRule:
    """Nobody is in a cell that matches all ``conditions``; ``number`` is the rule's place in its file, from 1."""

    number: int
    conditions: tuple[Labels, ...]

    @property
    def keys(self) -> str:
        """The names of the keys that the rule is about."""
        return ", ".join(condition.key for condition in self.conditions)


@dataclass(frozen=True)
class ZeroRules:
    """Rules, of which a cell need match only one to be impossible, and the name of where they come from."""

    rules: tuple[ZeroRule, ...]
    source: str = "the rule file"

    def __len__(self) -> int:
        return len(self.rules)

    def boxes(self, keys: Sequence[KeyVariable]) -> tuple[Box, ...]:
        """The rules in the codes of these keys.

        Raises
        ------
        InvalidRules
            A rule that names an unknown key or label, matches no cell, or matches every cell.
        """
        position = {key.name: j for j, key in enumerate(keys)}
        return tuple(_box(rule, f"Rule {rule.number} of {self.source}", keys, position) for rule in self.rules)


def _box(rule: ZeroRule, name: str, keys: Sequence[KeyVariable], position: dict[str, int]) -> Box:
    box: Box = {}
    for condition in rule.conditions:
        if condition.key not in position:
            raise InvalidRules(
                f"{name} names {condition.key!r}, which is not among the keys ({_some(list(position))})"
                f"{_closest(condition.key, list(position))}. Add the key, or remove the rule."
            )
        j = position[condition.key]
        box[j] = _level_set(condition, name, keys[j])
    if all(chosen.count(len(keys[j])) == len(keys[j]) for j, chosen in box.items()):
        raise InvalidRules(f"{name} matches every cell: nobody could exist. Narrow it.")
    return box


def _level_set(condition: Labels, name: str, key: KeyVariable) -> LevelSet:
    unknown = sorted({label for label in condition.labels if label not in key.code})
    if unknown:
        # The labels of the key are not offered: there may be few people who have them.
        named = ", ".join(map(repr, unknown[:5]))
        more = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
        raise InvalidRules(
            f"{name} names {len(unknown):,} unknown label{'s'[: len(unknown) > 1]} of {key.name}: "
            f"{named}{more}. {key.name} has {len(key):,} labels, those in the data and in the codebook (--levels)."
        )
    chosen = LevelSet(frozenset(key.code[label] for label in condition.labels), condition.negated)
    if chosen.count(len(key)) == 0:
        raise InvalidRules(
            f"{name} leaves no label of {key.name}, so it matches no cell. Name at least one, or remove it."
        )
    return chosen


def _closest(word: str, words: Sequence[str]) -> str:
    """Up to three of the words that look most like ``word``, said in brackets."""
    near = get_close_matches(word, words, n=3, cutoff=0.5)
    return f" (closest: {', '.join(map(repr, near))})" if near else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
