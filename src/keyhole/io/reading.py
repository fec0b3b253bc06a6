"""One entry to all data: a path, a database URL or a frame becomes opened microdata."""

import re
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

from keyhole.errors import UnreadableData
from keyhole.io.address import LOCAL, local_path, scheme_of
from keyhole.io.engine import Engine
from keyhole.io.microdata import Microdata, Opened
from keyhole.io.own_words import in_own_words

DELIMITED = (".csv", ".tsv", ".tab", ".txt")
PARQUET = (".parquet", ".pq")
STATISTICAL = (".sav", ".zsav", ".dta", ".sas7bdat")
DUCKDB = (".duckdb", ".db", ".ddb")
SQLITE = b"SQLite format 3\0"
"""How every SQLite file begins, whatever its name ends with."""

SCHEMES = ("postgresql", "postgres", "sqlite", "duckdb")

ADDRESS_LIKE = re.compile(r"^\w+:/|:[^/]*@|pass|pwd|secret|token", re.IGNORECASE)
"""A path that may be a mistyped database address is not repeated in messages."""


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
    if isinstance(source, str) and scheme_of(source) is not None:
        return _read_url(source, table)
    if isinstance(source, str | PathLike):
        return _read_file(Path(source), table)
    from keyhole.io.frames import SOURCE, open_frame

    return _sealed(SOURCE, Engine(SOURCE), open_frame(source))


def _read_file(path: Path, table: str | None) -> Microdata:
    _check_file(path)
    if _begins_with(path, SQLITE):
        return _read_url(f"sqlite:///{quote(str(path.resolve()))}", table)
    kind = (
        path.suffixes[-2].lower()
        if path.suffix.lower() == ".gz" and len(path.suffixes) > 1
        else path.suffix.lower()
    )
    if kind in DUCKDB and path.suffix.lower() != ".gz":
        return _read_duckdb(path, table)
    if table is not None:
        raise UnreadableData(f"A table was named, but {path.name} is not a database; leave --table out.")
    if path.suffix.lower() == ".gz" and kind not in DELIMITED:
        raise UnreadableData(f"{path.name} is compressed, which only delimited text may be: decompress it first.")
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
    from keyhole.io.database import open_server, shown

    scheme = scheme_of(url)
    if scheme not in SCHEMES:
        raise UnreadableData(
            f"Addresses that begin with {scheme}:// cannot be read. Known are: {', '.join(SCHEMES)}; "
            "for a file, give its path."
        )
    if scheme in LOCAL:
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
    plain = not ADDRESS_LIKE.search(str(path))
    name = (path.name or str(path)) if plain else "The file"

    def is_empty() -> bool:
        if path.is_dir():
            raise UnreadableData(f"{name} is a directory; a file was expected.")
        with path.open("rb") as file:
            return not file.read(1)

    def tell(error: Exception) -> UnreadableData | None:
        if isinstance(error, FileNotFoundError):
            return UnreadableData(f"There is no file {str(path)!r}." if plain else "There is no such file.")
        if isinstance(error, OSError | ValueError):
            return UnreadableData(f"{name} cannot be opened: check its permissions.")
        return None

    if in_own_words(is_empty, tell):
        raise UnreadableData(f"{name} is empty: a header line and at least one record were expected.")
