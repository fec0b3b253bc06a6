"""How a model was chosen among candidates: the risk along its path, as the report tells and draws it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.report.words import clean, figure_of, in_prose, percent, plural, rounded, shortened
from keyhole.risk.compare import Comparison
from keyhole.risk.estimate import RiskAssessment

STEPS_SHOWN = 40
"""Steps that are drawn and listed; a longer path is thinned."""

STEPS_TOLD = 10
"""Steps that the words behind a picture go through."""

PATHS_DRAWN = 3
"""Models whose paths are drawn; the others' are listed only."""

STATISTICS_DRAWN = 2
"""Statistics with a panel of their own."""

FAR_FROM_ZERO = 0.2
"""A statistic that varies by a smaller share of itself than this is drawn without the line at 0."""

UNKNOWN = "\N{EN DASH}"
"""Stands for a number that a candidate does not have."""

DECIMALS = 4
"""The most decimals that tell a statistic near zero from zero."""

UNREADABLE = 0.05
"""Expected numbers of people below this read as none, so they cannot be told apart."""


@dataclass(frozen=True, slots=True)
class PathRow:
    """A step as the table shows it; ``number`` is what stands below it at the axis of the picture."""

    number: str
    label: str
    tau1: str
    tau2: str
    statistics: tuple[str, ...]
    chosen: bool


