"""From records to cells: keys packed into one integer, counted by DuckDB, at most a few words a cell in memory."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import IntVector
from keyhole.errors import InvalidKeys, InvalidPopulation, UnknownKeyVariable, UnreadableData
from keyhole.io.engine import quoted
from keyhole.io.microdata import Column, Microdata, Selection
from keyhole.keys.coding import DROPPED, KeyCoding
from keyhole.keys.columns import suggestion
from keyhole.table.contingency import ContingencyTable
from keyhole.table.packing import Packing

SPAN = 1 << 16
"""Whole numbers of a range up to this are found by their place in a list."""

FEW = 256
"""Up to so many values are looked up in a map."""

BLOCK = 1 << 22
"""How many records are looked up at once."""


def tabulate(
    microdata: Microdata, codings: Sequence[KeyCoding], *, weights: str | None = None
) -> ContingencyTable:
    """Count the records, and add up their weights, in each occupied cell.

    Parameters
    ----------
    weights
        The column of survey weights, if the sample is weighted.

    Examples
    --------
    >>> import polars
    >>> from keyhole.io import read
    >>> from keyhole.keys.coding import code_keys
    >>> data = read(polars.DataFrame({"SEX": ["f", "m", "m"], "AGE": [31, 7, 7]}))
    >>> table = tabulate(data, code_keys(data, ["SEX", "AGE"]))
    >>> table.cells.tolist(), table.counts.tolist()
    ([[0, 1], [1, 0]], [1, 2])
    """
    selection = _select(microdata, codings, weights)
    if weights is not None:
        _check_weights(microdata, selection, weights)
    packing = Packing(tuple(len(coding.variable) for coding in codings))
    words = _words(selection, codings, packing)
    names = ", ".join(f"w{w}" for w in range(len(words)))
    # Kahan summation: the sum must not depend, in the digits we show, on how the work was split.
    number = None if weights is None else selection.columns[weights].number
    heavy = "" if number is None else f", fsum({number}) AS heavy, fsum({number} * {number}) AS squares"
    packed = ", ".join(f"{word} AS w{w}" for w, word in enumerate(words))
    columns = microdata.engine.arrays(
        f"SELECT {names}, counts{'' if weights is None else ', heavy, squares'} FROM "
        f"(SELECT {packed}, count(*) AS counts{heavy} FROM {selection.relation} GROUP BY {names}) "
        f"WHERE {' AND '.join(f'w{w} IS NOT NULL' for w in range(len(words)))} ORDER BY {names}"
    )
    cells = packing.unpack(np.column_stack(columns[: len(words)]))
    counts = columns[len(words)].astype(np.int64, copy=False)
    _check_total(microdata, codings, int(counts.sum()))
    keys = tuple(coding.variable for coding in codings)
    totals = [column.astype(np.float64) for column in columns[len(words) + 1 :]]
    return ContingencyTable(keys, cells, counts, *totals)


def cells_of_records(microdata: Microdata, codings: Sequence[KeyCoding], table: ContingencyTable) -> IntVector:
    """The position in ``table.cells`` of each record's cell, in the order of the data; -1 for records left out."""
    selection = _select(microdata, codings, None)
    words = _words(selection, codings, table.packing)
    shown = ", ".join(f"coalesce({word}, {DROPPED}) AS w{w}" for w, word in enumerate(words))
    packed = microdata.engine.arrays(f"SELECT {shown} FROM {selection.relation}")
    known = list(table.packing.pack(table.cells).T)
    found = packed[0] if len(packed) == 1 else np.empty(len(packed[0]), dtype=np.int64)
    # Block by block, in place of the packed cells: never much more than 8 bytes a record.
    for start in range(0, len(found), BLOCK):
        block = slice(start, start + BLOCK)
        found[block] = _locate(known, [word[block] for word in packed])
    return found


def _locate(known: Sequence[IntVector], wanted: Sequence[IntVector]) -> IntVector:
    """The place of each wanted cell among the known ones, which are in order; -1 for one that is not there."""
    if len(known) == 1:
        place = np.searchsorted(known[0], wanted[0])
    else:
        place = np.searchsorted(_as_bytes(known), _as_bytes(wanted))
    place[place == len(known[0])] = 0
    for there, asked in zip(known, wanted, strict=True):
        place[there[place] != asked] = DROPPED
    return place


