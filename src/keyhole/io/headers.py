"""Whether the first line of a text file names its columns, or is a record: then no message may repeat it."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from keyhole.errors import UnreadableData

LOOKED_AT = 1000
"""How many records below the first line it is compared with."""

NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
YEAR = re.compile(r"(1[89]|20)\d\d")


def check_header(names: Sequence[str], records: Iterable[Sequence[str]], source: str) -> None:
    """Refuse a first line of numbers, or of values that stand in the same columns below.

    A file without a header would otherwise show its first record as names of columns. Years are common names, so
    they count as such, unless they too stand below.

    Parameters
    ----------
    records
        The first line and those below it.

    Examples
    --------
    >>> check_header(["id", "2019", "2020"], [["id", "2019", "2020"], ["7", "0.3", "0.4"]], "survey.csv")
    >>> check_header(["f", "31"], [["f", "31"], ["m", "40"], ["f", "7"]], "survey.csv")
    Traceback (most recent call last):
        ...
    keyhole.errors.UnreadableData: The first line of survey.csv does not look like column names: ...
    """
    fields = [name.strip() for name in names]
    if 2 * sum(_is_value(field) for field in fields) > len(fields):
        _refuse(source, "most of its fields are numbers or empty")
    below: set[int] = set()
    for record in islice(records, 1, LOOKED_AT + 1):
        below.update(
            place
            for place, (field, value) in enumerate(zip(fields, record, strict=False))
            if field and value.strip() == field
        )
    if below and 2 * len(below) >= sum(bool(field) for field in fields):
        _refuse(source, f"{len(below)} of its fields occur as values in the same columns below")


def _is_value(field: str) -> bool:
    return not field or (NUMBER.fullmatch(field) is not None and YEAR.fullmatch(field) is None)


def _refuse(source: str, why: str) -> None:
    raise UnreadableData(
        f"The first line of {source} does not look like column names: {why}. Add a line that names the columns."
    )
