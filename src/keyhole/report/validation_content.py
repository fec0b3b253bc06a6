"""What a validation says, before it becomes text or a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

import numpy as np
from scipy.stats import binom

from keyhole.report.provenance import PACKAGES, _versions
from keyhole.report.words import clean, count, duration, listed, plural, without_secrets
from keyhole.validation.assessor import ANSWERED
from keyhole.validation.measures import Measures, TauMeasures
from keyhole.validation.study import Validation

LEVEL, DOUBT = 0.95, 0.025
"""What intervals claim, and how unlikely a coverage must be before the claim is doubted."""

DESIGNS = {"srs": "simple random samples", "bernoulli": "Bernoulli samples", "stratified": "stratified samples"}


@dataclass(frozen=True, slots=True)
class Line:
    """One model on samples of one size, in words."""

    measures: Measures
    tau1: "TauLine | None"
    tau2: "TauLine | None"

    @property
    def model(self) -> str:
        return self.measures.model

    @property
    def ended(self) -> str:
        """How many replicates there are, and how many of them are in doubt."""
        odd = [
            f"{number} {words}"
            for number, words in (
                (self.measures.failed, "failed"),
                (self.measures.not_converged, "not converged"),
            )
            if number
        ]
        return f"{count(self.measures.replicates)} ({', '.join(odd)})" if odd else count(self.measures.replicates)

    @property
    def seconds(self) -> str:
        found = self.measures.seconds_per_fit
        return "" if found is None else duration(found)

    @property
    def auc(self) -> str:
        return "" if self.measures.auc_r1 is None else f"{self.measures.auc_r1:.2f}"


@dataclass(frozen=True, slots=True)
class TauLine:
    """Errors and coverage of tau1 or tau2; ``keeps`` is whether 95% is not in doubt."""

    truth: str
    bias: str
    error: str
    covered: str
    width: str
    keeps: bool


@dataclass(frozen=True, slots=True)
class BySize:
    """All models on samples of one size, and what they amount to."""

    size: int
    summary: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """All that the page and the summary say."""

    source: str
    command: str
    headline: str
    summary: tuple[str, ...]
    sizes: tuple[BySize, ...]
    keys: tuple[tuple[str, int], ...]
    people: int
    occupied: int
    uniques: int
    design: str
    replicates: int
    seeds: tuple[int, int]
    complete: bool
    failures: tuple[str, ...]
    doubts: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float
    when: datetime
    versions: tuple[tuple[str, str], ...]


def compose_validation(
    found: Validation, *, source: str, command: str, warnings: Sequence[str] = (), when: datetime | None = None
) -> ValidationReport:
    """Put the measures of a validation into words."""
    measures, study, table = found.measures, found.study, found.population.table
    sizes = tuple(
        by_size([one for one in measures if one.size == size])
        for size in dict.fromkeys(one.size for one in measures)
    )
    return ValidationReport(
        source=clean(without_secrets(source)),
        command=clean(without_secrets(command)),
        headline=_headline(measures),
        summary=_summary(found),
        sizes=sizes,
        keys=tuple((clean(key.name), len(key)) for key in table.keys),
        people=len(found.population),
        occupied=table.occupied,
        uniques=len(table.uniques),
        design=_design(study.design.settings),
        replicates=study.replicates,
        seeds=(study.seed, study.seed + study.replicates - 1),
        complete=found.complete,
        failures=_failures(measures),
        doubts=_doubts(measures),
        warnings=tuple(map(clean, warnings)),
        seconds=_seconds(measures),
        when=when or datetime.now(UTC),
        versions=_versions((*PACKAGES, "joblib")),
    )


ENOUGH = 20
"""Samples from which words judge intervals."""

TOO_FEW = (
    "So few samples do not rank models that are close to each other, nor show that intervals hold; ! marks those "
    "that failed too often already."
)

NEAR = 1.5
"""A factor of the truth within which half of a model's estimates must be for it to have come near."""


def keeps_level(coverage: float, replicates: int, level: float = LEVEL) -> bool:
    """Whether so low a coverage is no surprise for intervals that hold the truth with probability ``level``.

    Examples
    --------
    >>> keeps_level(0.92, 100), keeps_level(0.89, 100), keeps_level(0.89, 20)
    (True, False, True)
    """
    return bool(binom.cdf(round(coverage * replicates), replicates, level) > DOUBT)


