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
    """Labels as a reader expects them: numbers and bands by size, then texts by alphabet.

    Examples
    --------
    >>> in_order(["other", "13-19", "7-12", "68+"])
    ['7-12', '13-19', '68+', 'other']
    """

    def place(label: str) -> tuple[float, Decimal, str]:
        leading = NUMBER.match(label.strip())
        return (math.inf, Decimal(0), label) if leading is None else (0.0, Decimal(leading[0]), label)

    return sorted(labels, key=place)
