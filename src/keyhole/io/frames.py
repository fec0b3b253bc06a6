"""Data frames that are already in memory: pandas, Polars and Arrow, through narwhals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keyhole.errors import InvalidKeys, UnreadableData
from keyhole.io.coded import CodedColumn, Coder
from keyhole.io.loaded import LoadedColumns
from keyhole.io.own_words import in_own_words
from keyhole.io.typed import nonzero

SOURCE = "the data frame"


def open_frame(frame: Any) -> LoadedColumns:
    """Open a pandas, Polars or Arrow frame; of a lazy one, only the asked columns are ever collected."""
    import narwhals as nw

    data = in_own_words(lambda: nw.from_native(frame), lambda error: _refused(frame, error))
    if isinstance(data, nw.LazyFrame):
        columns = tuple(data.collect_schema().names())
        records = int(data.select(nw.len()).collect().item())
    else:
        columns, records = tuple(in_own_words(lambda: data.columns, lambda e: _refused(frame, e))), len(data)
    if not all(isinstance(name, str) for name in columns):
        raise UnreadableData("The data frame has columns whose names are not text: rename them.")

    def load(names: Sequence[str]) -> Mapping[str, CodedColumn]:
        chosen = data.select(*names)
        eager = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
        return {name: _coded(eager[name]) for name in names}

    return LoadedColumns(SOURCE, columns, nonzero(records, SOURCE), load)


def _refused(frame: Any, error: Exception) -> UnreadableData | None:
    from narwhals.exceptions import DuplicateError

    if isinstance(error, DuplicateError):
        return UnreadableData("The data frame has column names that occur more than once: rename them.")
    if isinstance(error, TypeError):
        return UnreadableData(
            f"Data of type {type(frame).__name__!r} cannot be read: give a path, a database URL, "
            "or a pandas, Polars or Arrow frame."
        )
    return None


def _coded(series: Any) -> CodedColumn:
    import narwhals as nw

    nested = InvalidKeys(f"Column {series.name!r} of {SOURCE} holds lists, which cannot be levels of a key.")
    if isinstance(series.dtype, nw.List | nw.Array | nw.Struct):
        raise nested
    # Lists inside a column of objects, and maps, show only when their values are compared.
    return in_own_words(lambda: _coded_values(series), lambda e: nested if isinstance(e, TypeError) else None)


def _coded_values(series: Any) -> CodedColumn:
    import narwhals as nw

    present = ~series.is_null().to_numpy().astype(bool)
    values = series.drop_nulls()
    kind = values.to_numpy()
    coder = Coder()
    coder.add(kind if kind.dtype.kind in "iufb" else values.to_list())
    known = coder.finish()
    codes = np.full(len(series), -1, dtype=np.int32)
    codes[present] = known.codes
    column = replace(known, codes=codes)
    if isinstance(series.dtype, nw.Enum):
        return _in_order(column, [str(category) for category in series.dtype.categories])
    return column


def _in_order(column: CodedColumn, categories: Sequence[str]) -> CodedColumn:
    """The labels in the order of the categories of an ordered column."""
    present = set(column.labels)
    labels = [category for category in categories if category in present]
    if set(labels) != present:
        return column
    code = {label: place for place, label in enumerate(labels)}
    place = np.array([*(code[label] for label in column.labels), -1], dtype=np.int32)
    return CodedColumn(place[column.codes], tuple(labels), ordered=True)
