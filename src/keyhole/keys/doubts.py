"""Which keys can be used but probably should not be: one level, very many, or labels that stand for nothing."""

import warnings
from collections.abc import Mapping

from keyhole.errors import DoubtfulKeys
from keyhole.keys.numbers import number_of
from keyhole.keys.variable import MISSING, KeyVariable

FEW_LEVELS, MANY_LEVELS, PER_LEVEL = 20, 1000, 5
"""A key is doubtful above 1000 levels, or above 20 if its levels hold fewer than 5 records on average.

Age in single years (some 100 levels) passes in a file of 500 records or more; an income or an identifier does not
pass in any file.
"""

NOTHING = {"na", "n/a", "n.a.", "nan", "null", "none", "nil", ".", "-", "?", "#n/a", "<na>", "missing", "unknown"}
"""Labels that often stand for a missing value, in lower case."""


def warn_doubtful(key: KeyVariable, records: int, in_level: Mapping[str, int]) -> None:
    """Warn of a key that makes everyone unique, or nobody, or counts missing values as people who are alike."""
    levels = len(key)
    if levels == 1:
        _warn(f"Key {key.name!r} has one level only: it tells nobody apart. Leave it out.")
    elif levels > MANY_LEVELS or (levels > FEW_LEVELS and levels * PER_LEVEL > records):
        numbers = sum(number_of(label) is not None for label in key.levels)
        kind = "looks continuous" if numbers > 0.9 * (levels - 1) else "is nearly an identifier"
        _warn(
            f"Key {key.name!r} has {levels:,} levels for {records:,} records: it {kind} and makes almost everyone "
            "unique. Recode it into bands or groups, or leave it out."
        )
    nothing = [label for label in key.levels if label != MISSING and label.strip().lower() in NOTHING]
    if nothing:
        _warn(
            f"Key {key.name!r} has {len(nothing)} levels that look like missing values: {', '.join(nothing)} "
            f"({sum(in_level[label] for label in nothing):,} records). They are counted as levels of their own; "
            f"to make them missing, recode them to {MISSING!r}."
        )


def _warn(message: str) -> None:
    warnings.warn(message, DoubtfulKeys, stacklevel=5)
