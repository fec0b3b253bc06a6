"""A key variable: its name and the labels of its levels."""

from dataclasses import dataclass, field
from functools import cached_property

MISSING = "(missing)"
"""The explicit level of records whose value is not known."""


@dataclass(frozen=True)
class KeyVariable:
    """Something an intruder may know of a person: a name and the labels of its levels, in order.

    A level's code is its position, counted from 0; a level may be one that nobody in the sample has.

    Examples
    --------
    >>> sex = KeyVariable("SEX", ("female", "male"))
    >>> sex.code["male"], len(sex)
    (1, 2)
    """

    name: str
    levels: tuple[str, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.levels)

    @cached_property
    def code(self) -> dict[str, int]:
        """Each label's code."""
        return {label: code for code, label in enumerate(self.levels)}
