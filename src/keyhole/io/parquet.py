"""Parquet files, read in place: only the row groups and columns that a question needs."""

from pathlib import Path

from keyhole.errors import UnreadableData
from keyhole.io.engine import Engine, literal_path, quoted
from keyhole.io.typed import TypedTable, open_typed


def open_parquet(path: Path, source: str, engine: Engine) -> TypedTable:
    """Open a Parquet file by its metadata."""
    file = quoted(literal_path(path))
    relation = f"read_parquet({file}, binary_as_string=true, hive_partitioning=false)"
    try:
        described = engine.rows(f"DESCRIBE SELECT * FROM {relation}")
        ((records,),) = engine.rows(f"SELECT count(*) FROM {relation}")
    except UnreadableData:
        raise UnreadableData(f"{source} is not a Parquet file, or is damaged.") from None
    return open_typed(relation, described, records, engine)
