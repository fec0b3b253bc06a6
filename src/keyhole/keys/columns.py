"""Whether the columns that were asked for are there, and which were probably meant."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from keyhole.errors import InvalidKeys, InvalidRules, UnknownKeyVariable
from keyhole.io.microdata import Microdata


def check_names(microdata: Microdata, names: Sequence[str]) -> None:
    """Refuse no keys, a key given twice, and keys that are not columns."""
    if not names:
        raise InvalidKeys("No key variables were given: name the columns an intruder may know.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InvalidKeys(f"Each key can be given once only; given more than once: {', '.join(map(repr, twice))}.")
    known = set(microdata.columns)
    for name in names:
        if name not in known:
            near = suggestion(name, microdata.columns)
            raise UnknownKeyVariable(f"Key variable {name!r} is not a column of {microdata.source}. {near}")


def check_ruled(microdata: Microdata, ruled: Iterable[str], what: str) -> None:
    """Refuse rules for columns that do not exist."""
    known = set(microdata.columns)
    unknown = {name: place for place, name in enumerate(ruled, 1) if name not in known}
    if unknown:
        name, place = next(iter(unknown.items()))
        # A name like no column may be a value: the file may be data, given by mistake.
        first = repr(name) if closest(name, microdata.columns) else f"entry {place} of the file"
        raise InvalidRules(
            f"The {what} has rules for {len(unknown)} columns that {microdata.source} does not have, "
            f"the first is {first}. {suggestion(name, microdata.columns)}"
        )


def closest(name: str, columns: Sequence[str], most: int = 3) -> list[str]:
    """The columns whose names are most like ``name``, whatever their case."""
    folded: dict[str, list[str]] = {}
    for column in columns:
        folded.setdefault(column.casefold(), []).append(column)
    near = get_close_matches(name.casefold(), list(folded), n=most, cutoff=0.5)
    return [column for match in near for column in folded[match]][:most]


def suggestion(name: str, columns: Sequence[str]) -> str:
    """What to say to someone who asked for a column that is not there."""
    near = closest(name, columns)
    if near:
        return f"Closest columns: {', '.join(near)}."
    which = "Its" if len(columns) <= 10 else "The first 10 of its"
    return f"{which} {len(columns)} columns are: {', '.join(columns[:10])}."
