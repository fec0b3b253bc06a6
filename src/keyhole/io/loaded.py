"""Data that must be loaded: only the columns that are asked for, as small codes."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from keyhole.errors import UnreadableData
from keyhole.io.coded import CodedColumn
from keyhole.io.engine import Engine
from keyhole.io.microdata import Column, Selection, with_weights

Load = Callable[[Sequence[str]], Mapping[str, CodedColumn]]
"""Reads the named columns, and no others, from wherever they are."""


@dataclass
class LoadedColumns:
    """A source that cannot be queried where it is; what was asked once is kept.

    Attributes
    ----------
    load
        Reads the named columns together, so that their records are in one order.
    """

    source: str
    columns: tuple[str, ...]
    records: int
    load: Load = field(repr=False)
    _kept: dict[str, CodedColumn] = field(default_factory=dict, repr=False)

    def select(self, names: Sequence[str], engine: Engine, weights: str | None = None) -> Selection:
        """The named columns as a table of codes, the weights also as numbers."""
        with engine.turn:
            return self._select(with_weights(names, weights), engine, weights)

    def _select(self, chosen: Sequence[str], engine: Engine, weights: str | None) -> Selection:
        if any(name not in self._kept for name in chosen):
            # All of them again, not only the new ones: a database may give its records in another order.
            self._kept = dict(self.load(tuple(dict.fromkeys((*self._kept, *chosen)))))
            self._check_lengths()
        arrays: dict[str, NDArray[Any]] = {
            f"c{place}": self._kept[name].codes for place, name in enumerate(chosen)
        }
        if weights is not None:
            arrays["weights"] = self._kept[weights].numbers()
        columns = {name: self._column(place, name) for place, name in enumerate(chosen)}
        selection = Selection(engine.register(arrays), columns)
        weakref.finalize(selection, engine.forget, selection.relation)
        return selection

    def _column(self, place: int, name: str) -> Column:
        kept = self._kept[name]
        number = "CASE WHEN NOT isnan(weights) THEN weights END"
        return Column(f"nullif(c{place}, -1)", "INTEGER", number, kept.labels, kept.ordered)

    def _check_lengths(self) -> None:
        found = {len(column.codes) for column in self._kept.values()}
        if found != {self.records}:
            raise UnreadableData(
                f"{self.source} changed while it was read: {max(found):,} records instead of {self.records:,}. "
                "Read it again when nobody writes to it."
            )
