"""Which change of the keys would help most, in a sentence or two."""

from collections.abc import Sequence

from keyhole.report.words import in_prose, listed, percent, rounded
from keyhole.risk.drivers import KeyContribution

IDENTIFIER = 0.8
"""A key with at least this many levels per record points at a person almost by itself."""

AT_LEAST = "at least"
LEAST = (
    "Only records that stop being unique in the file are counted; the others become safer too, and where most are "
    "unique that may be much more: assess the file without the key, or with it recoded, to see all of it."
)


def is_identifier(key: KeyContribution, records: int) -> bool:
    """Whether a key has nearly as many levels as there are records, so that coarsening it mildly is no help."""
    return key.levels > 2 and key.levels >= IDENTIFIER * records


def what_would_help(keys: Sequence[KeyContribution], total: float, records: int, *, expected: bool) -> str:
    """The key to drop and the key to coarsen; empty if there is nothing to hide.

    Parameters
    ----------
    keys
        What each key contributes, gravest first.
    total
        Expected population uniques if ``expected``, else unique records.
    """
    if not keys or total < 0.5:
        return ""
    words = [*_dropped(keys, total, expected), *_identifiers(keys, records)]
    words += _coarsened(keys, total, records, milder=bool(words), expected=expected)
    if not words:
        return "No single key, dropped or coarsened, would hide any of these records; change several together."
    return " ".join([*words, LEAST] if any(AT_LEAST in one for one in words) else words)


def _dropped(keys: Sequence[KeyContribution], total: float, expected: bool) -> list[str]:
    lost = keys[0].dropped.tau1_lost
    if len(keys) == 1 or lost <= 0:
        return []
    return [
        f"Dropping {in_prose(keys[0].key)} would hide {_at_least(lost / total)} of the {_of(expected)} "
        f"({rounded(lost)} of {rounded(total)})."
    ]


def _identifiers(keys: Sequence[KeyContribution], records: int) -> list[str]:
    names = [in_prose(key.key) for key in keys if is_identifier(key, records)]
    if not names:
        return []
    have, drop = ("has", "drop it") if len(names) == 1 else ("have", "drop them")
    return [f"{listed(names)} {have} nearly as many levels as there are records: {drop} rather than coarsen."]


def _coarsened(
    keys: Sequence[KeyContribution], total: float, records: int, *, milder: bool, expected: bool
) -> list[str]:
    coarser = [
        (key.coarsened.tau1_lost, in_prose(key.key), key.coarsened.words)
        for key in keys
        if key.coarsened is not None and not is_identifier(key, records)
    ]
    if not coarser or max(coarser)[0] <= 0:
        return []
    lost, key, how = max(coarser)
    share = _at_least(lost / total)
    if milder:
        return [f"A milder step, coarsening {key} ({how}), would hide {share}."]
    return [f"Coarsening {key} ({how}) would hide {share} of the {_of(expected)}."]


def _of(expected: bool) -> str:
    return "expected number of population uniques" if expected else "unique records"


def _at_least(share: float) -> str:
    if share > 0.99:
        return "nearly all"
    return f"{AT_LEAST} {percent(share)}" if share >= 0.001 else f"{AT_LEAST} very few"
