"""Labels that are numbers."""

import math
import re
from decimal import Decimal

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)

BAND = re.compile(rf"(?P<side>[<>]?=?|under|below)\s*(?P<number>{NUMBER.pattern})", re.ASCII | re.IGNORECASE)
"""A label that begins with a number or with a bound: ``15-29``, ``65+``, ``<5``, ``under 15``."""


def number_of(label: str) -> Decimal | None:
    """The number that a label shows, if it shows one.

    Examples
    --------
    >>> number_of("07"), number_of("65+")
    (Decimal('7'), None)
    """
    text = label.strip()
    return Decimal(text) if NUMBER.fullmatch(text) else None


def is_band(label: str) -> bool:
    """Whether a label has a place among numbers."""
    return BAND.match(label.strip()) is not None


def in_order(labels: list[str]) -> list[str]:
    """Labels as a reader expects them: numbers and bands by size, then texts by alphabet.

    Examples
    --------
    >>> in_order(["other", "13-19", "7-12", "<7", "68+", "under 1"])
    ['under 1', '<7', '7-12', '13-19', '68+', 'other']
    """

    def place(label: str) -> tuple[float, Decimal, int, str]:
        band = BAND.match(label.strip())
        if band is None:
            return (math.inf, Decimal(0), 0, label)
        side = {"": 0, ">": 1}.get(band["side"][:1], -1)
        return (0.0, Decimal(band["number"]), side, label)

    return sorted(labels, key=place)
