"""SPSS, Stata and SAS files, with their value labels and missing values."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keyhole.errors import UnreadableData
from keyhole.io.coded import CodedColumn, Coder
from keyhole.io.extras import need
from keyhole.io.loaded import LoadedColumns
from keyhole.io.own_words import in_own_words
from keyhole.io.typed import nonzero

PACKAGES = {
    ".sav": ("spss", "read_sav", "SPSS"),
    ".zsav": ("spss", "read_sav", "SPSS"),
    ".dta": ("stata", "read_dta", "Stata"),
    ".sas7bdat": ("sas", "read_sas7bdat", "SAS"),
}
"""For each ending: the extra that reads it, the function of pyreadstat, and the program it belongs to."""

AT_ONCE = 16_000_000
"""How many values are read at once: pyreadstat gives each as a Python object of some 32 bytes."""


def open_statistical(path: Path, source: str) -> LoadedColumns:
    """Open a file of a statistical package by its metadata; value labels are the labels of its levels."""
    extra, function, program = PACKAGES[path.suffix.lower()]
    reader: Callable[..., tuple[Mapping[str, Sequence[Any]], Any]] = getattr(need("pyreadstat", extra), function)
    options: dict[str, Any] = {"output_format": "dict"}
    catalog = path.with_suffix(".sas7bcat")
    if extra == "sas" and catalog.exists():
        options["catalog_file"] = str(catalog)

    def fetch(**more: Any) -> tuple[Mapping[str, Sequence[Any]], Any]:
        damaged = UnreadableData(f"{source} is not a file of {program}, or is damaged.")
        # pyreadstat raises bare exceptions, and its words may quote the data.
        return in_own_words(lambda: reader(str(path), **options, **more), lambda _: damaged)

    _, metadata = fetch(metadataonly=True)
    columns = tuple(metadata.column_names)
    if not columns:
        raise UnreadableData(f"{source} has no columns.")
    records = metadata.number_rows
    if records is None or records < 0:  # some writers leave it out
        records = len(fetch(usecols=[columns[0]])[0][columns[0]])

    def load(names: Sequence[str]) -> Mapping[str, CodedColumn]:
        coders = {name: Coder() for name in names}
        rows = max(1, AT_ONCE // len(names))
        for start in range(0, records, rows):
            chunk, _ = fetch(usecols=list(names), row_offset=start, row_limit=rows)
            for name, coder in coders.items():
                coder.add(chunk[name])
        labels = metadata.variable_value_labels
        return {name: coder.finish(labels.get(name)) for name, coder in coders.items()}

    return LoadedColumns(source, columns, nonzero(records, source), load)
