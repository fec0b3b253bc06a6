"""The page on what synthetic files are good for, as frozen data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import fmean

import numpy as np

from keyhole.inference.fit import Diagnostic
from keyhole.report.origin import Origin, origin_of
from keyhole.report.verdict import Verdict
from keyhole.report.words import clean, count, percent, plural
from keyhole.synthesis.utility_propensity import PropensityUtility
from keyhole.synthesis.utility_regression import Coefficient, CoefficientEstimate, RegressionUtility
from keyhole.synthesis.utility_tables import TableUtility

LISTED = 15
"""Tables of each kind that are listed, the worst first."""

NEAR, FAR = 2.0, 10.0
"""Rules of thumb for a ratio that is 1 on average for another sample: up to the one it may be luck, from the other
on the copies tell something else than the file."""

POOR_OVERLAP = 0.5
"""Two intervals that share less than half of themselves lead to different conclusions more often than not."""


@dataclass(frozen=True, slots=True)
class TableLine:
    """One table: its keys, its distance, its ratio (None if there is nothing to compare), and that in words."""

    keys: tuple[str, ...]
    distance: float
    ratio: float | None
    words: str


@dataclass(frozen=True, slots=True)
class TableGroup:
    """The one- or two-way tables: how many, their means, and the worst of them."""

    ways: int
    number: int
    mean_distance: float
    mean_ratio: float | None
    worst: tuple[TableLine, ...]


@dataclass(frozen=True, slots=True)
class PropensityLine:
    """How well each copy can be told from the original; None where all records are alike."""

    copy: int
    pmse: float
    ratio: float | None
    sample_ratio: float | None
    converged: bool


@dataclass(frozen=True, slots=True)
class RegressionPart:
    """A regression on both; ``overlap`` is the mean over the coefficients that both tell."""

    formula: str
    family: str
    response: str
    success: str | None
    level: float
    partial: bool
    records: tuple[int, ...]
    coefficients: tuple[Coefficient, ...]
    overlap: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UtilityReport:
    """All that the page says."""

    title: str
    verdict: Verdict
    warnings: tuple[str, ...]
    trusted: bool
    partial: bool
    copies: int
    records: int
    copy_records: int
    tables: tuple[TableGroup, ...]
    propensity: tuple[PropensityLine, ...]
    propensity_words: str
    doubt: str
    regression: RegressionPart | None
    diagnostics: tuple[Diagnostic, ...]
    origin: Origin


def compose_utility(
    tables: TableUtility,
    propensity: PropensityUtility,
    *,
    regression: RegressionUtility | None = None,
    records: int,
    copy_records: int,
    source: str,
    copies_from: str,
    command: str,
    seed: int,
    partial: bool = False,
    diagnostics: Sequence[Diagnostic] = (),
    warnings: Sequence[str] = (),
    when: datetime | None = None,
) -> UtilityReport:
    """Turn comparisons of synthetic copies with their original into a page.

    Parameters
    ----------
    records, copy_records
        Of the original and of each copy.
    partial
        Whether some keys are the original's own, so that copies are nearer to it than another sample would be.
    diagnostics
        Of the chains that the copies come from.
    when
        The time to print; now, by default.
    """
    origin = origin_of(source, copies_from, command, seed, when)
    groups = tuple(group for ways in (1, 2) if (group := _group(tables, ways)) is not None)
    part = None if regression is None else _regression(regression)
    trusted = all(check.verdict != "untrusted" for check in diagnostics)
    sample_ratio = _mean(propensity.sample_ratio)
    return UtilityReport(
        title=f"What synthetic copies of {origin.source} are good for",
        verdict=_verdict(groups, sample_ratio, part, diagnostics, propensity.doubt),
        warnings=tuple(clean(warning) for warning in warnings),
        trusted=trusted,
        partial=partial,
        copies=len(propensity.ratio),
        records=records,
        copy_records=copy_records,
        tables=groups,
        propensity=tuple(
            PropensityLine(
                place + 1,
                float(propensity.pmse[place]),
                _told(propensity.ratio[place]),
                _told(propensity.sample_ratio[place]),
                bool(propensity.converged[place]),
            )
            for place in range(len(propensity.ratio))
        ),
        propensity_words=_propensity_in_words(sample_ratio, records / (records + copy_records), partial=partial),
        doubt=propensity.doubt,
        regression=part,
        diagnostics=tuple(replace(check, words=clean(check.words)) for check in diagnostics),
        origin=origin,
    )


def ratio_in_words(ratio: float | None) -> str:
    """How far from the original a ratio is.

    Examples
    --------
    >>> ratio_in_words(1.1), ratio_in_words(40.0)
    ('as near as another sample', 'far from the original')
    """
    if ratio is None:
        return "nothing to compare"
    if ratio <= NEAR:
        return "as near as another sample"
    return "further than another sample" if ratio < FAR else "far from the original"


def _group(found: TableUtility, ways: int) -> TableGroup | None:
    places = [place for place, names in enumerate(found.tables) if len(names) == ways]
    if not places:
        return None
    ratio = np.where(np.isnan(found.ratio), -np.inf, found.ratio)
    worst = sorted(places, key=lambda place: (-ratio[place], -found.distance[place]))[:LISTED]
    return TableGroup(
        ways=ways,
        number=len(places),
        mean_distance=found.mean_distance(ways),
        mean_ratio=_told(found.mean_ratio(ways)),
        worst=tuple(
            TableLine(
                tuple(clean(name) for name in found.tables[place]),
                float(found.distance[place]),
                _told(found.ratio[place]),
                ratio_in_words(_told(found.ratio[place])),
            )
            for place in worst
        ),
    )


def _regression(found: RegressionUtility) -> RegressionPart:
    overlaps = [one.overlap for one in found.coefficients if one.overlap is not None]
    return RegressionPart(
        formula=clean(found.formula),
        family=found.family,
        response=clean(found.response),
        success=None if found.success is None else clean(found.success),
        level=found.level,
        partial=found.rule == "partial",
        records=found.records,
        coefficients=tuple(
            replace(one, name=clean(one.name), words=clean(one.words)) for one in found.coefficients
        ),
        overlap=fmean(overlaps) if overlaps else None,
        notes=tuple(clean(note) for note in found.notes),
    )


def _verdict(
    groups: Sequence[TableGroup],
    sample_ratio: float | None,
    regression: RegressionPart | None,
    diagnostics: Sequence[Diagnostic],
    doubt: str,
) -> Verdict:
    worst = max([group.mean_ratio for group in groups if group.mean_ratio is not None] + [sample_ratio or 0.0])
    said = {
        "as near as another sample": "The copies are as near to the file as another sample would be.",
        "further than another sample": "The copies are further from the file than another sample would be.",
        "far from the original": "The copies differ from the file by much more than luck.",
    }
    untrusted = [clean(check.words) for check in diagnostics if check.verdict == "untrusted"]
    headline = "These copies are not to be relied on." if untrusted else said[ratio_in_words(worst)]
    summary = [*untrusted]
    for group in groups:
        words = (
            f"On average, {percent(group.mean_distance)} of the records would have to change cell to turn a "
            f"{'one' if group.ways == 1 else 'two'}-way table of a copy into that of the file"
        )
        shown = None if group.mean_ratio is None else shown_ratio(group.mean_ratio)
        summary.append(f"{words}{'' if shown is None else f'; the ratio to another sample is {shown}'}.")
    if doubt:
        summary.append(doubt)
    if regression is not None:
        summary.append(_regression_in_words(regression))
    return Verdict(headline, tuple(summary), ())


def _regression_in_words(found: RegressionPart) -> str:
    told = [one.overlap for one in found.coefficients if one.overlap is not None]
    if found.overlap is None:
        return "The regression has no coefficient that both the file and the copies tell."
    poor = sum(overlap < POOR_OVERLAP for overlap in told)
    return (
        f"The intervals of {plural(len(told), 'coefficient')} of the regression overlap by "
        f"{percent(found.overlap)} on average; {'none' if not poor else count(poor)} by less than half."
    )


def _propensity_in_words(sample_ratio: float | None, share: float, *, partial: bool) -> str:
    if sample_ratio is None:
        return "All records are alike, so there is nothing to tell them by."
    words = (
        f"On average over the copies it is {shown_ratio(sample_ratio)} times what another sample would show: "
        f"{ratio_in_words(sample_ratio)}."
    )
    if partial:
        return f"{words} Some keys are the file's own here, which brings the copies nearer to it than a sample."
    if sample_ratio < share / 2:
        return (
            f"{words} Copies drawn from the file's own shares would show {shown_ratio(share)}; much less than "
            "that means that the copies repeat the file, which is no merit: look at their risk."
        )
    return words


def shown_ratio(ratio: float) -> str:
    """A ratio as it is read.

    Examples
    --------
    >>> shown_ratio(0.512), shown_ratio(12.3), shown_ratio(4321.0)
    ('0.51', '12', '4,321')
    """
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:,.0f}"


def shown_interval(found: CoefficientEstimate) -> str:
    """The interval of a coefficient; unbounded if the copies say too little.

    Examples
    --------
    >>> shown_interval(CoefficientEstimate(0.5, 0.1, 0.304, 0.696))
    '0.304 to 0.696'
    """
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        return "unbounded"
    return f"{found.low:.3f} to {found.high:.3f}".replace("-", "\N{MINUS SIGN}")


def _told(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _mean(values: Sequence[float] | np.ndarray) -> float | None:
    told = [float(value) for value in values if math.isfinite(value)]
    return fmean(told) if told else None
