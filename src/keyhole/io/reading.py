"""One entry to all data: a path, a database URL or a frame becomes opened microdata."""

from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from keyhole.errors import UnreadableData
from keyhole.io.engine import Engine
from keyhole.io.microdata import Microdata, Opened

DELIMITED = (".csv", ".tsv", ".tab", ".txt")
PARQUET = (".parquet", ".pq")
STATISTICAL = (".sav", ".zsav", ".dta", ".sas7bdat")
DUCKDB = (".duckdb", ".db", ".ddb")
SQLITE = b"SQLite format 3\0"
"""How every SQLite file begins, whatever its name ends with."""

SCHEMES = ("postgresql", "postgres", "sqlite", "duckdb")


def read(source: Any, *, table: str | None = None) -> Microdata:
    """Open microdata, without loading it.

    Parameters
    ----------
    source
        A path (CSV, TSV or other delimited text, also gzipped; Parquet; SPSS, Stata, SAS; DuckDB), a URL
        (``postgresql://``, ``sqlite:///``, ``duckdb:///``), or a pandas, Polars or Arrow frame.
    table
        The table of a database, if it is one; ``schema.table`` for one in a schema.

    Examples
    --------
    >>> import polars
    >>> data = read(polars.DataFrame({"SEX": ["f", "m", "m"], "AGE": [31, 31, 7]}))
    >>> data.columns, data.records
    (('SEX', 'AGE'), 3)
    """
    if isinstance(source, str) and urlsplit(source).scheme in SCHEMES and "://" in source:
        return _read_url(source, table)
    if isinstance(source, str | PathLike):
        return _read_file(Path(source), table)
    from keyhole.io.frames import SOURCE, open_frame

    return _sealed(SOURCE, Engine(SOURCE), open_frame(source))


def _read_file(path: Path, table: str | None) -> Microdata:
    _check_file(path)
    if _begins_with(path, SQLITE):
        return _read_url(f"sqlite:///{path.resolve()}", table)
    kind = (
        path.suffixes[-2].lower()
        if path.suffix.lower() == ".gz" and len(path.suffixes) > 1
        else path.suffix.lower()
    )
    if kind in DUCKDB:
        return _read_duckdb(path, table)
    if table is not None:
        raise UnreadableData(f"A table was named, but {path.name} is not a database; leave --table out.")
    engine = Engine(path.name, [path])
    return _sealed(path.name, engine, _open_file(path, kind, engine))


def _open_file(path: Path, kind: str, engine: Engine) -> Opened:
    if kind in PARQUET:
        from keyhole.io.parquet import open_parquet

        return open_parquet(path, path.name, engine)
    if kind in STATISTICAL:
        from keyhole.io.statistical import open_statistical

        return open_statistical(path, path.name)
    if kind in DELIMITED:
        from keyhole.io.delimited import open_delimited

        return open_delimited(path, path.name, engine)
    known = ", ".join((*DELIMITED, *PARQUET, *STATISTICAL, *DUCKDB))
    raise UnreadableData(f"{path.name} has an ending that Keyhole does not know. Known endings: {known}.")


def _read_url(url: str, table: str | None) -> Microdata:
    from keyhole.io.database import local_path, open_server, shown

    scheme = urlsplit(url).scheme
    if scheme in ("sqlite", "duckdb"):
        _check_file(local_path(url))
    if scheme == "duckdb":
        return _read_duckdb(local_path(url), table)
    name = _named(table, shown(url, ""))
    source = shown(url, name)
    return _sealed(source, Engine(source), open_server(url, name, source))


def _read_duckdb(path: Path, table: str | None) -> Microdata:
    from keyhole.io.database import open_duckdb

    source = f"table {_named(table, path.name)!r} of {path.name}"
    engine = Engine(source, [path])
    return _sealed(source, engine, open_duckdb(path, str(table), source, engine))


def _sealed(source: str, engine: Engine, opened: Opened) -> Microdata:
    engine.lock()
    return Microdata(source, opened, engine)


def _named(table: str | None, where: str) -> str:
    if not table:
        raise UnreadableData(f"{where.removeprefix('table ')} is a database: name the table with --table.")
    return table


def _begins_with(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _check_file(path: Path) -> None:
    """Say what is wrong with a file that cannot even be opened."""
    try:
        if path.is_dir():
            raise UnreadableData(f"{path.name} is a directory; a file was expected.")
        with path.open("rb") as file:
            empty = not file.read(1)
    except FileNotFoundError:
        raise UnreadableData(f"There is no file {str(path)!r}.") from None
    except (OSError, ValueError):
        raise UnreadableData(f"{path.name} cannot be opened: check its permissions.") from None
    if empty:
        raise UnreadableData(f"{path.name} is empty: a header line and at least one record were expected.")