def _as_bytes(words: Sequence[IntVector]) -> NDArray[np.bytes_]:
    """Rows of words as texts of bytes, most significant first: they sort like the rows, by one fast comparison."""
    rows = np.column_stack(words).astype(">i8")
    return rows.view(f"S{rows.itemsize * len(words)}")[:, 0]


def packed_sql(column: Column, coding: KeyCoding, stride: int) -> str:
    """SQL for what a record's value adds to its packed cell: its code times ``stride``, NULL if it is left out."""
    codes = {value: code * stride for value, code in coding.codes.items() if code != DROPPED}
    missing = codes.pop(None, None)
    lookup = _lookup(column, {value: code for value, code in codes.items() if value is not None})
    return lookup if missing is None else f"CASE WHEN {column.sql} IS NULL THEN {missing} ELSE {lookup} END"


def _lookup(column: Column, codes: dict[int | str, int]) -> str:
    """SQL for the number that a value stands for.

    A map is looked up once for each entry of the dictionary of a dictionary-encoded column, which nearly every
    column of a Parquet file is, but searches all its keys; many values are found by their place in a list, or by
    the hash table of an ENUM.
    """
    numbers = "[" + ", ".join(map(str, codes.values())) + "]::BIGINT[]"
    text = column.type == "VARCHAR"
    keys = ", ".join(quoted(str(value)) if text else str(value) for value in codes)
    if not codes:
        return "NULL::BIGINT"
    if len(codes) <= FEW:
        return f"map([{keys}]::{column.type}[], {numbers})[{column.sql}]"
    if text:
        return f"list_extract({numbers}, enum_code(TRY_CAST({column.sql} AS ENUM({keys})))::BIGINT + 1)"
    whole = {int(value): number for value, number in codes.items()}
    low, high = min(whole), max(whole)
    if high - low < SPAN:
        spread = ", ".join(str(whole.get(value, "NULL")) for value in range(low, high + 1))
        return f"list_extract([{spread}]::BIGINT[], CAST({column.sql} AS BIGINT) - ({low}) + 1)"
    return _lookup(Column(f"CAST({column.sql} AS VARCHAR)", "VARCHAR", ""), codes)


def _words(selection: Selection, codings: Sequence[KeyCoding], packing: Packing) -> list[str]:
    """SQL for each word of a record's packed cell."""
    return [
        " + ".join(
            packed_sql(selection.columns[codings[key].variable.name], codings[key], stride)
            for key, stride in zip(word, packing.strides(word), strict=True)
        )
        for word in packing.words
    ]


def _select(microdata: Microdata, codings: Sequence[KeyCoding], weights: str | None) -> Selection:
    if weights is not None and weights not in microdata.columns:
        near = suggestion(weights, microdata.columns)
        raise UnknownKeyVariable(f"The weights {weights!r} are not a column of {microdata.source}. {near}")
    return microdata.select([coding.variable.name for coding in codings], weights)


def _check_weights(microdata: Microdata, selection: Selection, weights: str) -> None:
    number = selection.columns[weights].number
    ((missing, strange, low),) = microdata.engine.rows(
        f"SELECT count(*) FILTER (w IS NULL OR isnan(w)), count(*) FILTER (isinf(w)), count(*) FILTER (w <= 0) "
        f"FROM (SELECT {number} AS w FROM {selection.relation})"
    )
    wrong = [
        f"{count:,} are {what}"
        for count, what in ((missing, "missing"), (strange, "not finite numbers"), (low, "zero or negative"))
        if count
    ]
    if wrong:
        raise InvalidPopulation(
            f"Weights {weights!r} of {microdata.source} must be positive numbers, but of {microdata.records:,} "
            f"weights {', '.join(wrong)}."
        )


def _check_total(microdata: Microdata, codings: Sequence[KeyCoding], counted: int) -> None:
    if not counted:
        raise InvalidKeys(
            f"No records are left: all {microdata.records:,} records of {microdata.source} miss at least "
            f"one of the {len(codings)} keys. Keep missing values as a level, or leave keys out."
        )
    if counted != microdata.records and not any(coding.drops for coding in codings):
        raise UnreadableData(
            f"{microdata.source} changed while it was read: {counted:,} records instead of {microdata.records:,}."
        )
