"""Tables of databases: DuckDB in place, PostgreSQL and SQLite through ADBC, always read-only."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from keyhole.errors import UnreadableData
from keyhole.io.coded import CodedColumn, Coder
from keyhole.io.engine import Engine, identifier, quoted
from keyhole.io.extras import need
from keyhole.io.loaded import LoadedColumns
from keyhole.io.typed import TypedTable, nonzero, open_typed

SERVERS = {
    "postgresql": ("adbc_driver_postgresql.dbapi", "postgres"),
    "postgres": ("adbc_driver_postgresql.dbapi", "postgres"),
    "sqlite": ("adbc_driver_sqlite.dbapi", "sqlite"),
}
"""For each scheme of a URL: the driver and the extra that brings it."""


def shown(url: str, table: str) -> str:
    """The name of a table in messages: where it is, without user, password and options."""
    parts = urlsplit(url)
    return f"table {table!r} of {parts.scheme}://{parts.hostname or ''}{parts.path}"


def local_path(url: str) -> Path:
    """The file of a ``sqlite:///`` or ``duckdb:///`` URL: a fourth slash begins an absolute path."""
    return Path(unquote(urlsplit(url).path.removeprefix("/")))


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
    scheme = urlsplit(url).scheme
    module, extra = SERVERS[scheme]
    driver = need(module, extra)
    need("pyarrow", extra)
    address = url if scheme != "sqlite" else f"file:{local_path(url)}?mode=ro"
    name = qualified(table)

    @contextmanager
    def cursor() -> Iterator[Any]:
        try:
            with driver.connect(address) as connection, connection.cursor() as cursor:
                yield cursor
        except (driver.Error, OSError):
            # The driver's words may hold the password or a record.
            raise UnreadableData(
                f"{source} could not be read: check the address, the rights of the user and the table name."
            ) from None

    with cursor() as first:
        first.execute(f"SELECT * FROM {name} LIMIT 0")
        columns = tuple(first.fetch_arrow_table().column_names)
        first.execute(f"SELECT count(*) FROM {name}")
        records = int(first.fetchone()[0])

    def load(names: Sequence[str]) -> Mapping[str, CodedColumn]:
        coders = {column: Coder() for column in names}
        with cursor() as rows:
            rows.execute(f"SELECT {', '.join(identifier(column) for column in names)} FROM {name}")
            for batch in rows.fetch_record_batch():
                for column, coder in coders.items():
                    _add(coder, batch.column(column))
        return {column: coder.finish() for column, coder in coders.items()}

    return LoadedColumns(source, columns, nonzero(records, source), load)


def qualified(table: str) -> str:
    """A table name, or a schema and a table name with a dot between them, as SQL."""
    return ".".join(identifier(part) for part in table.split("."))


def _add(coder: Coder, values: Any) -> None:
    encoded = values.dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    coder.add_coded(indices, encoded.dictionary.to_pylist())
