"""Labels that are numbers."""

import math
import re
from decimal import Decimal

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def number_of(label: str) -> Decimal | None:
    """The number that a label shows, if it shows one.

    Examples
    --------
    >>> number_of("07"), number_of("65+")
    (Decimal('7'), None)
    """
    text = label.strip()
    return Decimal(text) if NUMBER.fullmatch(text) else None


def in_order(labels: list[str]) -> list[str]:
    """Labels as a reader expects them: numbers by size, then texts by alphabet."""

    def place(label: str) -> tuple[float, Decimal, str]:
        number = number_of(label)
        return (math.inf, Decimal(0), label) if number is None else (0.0, number, label)

    return sorted(labels, key=place)
