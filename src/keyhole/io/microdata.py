"""Records that have been opened, not loaded: what tabulation may ask of a file, table or frame."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from keyhole.errors import InvalidKeys
from keyhole.io.engine import Engine

MOST_LEVELS = 1_000_000
"""More different values than this in one column cannot be told as levels of a key."""

TOGETHER = 24
"""How many columns are counted in one pass over the data."""


@dataclass(frozen=True)
class Column:
    """A column as DuckDB sees it.

    Attributes
    ----------
    sql
        Gives the raw value of a record: a whole number or a text; NULL, and the empty text, are missing.
    type
        The SQL type of that value, an integer type or VARCHAR.
    number
        Gives the value as a double (for weights): NULL where missing, infinite where it is no number.
    labels
        For columns that come as codes: the label of each code.
    ordered
        Whether the order of ``labels`` means something.
    """

    sql: str
    type: str
    number: str
    labels: tuple[str, ...] | None = field(default=None, repr=False)
    ordered: bool = False


class RawLevel(NamedTuple):
    """A value that occurs in a column: as stored, as shown (None: missing), and in how many records."""

    value: int | str | None
    label: str | None
    records: int


@dataclass(frozen=True)
class Selection:
    """Some columns, ready to be queried: what stands after FROM, and the SQL of each column."""

    relation: str
    columns: dict[str, Column]


class Opened(Protocol):
    """What a reader gives: the columns and number of records, and the chosen columns as a relation."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def records(self) -> int: ...

    def select(self, names: Sequence[str], engine: Engine, weights: str | None = None) -> Selection:
        """Make the named columns and the weights ready; the records are in the same order at every call."""


@dataclass(frozen=True)
class Microdata:
    """One record per person, opened for reading; get one from :func:`keyhole.io.read`.

    Attributes
    ----------
    source
        The name of the data in messages: a file name, or a table and where it is, without credentials.
    """

    source: str
    opened: Opened = field(repr=False)
    engine: Engine = field(repr=False)
    _levels: dict[str, tuple[RawLevel, ...]] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the data."""
        return self.opened.columns

    @property
    def records(self) -> int:
        """The number of records."""
        return self.opened.records

    def select(self, names: Iterable[str], weights: str | None = None) -> Selection:
        """The named columns and the weights, ready to be queried; nothing else is read."""
        return self.opened.select(tuple(dict.fromkeys(names)), self.engine, weights)

    def levels(self, names: Sequence[str]) -> dict[str, tuple[RawLevel, ...]]:
        """The values that occur in each named column, with their labels and numbers of records.

        Values of a column whose order means something come in that order, others in no particular order.
        """
        selection = self.select(names)
        unknown = [name for name in selection.columns if name not in self._levels]
        for start in range(0, len(unknown), TOGETHER):
            self._levels.update(_count_levels(self, selection, unknown[start : start + TOGETHER]))
        return {name: self._levels[name] for name in selection.columns}

    def close(self) -> None:
        """Forget the data; nothing can be asked afterwards."""
        self.engine.close()


def _count_levels(
    microdata: Microdata, selection: Selection, names: Sequence[str]
) -> dict[str, tuple[RawLevel, ...]]:
    """Count the values of several columns in one pass."""
    aliases = [f"v{i}" for i in range(len(names))]
    values = ", ".join(f"{selection.columns[name].sql} AS {v}" for name, v in zip(names, aliases, strict=True))
    rows = microdata.engine.rows(
        f"SELECT {', '.join(f'GROUPING({v})' for v in aliases)}, {', '.join(aliases)}, count(*) "
        f"FROM (SELECT {values} FROM {selection.relation}) "
        f"GROUP BY GROUPING SETS ({', '.join(f'({v})' for v in aliases)}) LIMIT {MOST_LEVELS + 1}"
    )
    if len(rows) > MOST_LEVELS and len(names) > 1:  # too many together; perhaps none has too many alone
        return {name: _count_levels(microdata, selection, [name])[name] for name in names}
    if len(rows) > MOST_LEVELS:
        _refuse_continuous(microdata, names[0])
    counts: dict[str, dict[int | str | None, int]] = {name: {} for name in names}
    for row in rows:
        place = row.index(0)  # the one column that this row was grouped by
        counts[names[place]][row[len(names) + place]] = row[-1]
    return {name: _labelled(selection.columns[name], counts[name]) for name in names}


def _labelled(column: Column, counts: dict[int | str | None, int]) -> tuple[RawLevel, ...]:
    levels = [RawLevel(value, _label(column, value), records) for value, records in counts.items()]
    if column.ordered:
        levels.sort(key=lambda level: (level.value is None, level.value or 0))
    return tuple(levels)


def _label(column: Column, value: int | str | None) -> str | None:
    if value is None or value == "":
        return None
    return str(value) if column.labels is None else column.labels[int(value)]


def _refuse_continuous(microdata: Microdata, name: str) -> None:
    raise InvalidKeys(
        f"Column {name!r} of {microdata.source} has more than {MOST_LEVELS:,} different values among "
        f"{microdata.records:,} records, the most that a key can have. Leave it out, or round it before reading."
    )


def with_weights(names: Sequence[str], weights: str | None) -> tuple[str, ...]:
    """The named columns and, if there are any, the weights, each once."""
    return tuple(dict.fromkeys((*names, *(() if weights is None else (weights,)))))
