"""Where the population is known: are risks of records what they claim to be?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from keyhole.arrays import Vector
from keyhole.report.colours import COLOURS
from keyhole.report.words import clean, percent, plural
from keyhole.risk.estimate import RiskAssessment
from keyhole.risk.truth import Truth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 10
"""Of equal numbers of records."""

SHARED_BY = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 9), (10, 19), (20, None))
"""Numbers of people in a cell that are shown together."""

Measure = Literal["r1", "r2"]


@dataclass(frozen=True, slots=True)
class Band:
    """Records with about the same claimed risk: what is claimed on average, what is true, how many they are."""

    claimed: float
    true: float
    records: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Claimed r2 of records whose cell ``people`` share: its quartiles; ``true`` is what it should be."""

    people: str
    low: float
    middle: float
    high: float
    true: float
    records: int


@dataclass(frozen=True, slots=True)
class AgainstTruth:
    """The records of one model beside the truth."""

    model: str
    r1: tuple[Band, ...]
    r2: tuple[Band, ...]
    by_people: tuple[Spread, ...]

    def bands(self, measure: Measure) -> tuple[Band, ...]:
        return self.r1 if measure == "r1" else self.r2


def against_truth(found: RiskAssessment | None, truth: Truth | None) -> AgainstTruth | None:
    """Claims of the recommended model beside the truth, where there is both and claims differ."""
    if found is None or truth is None or found.records is None or not len(found.records.r1):
        return None
    r1, r2, people = found.records.r1, found.records.r2, truth.population_counts
    if np.ptp(r1) <= 1e-9:
        return None
    return AgainstTruth(
        clean(found.model),
        _bands(r1, (people == 1).astype(np.float64)),
        _bands(r2, 1.0 / people),
        tuple(
            _spread(_named(low, high), r2[own], 1.0 / people[own])
            for low, high in SHARED_BY
            if (own := (people >= low) & (people <= (high or people.max()))).any()
        ),
    )


def _spread(people: str, claimed: Vector, true: Vector) -> Spread:
    low, middle, high = np.quantile(claimed, (0.25, 0.5, 0.75)).tolist()
    return Spread(people, low, middle, high, float(true.mean()), len(claimed))


def _bands(claimed: Vector, true: Vector) -> tuple[Band, ...]:
    order = np.argsort(claimed, kind="stable")
    return tuple(
        Band(float(claimed[part].mean()), float(true[part].mean()), len(part))
        for part in np.array_split(order, min(BINS, len(order)))
    )


def _named(low: int, high: int | None) -> str:
    return f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}"


def calibration_in_words(bands: tuple[Band, ...]) -> str:
    """Each band as a sentence part."""
    parts = [
        f"{plural(band.records, 'record')} at {percent(band.claimed)}: {percent(band.true)} true" for band in bands
    ]
    return "; ".join(parts) + "."


def spreads_in_words(spreads: tuple[Spread, ...]) -> str:
    """Each group of cells as a sentence part."""
    parts = [
        f"{one.people} people: middle {percent(one.middle)}, half of the {plural(one.records, 'record')} from "
        f"{percent(one.low)} to {percent(one.high)}, true {percent(one.true)}"
        for one in spreads
    ]
    return "; ".join(parts) + "."


def paint_calibration(axes: "Axes", bands: tuple[Band, ...], measure: Measure) -> None:
    """Claimed against true; on the line a claim is kept."""
    claimed, true = [band.claimed for band in bands], [band.true for band in bands]
    error = [2 * np.sqrt(max(band.true * (1 - band.true), 1e-4) / band.records) for band in bands]
    top = 1.08 * max(*claimed, *true, 1e-3)
    axes.plot([0, top], [0, top], color=COLOURS["line"], linewidth=1.5, zorder=1)
    # A share of the records can be no wider; for r2, whose truths lie between 0 and 1, it is less.
    axes.errorbar(
        claimed, true, yerr=error, fmt="o", color=COLOURS["main"], ecolor=COLOURS["light"], markersize=6, zorder=2
    )
    axes.set_xlim(0, top)
    axes.set_ylim(0, max(top, 1.05 * max(t + e for t, e in zip(true, error, strict=True))))
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_xlabel("claimed by the model")
    axes.set_ylabel("unique in truth" if measure == "r1" else "right matches in truth")


def paint_spreads(axes: "Axes", spreads: tuple[Spread, ...]) -> None:
    """Middle halves of the claims by the true number of people, and what they should be."""
    for place, one in enumerate(spreads):
        axes.plot([place, place], [one.low, one.high], color=COLOURS["main"], linewidth=6, solid_capstyle="butt")
        axes.plot([place], [one.middle], "o", color=COLOURS["ink"], markersize=6, zorder=3)
        axes.plot([place - 0.32, place + 0.32], [one.true] * 2, color=COLOURS["alarm"], linewidth=2, zorder=2)
    axes.set_xticks(range(len(spreads)), [one.people for one in spreads])
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("people in the cell, in truth")
    axes.set_ylabel("claimed chance of a right match")