def by_size(measures: Sequence[Measures]) -> BySize:
    """The models of one size, those with the smallest error of tau1 first, failed ones last."""
    ordered = sorted(measures, key=_far)
    nearest = next((one for one in ordered if one.tau1 is not None), None)
    kept = [one.model for one in ordered if _keeps(one)]
    words = [] if nearest is None else [_truth(nearest), _nearest(nearest)]
    estimated = [one for one in ordered if one.tau1 is not None]
    fewest = min((one.replicates - one.failed for one in estimated), default=0)
    words.append(_kept(kept, len(estimated)) if fewest >= ENOUGH else TOO_FEW)
    return BySize(measures[0].size, " ".join(words), tuple(map(_line, ordered)))


def signed(share: float) -> str:
    """A relative error with its sign.

    Examples
    --------
    >>> signed(0.1234), signed(-0.004), signed(2.5), signed(float("inf"))
    ('+12%', '-0.4%', '+250%', 'infinite')
    """
    if not isfinite(share):
        return "infinite"
    return f"{share:+.1%}" if abs(share) < 0.0995 else f"{share:+.0%}"


def _line(one: Measures) -> Line:
    number = one.replicates - one.failed
    return Line(one, *(None if tau is None else _tau(tau, number) for tau in (one.tau1, one.tau2)))


def _tau(tau: TauMeasures, number: int) -> TauLine:
    return TauLine(
        truth=f"{tau.mean_truth:,.1f}" if tau.mean_truth < 100 else f"{tau.mean_truth:,.0f}",
        bias=signed(tau.relative_bias),
        error=signed(tau.median_abs_relative_error).removeprefix("+"),
        covered=f"{tau.coverage:.0%}",
        width=f"{tau.mean_width:,.1f}" if tau.mean_width < 100 else f"{tau.mean_width:,.0f}",
        keeps=keeps_level(tau.coverage, number),
    )


def _far(one: Measures) -> tuple[bool, bool, float, float]:
    """What models are ordered by: whether there is no tau1, whether fits often failed, and how far tau1 is off.

    By the ratio within which the middle half of the estimates are of the truth, up or down: by relative errors an
    estimate of nobody would never be far off. By people where nobody is unique in the population.
    """
    if one.tau1 is None:
        return True, True, 0.0, 0.0
    with np.errstate(divide="ignore"):
        ratio = float(np.abs(np.log1p([one.tau1.errors[1], one.tau1.errors[3]])).max())
    return False, 5 * one.failed > one.replicates, ratio, one.tau1.rmse


def _keeps(one: Measures) -> bool:
    number = one.replicates - one.failed
    taus = (one.tau1, one.tau2)
    return all(tau is not None and keeps_level(tau.coverage, number) for tau in taus)


def _truth(one: Measures) -> str:
    if one.tau1 is None or one.tau2 is None:
        return ""
    tau1, tau2 = _tau(one.tau1, 1).truth, _tau(one.tau2, 1).truth
    return f"On average {tau1} records were unique in the population, and {tau2} matches would have been right."


def _nearest(one: Measures) -> str:
    """The nearest model, and between which errors half of its estimates were: models are ordered by these."""
    if one.tau1 is None or one.tau2 is None:
        return ""
    if not isfinite(one.tau1.median_abs_relative_error):
        return f"{one.model} came nearest; nobody is unique in the population in most samples."
    start = _came(one.model, near=_far(one)[2] <= np.log(NEAR))
    return f"{start}: half of its errors were between {_between(one.tau1)} of tau1, {_between(one.tau2)} of tau2."


def _came(model: str, *, near: bool) -> str:
    return f"{model} came nearest" if near else f"No model came near; {model} did best"


def _between(tau: TauMeasures) -> str:
    return f"{signed(tau.errors[1])} and {signed(tau.errors[3])}"


def _kept(models: Sequence[str], fitted: int) -> str:
    if not models:
        return "No model's intervals held the truth as often as 95% claims."
    if len(models) == fitted:
        words = "every model" if fitted > 1 else "the model"
        return f"The intervals of {words} held the truth about as often as they claim."
    return f"Intervals held the truth about as often as they claim for {listed(models)}."


