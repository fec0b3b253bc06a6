"""What a file like the input holds for each level of a key."""

import math
import re
from collections.abc import Callable

from keyhole.io.coded import label_of
from keyhole.io.microdata import Microdata
from keyhole.io.stored import Value, stored_column
from keyhole.io.typed import FLOATS, INTEGERS, TypedTable
from keyhole.keys.coding import KeyCoding
from keyhole.keys.numbers import number_of
from keyhole.keys.variable import MISSING

WHOLE = {*INTEGERS, "UBIGINT"}
"""Types of DuckDB that hold whole numbers."""

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,19}")
"""How they are written: 007 is a text."""


def level_values(microdata: Microdata, coding: KeyCoding) -> tuple[Value | None, ...]:
    """The value that a file of the input's kind holds for each level, in the order of the levels.

    It is the value that the input shows by the level's label: a number in a column of numbers, the code in a
    column of SPSS or Stata with value labels, otherwise the label itself; None for the missing level. Where a
    level has no such value, because a recode or a codebook gave it a label of another kind, all levels of the key
    are texts, their labels.

    No value stands for a level with another label, even if it is the only one that has this level: a top-coded
    value must not come back.

    Parameters
    ----------
    coding
        From :func:`keyhole.keys.code_keys` of the same data.

    Examples
    --------
    >>> import polars
    >>> from keyhole.io import read
    >>> from keyhole.keys import Recode, code_keys
    >>> data = read(polars.DataFrame({"AGE": [9, 70, 10, None]}))
    >>> (age,) = code_keys(data, ["AGE"], recodes={"AGE": Recode(top=65)})
    >>> level_values(data, age)
    ('9', '10', '65+', None)
    """
    levels = coding.variable.levels
    values = _found(levels, _finder(microdata, coding.variable.name))
    if values is None:
        values = {level: level for level in levels}
    return tuple(None if level == MISSING else values[level] for level in levels)


def value_labels(microdata: Microdata, coding: KeyCoding) -> dict[Value, str] | None:
    """The value labels that belong to `level_values`: None if the column has none, or its levels became texts."""
    column = stored_column(microdata, coding.variable.name)
    if column is None or not column.labels or _found(coding.variable.levels, column.value_of) is None:
        return None
    return dict(column.labels)


def _found(levels: tuple[str, ...], value_of: Callable[[str], Value | None]) -> dict[str, Value] | None:
    """The value of each level; None if not every level has one of its own."""
    values = {level: value_of(level) for level in levels if level != MISSING}
    found = {level: value for level, value in values.items() if value is not None}
    return found if len(set(found.values())) == len(values) else None


def _finder(microdata: Microdata, name: str) -> Callable[[str], Value | None]:
    """How the value of a label is found in this column."""
    column = stored_column(microdata, name)
    if column is not None:
        return column.value_of
    kind = microdata.opened.types[name][1] if isinstance(microdata.opened, TypedTable) else "VARCHAR"
    if kind in WHOLE:
        return _whole
    if kind in FLOATS:
        return _number
    if kind.startswith("DECIMAL"):
        return _same_number
    return {"false": False, "true": True}.get if kind == "BOOLEAN" else str


def _whole(label: str) -> int | None:
    return int(label) if WHOLE_NUMBER.fullmatch(label) else None


def _number(label: str) -> int | float | None:
    whole = _whole(label)
    if whole is not None:
        return whole if abs(whole) < 1 << 53 else float(whole)
    return float(label) if number_of(label) is not None or label in ("inf", "-inf") else None


def _same_number(label: str) -> int | float | None:
    """A number, if no digit of the label is lost with it: 1.50 would come back as 1.5."""
    value = _number(label)
    return value if value is None or math.isinf(value) or label_of(value) == label else None
