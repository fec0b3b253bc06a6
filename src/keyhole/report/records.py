"""The risk of every record, one row each in the order of the input, as CSV or Parquet."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keyhole.arrays import IntVector, Vector
from keyhole.errors import InputError
from keyhole.report.writing import private_file
from keyhole.risk.estimate import RecordRisk, RiskAssessment

FORMATS = {".csv": "FORMAT csv, HEADER true", ".parquet": "FORMAT parquet, COMPRESSION zstd"}

CHUNK = 500_000
"""Records looked up at a time: about 25 MB, however long the file."""

MEMORY = "400MB"
"""What DuckDB may hold; the rest waits on disk."""

ByCell = dict[str, Vector | IntVector]
"""Columns with one entry per cell."""

_COLUMNS = """
    "row" BIGINT, cell_count BIGINT, sample_unique BOOLEAN,
    r1 DOUBLE, r1_low DOUBLE, r1_high DOUBLE, r2 DOUBLE, model VARCHAR
"""

_INSERT = """
    INSERT INTO risk SELECT "row", nullif(cell_count, 0), CASE WHEN cell_count > 0 THEN cell_count = 1 END,
        CASE WHEN NOT isnan(r1) THEN r1 END, CASE WHEN NOT isnan(r1_low) THEN r1_low END,
        CASE WHEN NOT isnan(r1_high) THEN r1_high END, CASE WHEN NOT isnan(r2) THEN r2 END,
        CASE WHEN cell_count > 0 THEN ? END
    FROM chunk
"""


def write_records(path: str | os.PathLike[str], assessment: RiskAssessment, cells_of_records: IntVector) -> None:
    """Write row, cell_count, sample_unique, r1, r1_low, r1_high, r2 and model of each record.

    The r columns are null for records that are not sample-unique, except r2 where the assessment holds
    E(1/F | f) of every cell. A failed fit leaves them all null.

    Parameters
    ----------
    path
        Ends in ``.csv`` or ``.parquet``; written atomically, readable by its owner only.
    cells_of_records
        The position of each record's cell in ``table.cells``, in the order of the input; -1 for a record
        that was left out for a missing key, of which only ``row`` is told.
    """
    write_by_cell(path, _COLUMNS, _INSERT, (assessment.model,), _by_cell(assessment), cells_of_records)


def write_by_cell(
    path: str | os.PathLike[str],
    declared: str,
    insert: str,
    parameters: Sequence[str],
    by_cell: ByCell,
    cells_of_records: IntVector,
) -> None:
    """Write one row a record, from what its cell says of it.

    Parameters
    ----------
    declared, insert, parameters
        The columns of the file, and the SQL that makes them from ``chunk``, whose columns are those of ``by_cell``
        and ``row``.
    by_cell
        Columns with one entry per cell and one more, at the end, for records without a cell.
    cells_of_records
        The cell of each record, in the order of the input; -1 for none.
    """
    import duckdb

    how = FORMATS.get(Path(path).suffix.lower())
    if how is None:
        raise InputError(f"Cannot tell the format of {Path(path).name!r}: end its name in .csv or .parquet.")
    try:
        _write(path, how, declared, insert, parameters, by_cell, cells_of_records)
    except duckdb.Error:
        problem = InputError(f"Cannot write {str(path)!r}: the disk may be full.")
    else:
        return
    raise problem


def _write(
    path: str | os.PathLike[str],
    how: str,
    declared: str,
    insert: str,
    parameters: Sequence[str],
    by_cell: ByCell,
    cells_of_records: IntVector,
) -> None:
    import duckdb

    # The rows wait in a database file rather than in memory; its folder is readable by its owner only.
    with (
        private_file(path) as temporary,
        tempfile.TemporaryDirectory(dir=temporary.parent, prefix=".keyhole-") as folder,
        duckdb.connect(os.path.join(folder, "records.duckdb"), config={"memory_limit": MEMORY}) as connection,
    ):
        connection.execute(f"CREATE TABLE risk ({declared})")
        for start in range(0, len(cells_of_records), CHUNK):
            chunk = _look_up(by_cell, cells_of_records[start : start + CHUNK], start)
            connection.register("chunk", chunk)
            connection.execute(insert, list(parameters))
            connection.unregister("chunk")
        # Into the very file made for it: a file of DuckDB's own making would not be private.
        target = str(temporary).replace("'", "''")
        connection.execute(f"COPY (FROM risk) TO '{target}' ({how}, USE_TMP_FILE false)")


def _by_cell(assessment: RiskAssessment) -> ByCell:
    """What each occupied cell says of its records, with one line more at the end for records without a cell."""
    table = assessment.sample.table
    found = assessment.records
    columns: dict[str, Vector | IntVector] = {"cell_count": np.append(table.counts, 0)}
    for name in ("r1", "r1_low", "r1_high", "r2"):
        column = np.full(table.occupied + 1, np.nan)
        values = None if found is None else getattr(found, name)
        if values is not None:
            column[table.uniques] = values
        columns[name] = column
    if isinstance(found, RecordRisk) and found.r2_every_cell is not None:
        columns["r2"] = np.append(found.r2_every_cell, np.nan)
    return columns


def _look_up(by_cell: ByCell, places: IntVector, start: int) -> ByCell:
    # Position -1 reads the line at the end.
    rows: dict[str, Vector | IntVector] = {"row": np.arange(start + 1, start + 1 + len(places), dtype=np.int64)}
    return rows | {name: column[places] for name, column in by_cell.items()}