def _headline(measures: Sequence[Measures]) -> str:
    """The model that is nearest where it is furthest off, over the sizes."""
    worst: dict[str, Measures] = {}
    for one in measures:
        worst[one.model] = max(worst.get(one.model, one), one, key=_far)
    fitted = {model: one.tau1 for model, one in worst.items() if one.tau1 is not None}
    if not fitted:
        return "No model gave an estimate on every size"
    best = min(fitted, key=lambda model: _far(worst[model]))
    own = [one for one in measures if one.model == best and one.tau1 is not None]
    covered = sum(round(one.tau1.coverage * (one.replicates - one.failed)) for one in own if one.tau1)
    number = sum(one.replicates - one.failed for one in own)
    near = _far(worst[best])[2] <= np.log(NEAR) or not isfinite(fitted[best].median_abs_relative_error)
    start = best if len(worst) == 1 else _came(best, near=near)
    told = (
        f"median error of tau1 {listed([_off(one, alone=len(own) == 1) for one in own])}"
        if isfinite(fitted[best].median_abs_relative_error)
        else f"tau1 off by {fitted[best].rmse:.1f} (root mean square)"
    )
    failed = sum(one.failed for one in own)
    return (
        f"{start}: {told}; {count(covered)} of {plural(number, 'interval')} held the truth"
        f"{f', {count(failed)} more failed' if failed else ''}"
    )


def _off(one: Measures, *, alone: bool) -> str:
    """The median error of tau1, with the size if there are several."""
    share = one.tau1.median_abs_relative_error if one.tau1 is not None else float("nan")
    error = signed(share).removeprefix("+")
    return error if alone else f"{error} with {count(one.size)} records"


def _seconds(measures: Sequence[Measures]) -> float:
    """Of all fits; a member that a pool has answered for was part of the pool's."""
    pooled = {(one.size, member) for one in measures for member in ANSWERED.get(one.model, ())}
    return sum(one.total_seconds for one in measures if (one.size, one.model) not in pooled)


def _summary(found: Validation) -> tuple[str, ...]:
    study, models = found.study, len(found.study.assessors)
    sizes = listed([count(size) for size in study.sizes])
    words = [
        f"{plural(study.replicates, 'sample')} {f'each of {sizes}' if len(study.sizes) > 1 else f'of {sizes}'} "
        f"records, {_design(study.design.settings)}, from a population of "
        f"{count(len(found.population))} people who are all known. Every sample "
        f"{'was' if found.complete else 'is to be'} shown to {plural(models, 'model')}, and the estimates are "
        "compared with the truth."
    ]
    if not found.complete:
        words.append(
            f"Only {count(len(found.results))} of {plural(found.planned, 'fit')} ended before the time was over: "
            "take what follows as preliminary."
        )
        begun = {one.model for one in found.measures}
        if missing := [model for model in study.assessors if model not in begun]:
            words.append(f"Not begun: {listed(missing)}.")
    words += [
        f"{plural(number, 'fit')} {what}."
        for number, what in (
            (sum(one.failed for one in found.measures), "failed and are in no measure"),
            (
                sum(one.not_converged for one in found.measures),
                "are not to be trusted by their own checks, and are in every measure",
            ),
        )
        if number
    ]
    return tuple(words)


def _design(settings: object) -> str:
    told = dict(settings)  # type: ignore[call-overload]
    words = DESIGNS[told["design"]]
    if told["design"] != "stratified":
        return words
    share = "in proportion to their people" if told["allocation"] == "proportional" else "equally many from each"
    return f"{words} by {clean(listed(told['columns']))}, {share}"


def _failures(measures: Sequence[Measures]) -> tuple[str, ...]:
    """What fits that failed said."""
    return tuple(
        f"{one.model}, n = {count(one.size)}: {plural(number, 'time')}: {clean(words)}"
        for one in measures
        for words, number in one.faults.items()
    )


def _doubts(measures: Sequence[Measures]) -> tuple[str, ...]:
    """What the first of a model's fits that are not to be trusted said."""
    return tuple(
        f"{one.model}, n = {count(one.size)}: {plural(one.not_converged, 'fit')}; the first: {clean(one.doubt)}"
        for one in measures
        if one.not_converged
    )
