"""Data frames that are already in memory: pandas, Polars and Arrow, through narwhals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from keyhole.errors import UnreadableData
from keyhole.io.coded import CodedColumn, Coder
from keyhole.io.loaded import LoadedColumns
from keyhole.io.typed import nonzero

SOURCE = "the data frame"


def open_frame(frame: Any) -> LoadedColumns:
    """Open a pandas, Polars or Arrow frame; of a lazy one, only the asked columns are ever collected."""
    import narwhals as nw

    try:
        data = nw.from_native(frame)
    except TypeError:
        raise UnreadableData(
            f"Data of type {type(frame).__name__!r} cannot be read: give a path, a database URL, "
            "or a pandas, Polars or Arrow frame."
        ) from None
    if isinstance(data, nw.LazyFrame):
        columns = tuple(data.collect_schema().names())
        records = int(data.select(nw.len()).collect().item())
    else:
        columns, records = tuple(data.columns), len(data)
    if not all(isinstance(name, str) for name in columns):
        raise UnreadableData("The data frame has columns whose names are not text: rename them.")

    def load(names: Sequence[str]) -> Mapping[str, CodedColumn]:
        chosen = data.select(*names)
        eager = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
        return {name: _coded(eager[name]) for name in names}

    return LoadedColumns(SOURCE, columns, nonzero(records, SOURCE), load)


def _coded(series: Any) -> CodedColumn:
    import narwhals as nw

    if isinstance(series.dtype, nw.List | nw.Array | nw.Struct):
        raise UnreadableData(f"Column {series.name!r} of {SOURCE} holds lists, which cannot be levels of a key.")
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
    labels = [category for category in categories if category in set(column.labels)]
    if set(labels) != set(column.labels):
        return column
    place = np.array([*(labels.index(label) for label in column.labels), -1], dtype=np.int32)
    return CodedColumn(place[column.codes], tuple(labels), ordered=True)
