"""Tables of databases: DuckDB in place, PostgreSQL and SQLite through ADBC, always read-only."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np

from keyhole.errors import UnreadableData
from keyhole.io.address import local_path, scheme_of, shown_address
from keyhole.io.coded import CodedColumn, Coder, shortest
from keyhole.io.engine import Engine, identifier, quoted
from keyhole.io.extras import need
from keyhole.io.loaded import LoadedColumns
from keyhole.io.own_words import in_own_words
from keyhole.io.typed import TypedTable, nonzero, open_typed

Answer = TypeVar("Answer")

SERVERS = {
    "postgresql": ("adbc_driver_postgresql.dbapi", "postgres"),
    "postgres": ("adbc_driver_postgresql.dbapi", "postgres"),
    "sqlite": ("adbc_driver_sqlite.dbapi", "sqlite"),
}
"""For each scheme of a URL: the driver and the extra that brings it."""


def shown(url: str, table: str) -> str:
    """The name of a table in messages: where it is, without user, password and options."""
    return f"table {table!r} of {shown_address(url)}"


def open_duckdb(path: Path, table: str, source: str, engine: Engine) -> TypedTable:
    """Open a table of a DuckDB file, read-only and in place."""
    try:
        engine.rows(f"ATTACH {quoted(str(path))} AS data (READ_ONLY)")
    except UnreadableData:
        raise UnreadableData(
            f"{source} could not be opened: it is not a DuckDB database, or another program is writing to it."
        ) from None
    relation = f"data.{qualified(table)}"
    try:
        described = engine.rows(f"DESCRIBE {relation}")
        ((records,),) = engine.rows(f"SELECT count(*) FROM {relation}")
    except UnreadableData:
        raise UnreadableData(f"{source} is not there. Check the name given with --table.") from None
    return open_typed(relation, described, records, engine)


def open_server(url: str, table: str, source: str) -> LoadedColumns:
    """Open a table of PostgreSQL or SQLite; the asked columns are fetched in one query."""
    scheme = scheme_of(url) or ""
    module, extra = SERVERS[scheme]
    driver = need(module, extra)
    need("pyarrow", extra)
    address = url if scheme != "sqlite" else f"file:{quote(str(local_path(url)))}?mode=ro"
    name = qualified(table)

    def ask(question: Callable[[Any], Answer]) -> Answer:
        def work() -> Answer:
            with driver.connect(address) as connection, connection.cursor() as cursor:
                return question(cursor)

        # The driver's words may hold the password or a record.
        told = f"{source} could not be read: check the address, the rights of the user and the table name."
        return in_own_words(
            work, lambda error: UnreadableData(told) if isinstance(error, driver.Error | OSError) else None
        )

    def describe(cursor: Any) -> tuple[tuple[str, ...], int]:
        cursor.execute(f"SELECT * FROM {name} LIMIT 0")
        columns = tuple(cursor.fetch_arrow_table().column_names)
        cursor.execute(f"SELECT count(*) FROM {name}")
        return columns, int(cursor.fetchone()[0])

    def load(names: Sequence[str]) -> Mapping[str, CodedColumn]:
        def fetch(cursor: Any) -> Mapping[str, CodedColumn]:
            coders = {column: Coder() for column in names}
            cursor.execute(f"SELECT {', '.join(identifier(column) for column in names)} FROM {name}")
            for batch in cursor.fetch_record_batch():
                for column, coder in coders.items():
                    _add(coder, batch.column(column))
            return {column: coder.finish() for column, coder in coders.items()}

        return ask(fetch)

    columns, records = ask(describe)
    return LoadedColumns(source, columns, nonzero(records, source), load)


def qualified(table: str) -> str:
    """A table name, or a schema and a table name with a dot between them, as SQL."""
    return ".".join(identifier(part) for part in table.split("."))


def _add(coder: Coder, values: Any) -> None:
    encoded = values.dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values = encoded.dictionary
    short = str(values.type) in ("float", "halffloat") and not values.null_count
    coder.add_coded(indices, shortest(values.to_numpy()) if short else values.to_pylist())
