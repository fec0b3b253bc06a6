"""Recode rules: bands, groups, top- and bottom-coding, applied to the levels of a key."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from keyhole.errors import InvalidRules
from keyhole.keys.numbers import number_of
from keyhole.keys.rules import read_rules
from keyhole.keys.variable import MISSING


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_number(value: Any) -> Any:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        value = str(value)
    number = number_of(value) if isinstance(value, str) else None
    if number is None:
        raise ValueError("a number was expected")
    return number


Number: TypeAlias = Annotated[Decimal, BeforeValidator(_as_number)]
Label: TypeAlias = Annotated[str, Field(min_length=1)]
Labels: TypeAlias = Annotated[tuple[Label, ...], BeforeValidator(_as_list), Field(min_length=1)]


class Recode(BaseModel):
    """How the labels of one key are changed; labels that no rule mentions stay as they are.

    Attributes
    ----------
    groups
        New label: the old labels that it replaces.
    bands
        Where each band of numbers begins, in increasing order; the last band has no end.
    labels
        The labels of the bands, if the numbers themselves will not do.
    top
        Numbers from here upwards become one level, ``85+``.
    bottom
        Numbers below this become one level, ``under 15``.

    Examples
    --------
    >>> Recode(bands=[0, 15, 65]).apply(["3", "14", "15", "80", "unknown"])
    {'3': '0-14', '14': '0-14', '15': '15-64', '80': '65+', 'unknown': 'unknown'}
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    groups: dict[Label, Labels] = Field(default_factory=dict)
    bands: tuple[Number, ...] | None = Field(default=None, min_length=1)
    labels: tuple[Label, ...] | None = None
    top: Number | None = None
    bottom: Number | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Recode":
        if self.bands is None and self.labels is not None:
            raise ValueError("'labels' are for 'bands', which are not given")
        if self.bands is not None:
            if self.top is not None or self.bottom is not None:
                raise ValueError("give 'bands' or 'top' and 'bottom', not both: the last band is open already")
            if any(a >= b for a, b in zip(self.bands, self.bands[1:], strict=False)):
                raise ValueError("the beginnings of the bands must increase")
            if self.labels is not None and len(set(self.labels)) != len(self.bands):
                raise ValueError(f"{len(self.bands)} bands need {len(self.bands)} different labels")
        if self.top is not None and self.bottom is not None and self.bottom > self.top:
            raise ValueError("'bottom' must not be above 'top'")
        members = [label for group in self.groups.values() for label in group]
        twice = sorted(label for label, times in Counter(members).items() if times > 1)
        if twice:
            raise ValueError(f"the groups overlap: {_listed(twice)} stand in more than one place")
        if not (self.groups or self.bands or self.top is not None or self.bottom is not None):
            raise ValueError("give 'groups', 'bands', 'top' or 'bottom'")
        return self

    def apply(self, labels: Iterable[str]) -> dict[str, str]:
        """The new label of each label."""
        grouped = {old: new for new, group in self.groups.items() for old in group}
        return {label: grouped.get(label) or self._recode_number(label) for label in labels}

    def check(self, labels: Sequence[str], name: str, source: str) -> None:
        """Refuse rules that do not fit the labels that there are: a mistyped label must not pass in silence."""
        known = {*labels, MISSING}
        unknown = [label for group in self.groups.values() for label in group if label not in known]
        if unknown:
            raise InvalidRules(
                f"Recode of {name}: {len(unknown)} labels in 'groups' are found neither in {source} nor in the "
                f"codebook: {_listed(unknown)}."
            )
        if self.bands is None and self.top is None and self.bottom is None:
            return
        grouped = {label for group in self.groups.values() for label in group}
        numbers = [number for label in labels if label not in grouped and (number := number_of(label)) is not None]
        if not numbers:
            raise InvalidRules(
                f"Recode of {name}: bands, top and bottom need numbers, and none of the {len(labels)} labels of "
                f"{name} in {source} is one. Use 'groups'."
            )
        below = 0 if self.bands is None else sum(number < self.bands[0] for number in numbers)
        if below:
            raise InvalidRules(
                f"Recode of {name}: {below} levels are below the first band, which begins at {self.bands[0]}. "  # type: ignore[index]
                "Begin the first band lower, or put them in 'groups'."
            )

    def _recode_number(self, label: str) -> str:
        number = number_of(label)
        if number is None:
            return label
        if self.bands is not None and number >= self.bands[0]:
            return self._band(bisect_right(self.bands, number) - 1)
        if self.top is not None and number >= self.top:
            return f"{_written(self.top)}+"
        if self.bottom is not None and number < self.bottom:
            return f"under {_written(self.bottom)}"
        return label

    def _band(self, place: int) -> str:
        assert self.bands is not None
        if self.labels is not None:
            return self.labels[place]
        start = self.bands[place]
        if place == len(self.bands) - 1:
            return f"{_written(start)}+"
        end = self.bands[place + 1]
        if any(cut != cut.to_integral_value() for cut in self.bands):
            return f"{_written(start)} to under {_written(end)}"
        return _written(start) if end - start == 1 else f"{_written(start)}-{_written(end - 1)}"


Recodes: TypeAlias = Mapping[str, Recode]
"""The recode of each column that has one."""


def read_recodes(path: str | Path) -> Recodes:
    """Read a recode file: YAML with one :class:`Recode` per column."""
    recodes: Recodes = read_rules(path, dict[str, Recode], "recode file")
    return recodes


def _written(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _listed(labels: Sequence[str], most: int = 5) -> str:
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(repr(label) for label in labels[:most]) + more
