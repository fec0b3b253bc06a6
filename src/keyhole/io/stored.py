"""The values behind the labels of SPSS and Stata files: the codes they store, and what the codes are called."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from keyhole.errors import UnreadableData
from keyhole.io.coded import label_of
from keyhole.io.extras import need
from keyhole.io.microdata import Microdata
from keyhole.io.own_words import in_own_words
from keyhole.io.statistical import PACKAGES

Value: TypeAlias = int | float | str
"""What a file may hold in one field, if it is not missing."""

WITH_CODES = (".sav", ".zsav", ".dta")
"""Endings of the files whose codes can be written back."""


@dataclass(frozen=True)
class StoredColumn:
    """How a column of an SPSS or Stata file is stored.

    Attributes
    ----------
    numeric
        Whether it holds numbers; otherwise texts.
    labels
        The label of each value that has one; whole numbers are whole.

    Examples
    --------
    >>> work = StoredColumn(numeric=True, labels={1: "yes", 8: "other", 9: "other"})
    >>> work.value_of("yes"), work.value_of("2.5"), work.value_of("other (9)"), work.value_of("other")
    (1, 2.5, 9, None)
    """

    numeric: bool
    labels: Mapping[Value, str] = field(default_factory=dict, repr=False)

    def value_of(self, label: str) -> Value | None:
        """The value that is shown by a label; None if there is none, or it may be one of several."""
        found = set(self._labelled.get(label, ()))
        if self.numeric or not found:  # a text that reads like the label of another one means the same
            half = label[: (len(label) - 3) // 2]
            texts = (label, half) if label == f"{half} ({half})" else (label,)
            found.update(value for text in texts if (value := self._unlabelled(text)) is not None)
        return found.pop() if len(found) == 1 else None

    @cached_property
    def _labelled(self) -> dict[str, set[Value]]:
        """The values that may be shown by each label: alone, or with the value behind it if they share it."""
        shown: dict[str, set[Value]] = {}
        for value, label in self.labels.items():
            for text in (label, f"{label} ({label_of(value)})"):  # as `keyhole.io.coded.distinct_labels` has it
                shown.setdefault(text, set()).add(value)
        return shown

    def _unlabelled(self, text: str) -> Value | None:
        value = _number(text) if self.numeric else text
        return None if value in self.labels else value


def stored_column(microdata: Microdata, name: str) -> StoredColumn | None:
    """How a column of an SPSS or Stata file is stored; None for data that is no such file."""
    path = _file_of(microdata)
    if path is None:
        return None
    extra, function, program = PACKAGES[path.suffix.lower()]
    reader = getattr(need("pyreadstat", extra), function)
    changed = UnreadableData(f"{microdata.source} is no longer a file of {program}: it was changed or removed.")
    metadata: Any = in_own_words(
        lambda: reader(str(path), metadataonly=True, output_format="dict")[1], lambda _: changed
    )
    if name not in metadata.readstat_variable_types:
        raise changed
    numeric = not metadata.readstat_variable_types[name].startswith("string")
    # The labels of Stata's missing letters stand among those of numbers.
    labels = {
        _whole(value): label
        for value, label in metadata.variable_value_labels.get(name, {}).items()
        if label and isinstance(value, str) is not numeric
    }
    return StoredColumn(numeric, labels)


def _file_of(microdata: Microdata) -> Path | None:
    """The SPSS or Stata file that the data are read from: the one file that their engine may open."""
    ((allowed,),) = microdata.engine.rows("SELECT current_setting('allowed_paths')")
    for path in map(Path, allowed):
        # A name with wildcards is allowed in a second spelling, which is not the name.
        if path.name == microdata.source and path.suffix.lower() in WITH_CODES:
            return path
    return None


def _number(label: str) -> int | float | None:
    """The number that has this label and no other."""
    try:
        value = float(label)
    except ValueError:
        return None
    return _whole(value) if math.isfinite(value) and label_of(value) == label else None


def _whole(value: Any) -> Any:
    # From 2^53 on a double does not tell whole numbers apart.
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53 else value
