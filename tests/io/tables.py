"""A table in plain Python, to compare every reader with."""

from collections import Counter
from collections.abc import Sequence

from keyhole.io import Microdata
from keyhole.keys import code_keys
from keyhole.table.tabulate import cells_of_records, tabulate

NAMES = ("SEX", "AGE", "TOWN")
ROWS: tuple[tuple[str | None, ...], ...] = (
    ("f", "31", "Zürich"),
    ("m", "7", "Aarau"),
    ("f", "31", "Zürich"),
    (None, "100", "Aarau"),
    ("m", None, None),
    ("m", "7", "Bern, west"),
)
"""Records with repeated and missing values, a number of two lengths, an accent and a delimiter."""


def labelled_cells(data: Microdata, names: Sequence[str] = NAMES) -> Counter[tuple[str | None, ...]]:
    """The table of the named columns as labels; None where a value is missing."""
    table = tabulate(data, code_keys(data, names))
    return Counter(dict(zip(_labels(table), table.counts.tolist(), strict=True)))


def labelled_records(data: Microdata, names: Sequence[str] = NAMES) -> list[tuple[str | None, ...]]:
    """The labels of every record, in the order of the data, by way of its cell."""
    codings = code_keys(data, names)
    table = tabulate(data, codings)
    labels = _labels(table)
    return [labels[cell] for cell in cells_of_records(data, codings, table)]


def _labels(table):  # type: ignore[no-untyped-def]
    return [
        tuple(
            None if (label := key.levels[code]) == "(missing)" else label
            for key, code in zip(table.keys, row, strict=True)
        )
        for row in table.cells.tolist()
    ]