@dataclass(frozen=True, slots=True)
class ChosenPath:
    """The candidates of one model, all labels safe to show; ``drawn`` if there is a picture of them.

    Attributes
    ----------
    path
        All candidates.
    shown
        Positions of those that are drawn and listed: all of a short path, else evenly spread ones, the first,
        the last and the chosen one among them.
    """

    model: str
    path: ModelPath
    shown: tuple[int, ...]
    drawn: bool

    @property
    def title(self) -> str:
        """What the path tells of the model."""
        model = shortened(self.model, 30)
        return f"Beside the {self.path.along} given to {model}" if self.path.given else f"How {model} was chosen"

    @property
    def chosen(self) -> PathStep:
        """The candidate that was taken."""
        return self.path.steps[self.path.chosen]

    @property
    def steps(self) -> tuple[PathStep, ...]:
        """The candidates that are shown."""
        return tuple(self.path.steps[place] for place in self.shown)

    @property
    def tau1(self) -> tuple[float, ...]:
        """tau1 of the shown candidates; NaN where it is not known."""
        return tuple(known(step.tau1) for step in self.steps)

    @property
    def tau2(self) -> tuple[float, ...]:
        """tau2 of the shown candidates; NaN where it is not known."""
        return tuple(known(step.tau2) for step in self.steps)

    @property
    def counted(self) -> tuple[str, str] | None:
        """Noun and participle of what changes, where that can be counted.

        ``term added`` is counted, ``lambda`` is not.
        """
        noun, _, done = self.path.along.rpartition(" ")
        return (noun, done) if noun and done.endswith("ed") else None

    @property
    def numbered(self) -> str:
        """What each candidate has a number of, such as profiles; empty where the path is of another kind."""
        noun = self.path.along.removeprefix("number of ")
        return noun if noun != self.path.along and all(noun in step.label for step in self.path.steps) else ""

    @property
    def axis(self) -> str:
        """What the steps are numbered by: ``terms added``, ``lambda``."""
        return self.path.along if self.counted is None else "{}s {}".format(*self.counted)

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of what the choice looked at, in the order in which they turn up."""
        return tuple(dict.fromkeys(name for step in self.path.steps for name in step.statistics))

    @property
    def panels(self) -> tuple[str, ...]:
        """The statistics to draw: the first ones with anything to see."""
        seen = [name for name in self.statistics if sum(map(math.isfinite, self.along_path(name))) > 1]
        return tuple(seen[:STATISTICS_DRAWN])

    def beside_zero(self, name: str) -> bool:
        """Whether 0 can be drawn with a statistic: far from 0, as scores are, nothing would be left to see."""
        values = [value for value in self.along_path(name) if math.isfinite(value)]
        return max(values) - min(values) >= FAR_FROM_ZERO * max(map(abs, values))

    @property
    def zero_drawn(self) -> bool:
        """Whether a panel shows 0."""
        return any(map(self.beside_zero, self.panels))

    def along_path(self, name: str) -> tuple[float, ...]:
        """A statistic at the shown steps; NaN where it is not known."""
        return tuple(known(step.statistics.get(name, math.nan)) for step in self.steps)

    def number(self, place: int) -> str:
        """What stands at the axis below a step: its value, or how many steps were made before it."""
        value = self.path.steps[place].value
        return f"{place:,}" if value is None else f"{value:.3g}"

    def ticks(self, most: int) -> tuple[int, ...]:
        """About ``most`` steps to number at the axis: the chosen one, and others that stand clear of it."""
        last, chosen = len(self.path.steps) - 1, self.path.chosen
        stride = next(n * 10**p for p in range(9) for n in (1, 2, 5) if n * 10**p * (most - 1) >= last)
        clear = [place for place in range(0, last + 1, stride) if abs(place - chosen) > 1.1 * last / most]
        return tuple(sorted({chosen, *clear}))

    @property
    def rows(self) -> tuple[PathRow, ...]:
        """The shown steps in numbers."""
        columns = [figures(self.along_path(name)) for name in self.statistics]
        return tuple(
            PathRow(
                number=self.number(place),
                label=step.label,
                tau1=expected(step.tau1),
                tau2=expected(step.tau2),
                statistics=tuple(column[row] for column in columns),
                chosen=place == self.path.chosen,
            )
            for row, (place, step) in enumerate(zip(self.shown, self.steps, strict=True))
        )

    @property
    def thinned(self) -> str:
        """How many steps are not shown, in words; empty if all are."""
        steps = len(self.path.steps)
        if len(self.shown) == steps:
            return ""
        return (
            f"Of {steps:,} steps, {len(self.shown)} are shown here, evenly spread and the chosen one "
            "among them; the JSON result has all."
        )

    def in_words(self, tau1: str = "tau1") -> str:
        """How many candidates there were, where tau1 went, and how near the neighbours of the chosen one are.

        Parameters
        ----------
        tau1
            How to write tau1.
        """
        went = ""
        finite = [step.tau1 for step in self.path.steps if math.isfinite(step.tau1)]
        if len(finite) > 1:
            first, last = expected(finite[0]), expected(finite[-1])
            moved = f"stayed at {first}" if first == last else f"went from {first} to {last}"
            went = f"; {tau1} {moved} along the path"
        return f"{self._tried}{went}; {self._taken(tau1)}."

    @property
    def _tried(self) -> str:
        steps = len(self.path.steps)
        if self.counted is not None:
            noun, done = self.counted
            return f"{plural(steps - 1, noun)} {'was' if steps == 2 else 'were'} {done}"
        if self.numbered:
            return f"{steps:,} numbers of {in_prose(self.numbered)} were tried"
        if all(step.value is not None for step in self.path.steps):
            return f"{steps:,} values of {in_prose(self.path.along)} were tried"
        return f"{steps:,} candidates were tried along {in_prose(self.path.along)}"

    def _taken(self, tau1: str) -> str:
        """The chosen step, unless it is the last, and by how much its neighbours differ from it."""
        steps, place = self.path.steps, self.path.chosen
        beside = [steps[near] for near in (place - 1, place + 1) if 0 <= near < len(steps)]
        apart = [share for near in beside if (share := difference(near.tau1, self.chosen.tau1)) is not None]
        gap = percent(max(apart, default=0.0))
        if place == len(steps) - 1 and not self.path.given:
            if not apart:
                return "the last step was chosen"
            return "the last two steps are alike" if gap == "0%" else f"the last two steps differ by {gap}"
        taken = f"{self._chosen_model} was {'given' if self.path.given else 'chosen'}"
        if not apart:
            return taken
        beside_it = "the step beside it" if len(apart) == 1 else "the steps beside it"
        near = (
            f"like {beside_it}" if gap == "0%" else f"{'' if len(apart) == 1 else 'up to '}{gap} from {beside_it}"
        )
        return f"{taken}, with {tau1} {expected(self.chosen.tau1)}, {near}"

    @property
    def _chosen_model(self) -> str:
        if self.numbered:
            return f"the model with {self._name(self.chosen)}"
        if self.counted is None:
            return self._name(self.chosen)
        if not self.path.chosen:
            return "the model before all of them"
        return f"the model with the first {self.path.chosen:,} of them"

    def _name(self, step: PathStep) -> str:
        along, label = in_prose(self.path.along), in_prose(step.label)
        told = self.counted is not None or bool(self.numbered) or along in label
        return label if told else f"{along} {label}"

    @property
    def description(self) -> str:
        """The path in words and numbers, for those who do not see the picture."""
        told = evenly(len(self.path.steps), STEPS_TOLD, self.path.chosen)
        parts = [
            f"{self._name(step)}: tau1 {expected(step.tau1)}, tau2 {expected(step.tau2)}"
            for step in (self.path.steps[place] for place in told)
        ]
        lead = "" if len(told) == len(self.path.steps) else f"{len(told)} of {len(self.path.steps):,} steps. "
        row = self.shown.index(self.path.chosen)
        looked_at = "".join(f", {in_prose(name)} {figures(self.along_path(name))[row]}" for name in self.panels)
        return f"{lead}{'; '.join(parts)}. Chosen: {self._name(self.chosen)}{looked_at}."


def chosen_paths(comparison: Comparison) -> tuple[ChosenPath, ...]:
    """The path of every model that was chosen among two or more candidates, in the order of the models.

    The recommended model's is drawn first of all, then those of models that can be trusted.
    """
    found = [one for one in comparison.assessments if one.path is not None and len(one.path.steps) > 1]

    def doubt(one: RiskAssessment) -> int:
        return 0 if one is comparison.chosen else (1 if one.status == "ok" else 2)

    drawn = sorted(range(len(found)), key=lambda place: doubt(found[place]))[:PATHS_DRAWN]
    return tuple(
        ChosenPath(clean(one.model), _cleaned(path), evenly(len(path.steps), STEPS_SHOWN, path.chosen), i in drawn)
        for i, one in enumerate(found)
        if (path := one.path) is not None
    )


def evenly(length: int, most: int, keep: int) -> tuple[int, ...]:
    """At most ``most`` positions of ``length``, evenly spread, with both ends and ``keep``.

    Examples
    --------
    >>> evenly(5, 40, 2), evenly(101, 6, 33)
    ((0, 1, 2, 3, 4), (0, 25, 33, 50, 75, 100))
    """
    if length <= most:
        return tuple(range(length))
    spread = {round(step * (length - 1) / (most - 2)) for step in range(most - 1)}
    return tuple(sorted(spread | {keep}))


def difference(first: float, second: float) -> float | None:
    """By which share of the larger two estimates differ; 0 if they read alike, None if one is not known.

    Examples
    --------
    >>> difference(100.0, 97.0), difference(0.0, 1e-9), difference(float("nan"), 1.0)
    (0.03, 0.0, None)
    """
    if not (math.isfinite(first) and math.isfinite(second)):
        return None
    larger = max(abs(first), abs(second))
    return 0.0 if larger < UNREADABLE else abs(first - second) / larger


def known(value: float) -> float:
    """A number, or NaN for anything that is not one."""
    return float(value) if math.isfinite(value) else math.nan


def expected(value: float) -> str:
    """An expected number of people; a dash where it is not known.

    Examples
    --------
    >>> expected(310.4), expected(float("nan")) == UNKNOWN
    ('310', True)
    """
    if not math.isfinite(value):
        return UNKNOWN
    return rounded(value) if value >= 0 else figure_of(float(value))


def figures(values: Sequence[float]) -> tuple[str, ...]:
    """Numbers of one column, with as many decimals as it takes to tell them apart; a dash where one is not known.

    Examples
    --------
    >>> figures([-8123.41, -8119.2]), figures([13.52, -0.4])
    (('-8,123.41', '-8,119.20'), ('13.5', '-0.4'))
    >>> figures([36.9, 0.016, -0.17])
    ('36.90', '0.02', '-0.17')
    """
    finite = [value for value in values if math.isfinite(value)]
    width = max(finite) - min(finite) if finite else 0.0
    decimals = 2 - math.floor(math.log10(width)) if width > 0 else -1
    if width > 0 and min(finite) < 0 < max(finite):
        # Which side of zero a value is on must show.
        nearest = min(abs(value) for value in finite if value)
        decimals = max(decimals, min(DECIMALS, -math.floor(math.log10(nearest))))

    def say(value: float) -> str:
        if not math.isfinite(value):
            return UNKNOWN
        return f"{value:,.{max(decimals, 0)}f}" if width > 0 and -7 < decimals < 7 else figure_of(float(value))

    return tuple(map(say, values))


def _cleaned(path: ModelPath) -> ModelPath:
    steps = tuple(
        PathStep(
            clean(step.label),
            step.value,
            step.tau1,
            step.tau2,
            {clean(name).replace("_", " "): value for name, value in step.statistics.items()},
        )
        for step in path.steps
    )
    return ModelPath(clean(path.along), steps, path.chosen, path.given)
