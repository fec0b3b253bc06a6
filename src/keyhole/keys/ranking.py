"""Which columns make records unique: a ranking to choose keys, or what to coarsen, from."""

from collections.abc import Sequence
from dataclasses import dataclass

from keyhole.errors import InvalidKeys
from keyhole.io.microdata import Microdata, Selection
from keyhole.keys.columns import check_names

TOGETHER = 16
"""How many columns are ranked in one pass over the data: each needs a table of its own in memory."""


@dataclass(frozen=True)
class ColumnRank:
    """What one column alone, and added to the given keys, tells of the records.

    Attributes
    ----------
    levels
        Different values, missing counted as one.
    uniques
        Records that no other shares this column's value with.
    uniques_gained
        Sample uniques that are added when the column joins the given keys (``uniques`` if there are none).
    """

    name: str
    levels: int
    uniques: int
    uniques_gained: int


def rank_columns(
    microdata: Microdata, *, given: Sequence[str] = (), columns: Sequence[str] | None = None
) -> tuple[ColumnRank, ...]:
    """Rank columns by the sample uniques they create, most first.

    Values are compared by 64-bit hashes: among a hundred million records one chance in three thousand that two
    combinations are taken for one, and no copy of the values in memory.

    Parameters
    ----------
    given
        Keys that are chosen already.
    columns
        The columns to rank; by default all others that can be keys.

    Examples
    --------
    >>> import polars
    >>> from keyhole.io import read
    >>> data = read(polars.DataFrame({"SEX": ["f", "m", "m"], "AGE": [31, 7, 8]}))
    >>> [(rank.name, rank.uniques) for rank in rank_columns(data)]
    [('AGE', 3), ('SEX', 1)]
    """
    if given:
        check_names(microdata, given)
    if columns is not None:
        check_names(microdata, columns)
    wanted = [name for name in (microdata.columns if columns is None else columns) if name not in given]
    if columns is None:
        wanted = _usable(microdata, wanted)
    ranks: list[ColumnRank] = []
    for start in range(0, len(wanted), TOGETHER):
        ranks.extend(_rank(microdata, given, wanted[start : start + TOGETHER]))
    return tuple(sorted(ranks, key=lambda rank: (-rank.uniques_gained, -rank.uniques, -rank.levels)))


def _usable(microdata: Microdata, names: Sequence[str]) -> list[str]:
    """The columns that can be keys; lists and pictures cannot."""
    try:
        microdata.select(names)
        return list(names)
    except InvalidKeys:
        return [name for name in names if _is_usable(microdata, name)]


def _is_usable(microdata: Microdata, name: str) -> bool:
    try:
        microdata.select([name])
    except InvalidKeys:
        return False
    return True


def _rank(microdata: Microdata, given: Sequence[str], names: Sequence[str]) -> list[ColumnRank]:
    selection = microdata.select((*given, *names))
    alone = _groups(microdata, selection, [[name] for name in names])
    if not given:
        return [ColumnRank(name, *found, found[1]) for name, found in zip(names, alone, strict=True)]
    before, *joined = _groups(microdata, selection, [given, *([*given, name] for name in names)])
    return [
        ColumnRank(name, *found, added[1] - before[1])
        for name, found, added in zip(names, alone, joined, strict=True)
    ]


def _groups(
    microdata: Microdata, selection: Selection, combinations: Sequence[Sequence[str]]
) -> list[tuple[int, int]]:
    """How many different combinations there are, and how many of them one record has, in one pass."""
    hashes = ", ".join(
        f"hash({', '.join(selection.columns[name].sql for name in names)}) AS h{i}"
        for i, names in enumerate(combinations)
    )
    aliases = [f"h{i}" for i in range(len(combinations))]
    place = " + ".join(f"{i} * (1 - GROUPING({alias}))" for i, alias in enumerate(aliases))
    rows = microdata.engine.rows(
        f"SELECT place, count(*), count(*) FILTER (n = 1) FROM (SELECT {place} AS place, count(*) AS n "
        f"FROM (SELECT {hashes} FROM {selection.relation}) "
        f"GROUP BY GROUPING SETS ({', '.join(f'({alias})' for alias in aliases)})) GROUP BY place ORDER BY place"
    )
    return [(levels, uniques) for _, levels, uniques in rows]
