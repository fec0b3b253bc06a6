"""Coded records written as a file of the same format as the input."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import Codes
from keyhole.errors import InputError, InvalidKeys, MissingExtra, UnreadableData
from keyhole.io.address import scheme_of
from keyhole.io.coded import label_of
from keyhole.io.engine import Engine, identifier, quoted
from keyhole.io.extras import need
from keyhole.io.own_words import in_own_words
from keyhole.io.reading import DUCKDB
from keyhole.io.stored import Value

WRITTEN = {
    ".csv": ".csv",
    ".txt": ".csv",
    ".tsv": ".tsv",
    ".tab": ".tsv",
    ".parquet": ".parquet",
    ".pq": ".parquet",
    ".sav": ".sav",
    ".zsav": ".sav",
    ".dta": ".dta",
}
"""For each ending of an input that can be written back: the ending of the file that is written."""

DELIMITER = {".csv": ",", ".tsv": "\t"}
STATISTICAL = {".sav": ("spss", "write_sav", "SPSS"), ".dta": ("stata", "write_dta", "Stata")}
"""For each ending: the extra that writes it, the function of pyreadstat, and the program it belongs to."""

QUOTED = frozenset(',;\t|"\r\n')
"""A field with one of these stands in quotes: no reader shall take one delimiter for another."""

CHUNK = 100_000
"""Records that are made into text at a time."""

LARGEST_LONG = 2_147_483_620
"""The largest whole number of 32 bits in Stata; those above it mean missing."""


def format_like(data: str) -> str:
    """The ending of a file like this input: ``.csv`` for what Keyhole reads and does not write.

    Examples
    --------
    >>> format_like("survey.TAB.gz"), format_like("survey.zsav"), format_like("postgresql://db/census")
    ('.tsv', '.sav', '.csv')
    """
    return WRITTEN.get(_ending(data), ".csv")


def cannot_write(data: str) -> str | None:
    """One sentence that says why a file like this input cannot be written; None if it can.

    Examples
    --------
    >>> cannot_write("survey.sas7bdat")
    'Keyhole does not write SAS files: the records are written as CSV.'
    """
    ending = _ending(data)
    if ending in WRITTEN:
        return None
    if ending == ".sas7bdat":
        return "Keyhole does not write SAS files: the records are written as CSV."
    if scheme_of(data) is not None or ending in DUCKDB:
        return "Keyhole does not write into databases: the records are written as CSV."
    return "Keyhole does not write data of this kind: the records are written as CSV."


def write_codes(
    path: Path,
    names: Sequence[str],
    codes: Codes,
    values: Sequence[Sequence[Value | None]],
    labels: Mapping[str, Mapping[Value, str]] | None = None,
    *,
    suffix: str | None = None,
) -> None:
    """Write one row a record, in the order of the records.

    The type of a column is that of all its values, whether they occur or not. A file that is already there keeps
    its permissions.

    Parameters
    ----------
    names
        The names of the columns.
    codes
        One row a record, one column for each name.
    values
        For each column the value of each code; None and the empty text are missing.
    labels
        Value labels of some columns; for SPSS and Stata only.
    suffix
        The ending that tells the format, from `format_like`, if it is not that of ``path``.

    Raises
    ------
    InvalidKeys
        Codes that have no name or no value.
    InputError
        A format that is not written, or records that do not fit into it.
    """
    _check(names, codes, values)
    ending = (path.suffix if suffix is None else suffix).lower()
    if ending in DELIMITER:
        _write_delimited(path, DELIMITER[ending], names, codes, values)
    elif ending == ".parquet":
        _write_parquet(path, names, codes, values)
    elif ending in STATISTICAL:
        _write_statistical(path, ending, names, codes, values, labels or {})
    else:
        known = ", ".join(dict.fromkeys(WRITTEN.values()))
        raise InputError(f"Records cannot be written as {ending!r}. Known endings: {known}.")


def _ending(data: str) -> str:
    if scheme_of(data) is not None:
        return ""
    path = Path(data)
    inner = Path(path.stem).suffix.lower()
    # Only delimited text may be compressed.
    return inner if path.suffix.lower() == ".gz" and WRITTEN.get(inner) in DELIMITER else path.suffix.lower()


def _check(names: Sequence[str], codes: Codes, values: Sequence[Sequence[Value | None]]) -> None:
    if not names or codes.ndim != 2 or not codes.shape[1] == len(names) == len(values):
        raise InvalidKeys(
            f"{len(names)} names, codes of shape {codes.shape} and {len(values)} lists of values do not fit: "
            "expected at least one name, and for each one column of codes and one list of values."
        )
    for place, (name, column) in enumerate(zip(names, values, strict=True)):
        if len(codes) and not (codes[:, place].min() >= 0 and codes[:, place].max() < len(column)):
            raise InvalidKeys(f"Column {name!r} has codes that are not among its {len(column)} values.")


def _write_delimited(
    path: Path, delimiter: str, names: Sequence[str], codes: Codes, values: Sequence[Sequence[Value | None]]
) -> None:
    # A blank line would be no record to many readers.
    missing = '""' if len(names) == 1 else ""
    fields = [_objects([_field(_text(value)) or missing for value in column]) for column in values]
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.write(delimiter.join(map(_field, names)) + "\n")
        for start in range(0, len(codes), CHUNK):
            chunk = codes[start : start + CHUNK]
            columns = [field[chunk[:, place]].tolist() for place, field in enumerate(fields)]
            file.write("\n".join(map(delimiter.join, zip(*columns, strict=True))) + "\n")


def _field(text: str) -> str:
    return text if QUOTED.isdisjoint(text) else '"' + text.replace('"', '""') + '"'


def _write_parquet(
    path: Path, names: Sequence[str], codes: Codes, values: Sequence[Sequence[Value | None]]
) -> None:
    engine = Engine(path.name, [path])
    try:
        engine.lock()
        records = engine.register(
            {f"c{place}": np.ascontiguousarray(codes[:, place]) for place in range(len(names))}
        )
        columns = ", ".join(
            f"list_extract({_list(engine, column)}, c{place} + 1) AS {identifier(name)}"
            for place, (name, column) in enumerate(zip(names, values, strict=True))
        )
        # Into the very file that is there: a file of DuckDB's own making would not be private.
        engine.rows(
            f"COPY (SELECT {columns} FROM {records}) TO {quoted(str(path))} "
            "(FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"
        )
    except UnreadableData:
        raise InputError("The Parquet file cannot be written: the disk may be full.") from None
    finally:
        engine.close()


def _list(engine: Engine, values: Sequence[Value | None]) -> str:
    """SQL for the list of the values. Long lists take too long to be read as SQL, so it is made of a table."""
    texts = _objects([None if value is None else _text(value) for value in values])
    table = engine.register({"place": np.arange(len(values)), "value": texts})
    return f"(SELECT list(CAST(value AS {_sql_type(values)}) ORDER BY place) FROM {table})"


def _sql_type(values: Sequence[Value | None]) -> str:
    """The SQL type of a column that holds these values, none of them changed."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "BOOLEAN"
    if not kinds or not kinds <= {int, float}:
        return "VARCHAR"
    whole = [value for value in values if isinstance(value, int)]
    if float in kinds:
        return "DOUBLE" if all(abs(value) <= 1 << 53 for value in whole) else "VARCHAR"
    if -(1 << 63) <= min(whole) <= max(whole) < 1 << 63:
        return "BIGINT"
    return "UBIGINT" if 0 <= min(whole) <= max(whole) < 1 << 64 else "VARCHAR"


