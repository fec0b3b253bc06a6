"""From the values of a column to the levels of a key: each value's code, after codebook, recoding and missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from keyhole.errors import InvalidKeys, InvalidRules
from keyhole.io.microdata import Microdata, RawLevel
from keyhole.keys.codebook import Codebook
from keyhole.keys.columns import check_names, check_ruled
from keyhole.keys.doubts import warn_doubtful
from keyhole.keys.numbers import in_order
from keyhole.keys.recode import Recodes
from keyhole.keys.variable import MISSING, KeyVariable

DROPPED = -1
"""The code of values whose records are left out."""


@dataclass(frozen=True)
class KeyCoding:
    """A key variable and how a column becomes one.

    Attributes
    ----------
    variable
        The key and its levels; its name is the name of the column.
    codes
        The code of each value that occurs in the column, :data:`DROPPED` for those left out.
    """

    variable: KeyVariable
    codes: Mapping[int | str | None, int] = field(repr=False)

    @property
    def drops(self) -> bool:
        """Whether records with some values are left out."""
        return DROPPED in self.codes.values()


def code_keys(
    microdata: Microdata,
    names: Sequence[str],
    *,
    recodes: Recodes | None = None,
    codebook: Codebook | None = None,
    missing: Literal["level", "drop"] = "level",
) -> tuple[KeyCoding, ...]:
    """Make columns into key variables.

    Levels are in the order of the codebook, or of the file if it has one (value labels, ordered categories);
    otherwise numbers come by size and texts by alphabet. The level of missing values is the last. Recoding acts on
    the levels, not on the records: a new level stands where the first of the old ones stood.

    Parameters
    ----------
    recodes
        From :func:`keyhole.keys.read_recodes`.
    codebook
        From :func:`keyhole.keys.read_codebook`: all labels of a column as they are before recoding.
    missing
        Whether missing values are a level of their own, or their records are left out.

    Examples
    --------
    >>> import polars
    >>> from keyhole.io import read
    >>> data = read(polars.DataFrame({"AGE": [9, 70, 10, None]}))
    >>> code_keys(data, ["AGE"])[0].variable.levels
    ('9', '10', '70', '(missing)')
    """
    check_names(microdata, names)
    check_ruled(microdata, recodes or {}, "recode file")
    check_ruled(microdata, codebook or {}, "codebook")
    found = microdata.levels(names)
    return tuple(
        _code(microdata, name, found[name], recodes or {}, (codebook or {}).get(name), missing == "drop")
        for name in names
    )


def _code(
    microdata: Microdata,
    name: str,
    found: tuple[RawLevel, ...],
    recodes: Recodes,
    listed: tuple[str, ...] | None,
    drop: bool,
) -> KeyCoding:
    present = [level.label for level in found if level.label is not None]
    ordered = microdata.select([name]).columns[name].ordered
    labels = _listed(microdata, name, found, listed) if listed else present if ordered else in_order(present)
    new = {label: label for label in (*labels, MISSING)}
    if name in recodes:
        recodes[name].check(labels, name, microdata.source)
        new = recodes[name].apply(new)
    levels = [label for label in dict.fromkeys(new[label] for label in labels) if label != MISSING]
    has_missing = any(new[level.label or MISSING] == MISSING for level in found) or MISSING in (listed or ())
    if new[MISSING] != MISSING and has_missing is False and any(level.label is None for level in found):
        levels = list(dict.fromkeys((*levels, new[MISSING])))
    if has_missing and not drop:
        levels.append(MISSING)
    if not levels:
        raise InvalidKeys(f"Key {name!r} is missing in all {microdata.records:,} records of {microdata.source}.")
    variable = KeyVariable(name, tuple(levels))
    codes = {level.value: variable.code.get(new[level.label or MISSING], DROPPED) for level in found}
    coding = KeyCoding(variable, codes)
    warn_doubtful(coding.variable, microdata.records, _records_of(coding, found))
    return coding


def _listed(microdata: Microdata, name: str, found: tuple[RawLevel, ...], listed: tuple[str, ...]) -> list[str]:
    """The labels of the codebook, which must know every label of the data."""
    known = {*listed, MISSING}
    strange = [level for level in found if level.label is not None and level.label not in known]
    if strange:
        records = sum(level.records for level in strange)
        raise InvalidRules(
            f"The codebook lists {len(listed)} labels of {name!r}, but {records:,} records of {microdata.source} "
            f"have {len(strange):,} others. It must list the labels as they are in the data, before recoding."
        )
    return list(listed)


def _records_of(coding: KeyCoding, found: tuple[RawLevel, ...]) -> dict[str, int]:
    records = dict.fromkeys(coding.variable.levels, 0)
    for level in found:
        code = coding.codes[level.value]
        if code != DROPPED:
            records[coding.variable.levels[code]] += level.records
    return records
