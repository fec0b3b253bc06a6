"""The way a model was chosen: every candidate that was tried, with its risk, for people to read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class PathStep:
    """One candidate of a path.

    Attributes
    ----------
    label
        What was changed or tried here: a term, or a value of a parameter.
    value
        The parameter as a number, where the path goes along one.
    tau1, tau2
        The estimates of this candidate.
    statistics
        What the choice looked at, by name: standardised bias, cross-validated score, renormaliser.
    """

    label: str
    value: float | None
    tau1: float
    tau2: float
    statistics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelPath:
    """Candidates in the order in which they were tried.

    Attributes
    ----------
    along
        What changes from step to step, in words: ``term added``, ``lambda``.
    steps
        The candidates.
    chosen
        The position of the one that was taken.
    given
        Whether the user named it.
    """

    along: str
    steps: tuple[PathStep, ...]
    chosen: int
    given: bool = False


@runtime_checkable
class ChosenOnPath(Protocol):
    """A fit that was chosen among candidates and can show all of them."""

    @property
    def path(self) -> ModelPath: ...
