"""Columns that are loaded: one small integer a record, and the label each integer stands for."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import Vector


@dataclass(frozen=True)
class CodedColumn:
    """A column as codes and labels.

    Attributes
    ----------
    codes
        One code a record, -1 where the value is missing.
    labels
        The label of each code; all different.
    ordered
        Whether the order of the labels means something (the order of a codebook, or of an ordered category).
    """

    codes: NDArray[np.int32] = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)
    ordered: bool = False

    def numbers(self) -> Vector:
        """The labels as numbers, one a record: NaN where missing, infinite where the label is no number."""
        values = np.array([*map(_number, self.labels), np.nan])
        return values[self.codes]


class Coder:
    """Codes the values of one column, chunk by chunk, in the order they come."""

    def __init__(self) -> None:
        self._code: dict[Any, int] = {}
        self._chunks: list[NDArray[np.int32]] = []

    def add(self, values: Iterable[Any]) -> None:
        """Code a chunk of values; None, NaN and the empty text are missing."""
        if isinstance(values, np.ndarray) and values.dtype != object:
            distinct, inverse = np.unique(values, return_inverse=True)
            codes = np.array([self._code_of(value) for value in shortest(distinct)], dtype=np.int32)
            self._chunks.append(codes[inverse] if len(codes) else np.zeros(0, dtype=np.int32))
            return
        known, missed = self._code, self._code_of
        # A dictionary's own lookup is the fast way for the millions of values that were seen before.
        self._chunks.append(np.fromiter((known[v] if v in known else missed(v) for v in values), dtype=np.int32))

    def add_coded(self, indices: NDArray[Any], dictionary: Sequence[Any]) -> None:
        """Code a chunk that comes as positions in a list of values, -1 for missing."""
        codes = np.array([*(self._code_of(value) for value in dictionary), -1], dtype=np.int32)
        self._chunks.append(codes[indices])

    def finish(self, value_labels: Mapping[Any, str] | None = None) -> CodedColumn:
        """The coded column; values with a label in ``value_labels`` are shown by it, in order of value."""
        codes = np.concatenate(self._chunks) if self._chunks else np.zeros(0, dtype=np.int32)
        values = list(self._code)
        if not value_labels:
            return _merged(codes, [label_of(value) for value in values])
        order = sorted(range(len(values)), key=lambda code: _by_value(values[code]))
        place = np.empty(len(values) + 1, dtype=np.int32)
        place[order] = np.arange(len(values))
        place[-1] = -1
        labels = distinct_labels([values[code] for code in order], value_labels)
        return CodedColumn(place[codes], labels, ordered=True)

    def _code_of(self, value: Any) -> int:
        if value is None or value == "" or value != value:
            return -1
        return self._code.setdefault(value, len(self._code))


def label_of(value: Any) -> str:
    """A value as the label a reader expects: whole numbers without a decimal point.

    Examples
    --------
    >>> label_of(3.0), label_of(2.5), label_of("01"), label_of(True), label_of(Decimal("3.00"))
    ('3', '2.5', '01', 'true', '3')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def shortest(values: NDArray[Any]) -> list[Any]:
    """Numbers as Python's; a fraction in single precision is the shortest one that is stored the same.

    Examples
    --------
    >>> shortest(np.array([0.1, 3], dtype=np.float32))
    [0.1, 3.0]
    """
    plain: list[Any] = values.tolist()
    if values.dtype.kind != "f" or values.dtype.itemsize >= 8:
        return plain
    return [
        p if p != p or math.isinf(p) or p == int(p) else float(str(v)) for p, v in zip(plain, values, strict=True)
    ]


def distinct_labels(values: Sequence[Any], value_labels: Mapping[Any, str]) -> tuple[str, ...]:
    """The label of each value, made different where two values share one: ``other (8)``, ``other (9)``."""
    plain = [value_labels.get(value) or label_of(value) for value in values]
    times = Counter(plain)
    apart = [f"{p} ({label_of(v)})" for p, v in zip(plain, values, strict=True)]
    labels = [a if times[p] > 1 else p for p, a in zip(plain, apart, strict=True)]
    # A label may look like one that was made here; then all are told apart by their values.
    return tuple(labels if len(set(labels)) == len(labels) else apart)


def _merged(codes: NDArray[np.int32], labels: list[str]) -> CodedColumn:
    """One code a label: 1 and 1.0, or a number and its text, are the same level."""
    place: dict[str, int] = {}
    merged = np.array([*(place.setdefault(label, len(place)) for label in labels), -1], dtype=np.int32)
    return CodedColumn(merged[codes] if len(place) < len(labels) else codes, tuple(place))


def _by_value(value: Any) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return math.inf