def _write_statistical(
    path: Path,
    ending: str,
    names: Sequence[str],
    codes: Codes,
    values: Sequence[Sequence[Value | None]],
    labels: Mapping[str, Mapping[Value, str]],
) -> None:
    extra, function, program = STATISTICAL[ending]
    writer = getattr(need("pyreadstat", extra), function)
    types = {name: _sql_type(column) for name, column in zip(names, values, strict=True)}
    options: dict[str, Any] = {"variable_value_labels": _kept_labels(ending, types, labels)}
    if ending == ".sav":
        options["variable_format"] = {name: "F8.0" for name in names if types[name] in ("BIGINT", "BOOLEAN")}
    columns = {
        name: _stored(types[name], column, labels.get(name, {}))[codes[:, place]]
        for place, (name, column) in enumerate(zip(names, values, strict=True))
    }
    frame = _frame(columns, program)
    refused = InputError(
        f"The records cannot be written as a file of {program}: it does not take these names of columns, a text "
        "or a label is too long for it, or the disk is full."
    )
    # pyreadstat raises bare exceptions, and its words may quote the data.
    in_own_words(lambda: writer(frame, str(path), **options), lambda _: refused)


def _kept_labels(
    ending: str, types: Mapping[str, str], labels: Mapping[str, Mapping[Value, str]]
) -> dict[str, dict[Value, str]]:
    """The value labels that fit the types of their columns; Stata has labels for numbers only."""
    kept: dict[str, dict[Value, str]] = {}
    for name, kind in types.items():
        text = kind == "VARCHAR"
        fitting = {v: label for v, label in labels.get(name, {}).items() if isinstance(v, str) is text}
        if fitting and not (text and ending == ".dta"):
            kept[name] = fitting
    return kept


def _stored(kind: str, values: Sequence[Value | None], labels: Mapping[Value, str]) -> NDArray[Any]:
    """The values as SPSS and Stata hold them: texts, doubles, or whole numbers of 32 bits where all are such."""
    if kind == "VARCHAR":  # there is no missing text but the empty one
        return _objects([_text(value) for value in values])
    if all(isinstance(value, int) and abs(value) <= LARGEST_LONG for value in (*values, *labels)):
        return np.array(values, dtype=np.int32)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _frame(columns: Mapping[str, NDArray[Any]], program: str) -> Any:
    """A frame that pyreadstat takes: of Polars, which is faster here, or of pandas."""
    try:
        library = import_module("polars")
    except ImportError:
        pass
    else:
        series = [
            library.Series(name, column.tolist(), dtype=library.String)
            if column.dtype == object
            else library.Series(name, column).fill_nan(None)
            for name, column in columns.items()
        ]
        return library.DataFrame(series)
    try:
        library = import_module("pandas")
    except ImportError:
        raise MissingExtra(
            f"Writing a file of {program} needs the package 'polars' or 'pandas', and neither is installed: "
            "pip install polars"
        ) from None
    # Objects tell pyreadstat nothing if there are no records.
    return library.DataFrame(
        {n: library.Series(c, dtype="string" if c.dtype == object else c.dtype) for n, c in columns.items()}
    )


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _text(value: Value | None) -> str:
    return "" if value is None else label_of(value)
