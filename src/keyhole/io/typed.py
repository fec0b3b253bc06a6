"""Typed columns of Parquet files and DuckDB tables as whole numbers or texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keyhole.errors import InvalidKeys, UnreadableData
from keyhole.io.engine import Engine, identifier
from keyhole.io.microdata import Column, Selection, with_weights

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
FLOATS = {"FLOAT", "DOUBLE"}
AS_TEXT = ("VARCHAR", "DATE", "TIME", "UUID", "UBIGINT", "HUGEINT", "UHUGEINT", "INTERVAL", "BIT")


@dataclass(frozen=True)
class TypedTable:
    """A Parquet file or DuckDB table, read in place.

    Attributes
    ----------
    types
        The SQL identifier and the type of each column.
    """

    relation: str
    types: Mapping[str, tuple[str, str]]
    records: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.types)

    def select(self, names: Sequence[str], engine: Engine, weights: str | None = None) -> Selection:
        """The named columns, as whole numbers or text."""
        return Selection(
            self.relation, typed_columns(engine, self.relation, self.types, with_weights(names, weights))
        )


def open_typed(relation: str, described: Sequence[tuple[str, ...]], records: int, engine: Engine) -> TypedTable:
    """A table from what DESCRIBE says of it."""
    types = {row[0]: (identifier(row[0]), row[1]) for row in described}
    if any(kind in FLOATS for _, kind in types.values()):
        engine.distrust_statistics()
    return TypedTable(relation, types, nonzero(records, engine.source))


def typed_columns(
    engine: Engine, relation: str, types: Mapping[str, tuple[str, str]], names: Sequence[str]
) -> dict[str, Column]:
    """The named columns of a relation, each read in the cheapest way that keeps its values apart.

    Parameters
    ----------
    types
        The SQL identifier and the DuckDB type of each column.
    """
    fractional = {name for name in names if _is_fractional(types[name][1])}
    whole = _whole_numbers(engine, relation, {name: types[name][0] for name in fractional})
    return {
        name: _enum_column(engine, *types[name])
        if types[name][1].startswith("ENUM(")
        else _column(engine.source, name, *types[name], name in whole)
        for name in names
    }


def _enum_column(engine: Engine, sql: str, kind: str) -> Column:
    """The column of an ENUM, whose levels have the order in which they were declared."""
    ((labels,),) = engine.rows(f"SELECT enum_range(CAST(NULL AS {kind}))")
    code = f"CAST(enum_code({sql}) AS INTEGER)"
    if "" in labels:
        code = f"nullif({code}, {labels.index('')})"
    return Column(code, "INTEGER", text_column(f"CAST({sql} AS VARCHAR)").number, tuple(labels), ordered=True)


def _column(source: str, name: str, sql: str, kind: str, whole: bool) -> Column:
    if kind in INTEGERS:
        return Column(sql, kind, f"CAST({sql} AS DOUBLE)")
    if kind == "BOOLEAN":
        return Column(f"CAST({sql} AS TINYINT)", "TINYINT", f"CAST({sql} AS DOUBLE)", ("false", "true"))
    if _is_fractional(kind):
        number = f"CAST({sql} AS DOUBLE)"
        # -0.0 and 0.0 are one number with two texts.
        known = f"CASE WHEN isnan({number}) THEN NULL WHEN {sql} = 0 THEN CAST(0 AS {kind}) ELSE {sql} END"
        if whole:
            return Column(f"CAST({known} AS BIGINT)", "BIGINT", number)
        # Whole numbers beside others: 3.0 is the label "3", as everywhere.
        text = f"regexp_replace(CAST({known} AS VARCHAR), '\\.0+$', '')"
        return Column(text, "VARCHAR", number)
    if kind == '"NULL"':  # a column that never held a value
        return text_column(f"CAST({sql} AS VARCHAR)")
    if kind.startswith(AS_TEXT):
        return text_column(sql if kind == "VARCHAR" else f"CAST({sql} AS VARCHAR)")
    raise InvalidKeys(
        f"Column {name!r} of {source} holds {kind.split('(')[0]} values, which cannot be a key or a weight: "
        "give a column of numbers, texts or dates."
    )


def text_column(sql: str) -> Column:
    """A column of text, in which the empty text is missing."""
    number = f"CASE WHEN {sql} <> '' THEN coalesce(TRY_CAST({sql} AS DOUBLE), 'inf'::DOUBLE) END"
    return Column(sql, "VARCHAR", number)


def _is_fractional(kind: str) -> bool:
    return kind in FLOATS or kind.startswith("DECIMAL")


def _whole_numbers(engine: Engine, relation: str, fractional: Mapping[str, str]) -> set[str]:
    """Which fractional columns hold whole numbers only: pandas stores whole numbers with gaps that way."""
    if not fractional:
        return set()
    checks = ", ".join(_is_whole(f"CAST({sql} AS DOUBLE)") for sql in fractional.values())
    (answers,) = engine.rows(f"SELECT {checks} FROM {relation}")
    return {name for name, whole in zip(fractional, answers, strict=True) if whole}


def _is_whole(number: str) -> str:
    # Below 2^31 a double, a float and a 64-bit integer all tell whole numbers apart.
    small = f"{number} = trunc({number}) AND abs({number}) < 2147483648"
    return f"coalesce(bool_and(isnan({number}) OR ({small})), true)"


def nonzero(records: int, source: str) -> int:
    """The number of records, which must not be zero."""
    if not records:
        raise UnreadableData(f"{source} has no records.")
    return records
