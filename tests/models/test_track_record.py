"""What a model admits of its past is what the model guide, or the page of real populations, shows."""

import csv
from pathlib import Path

import numpy as np
import pytest

from keyhole.inference.track_record import TRACK_RECORD, UNLIKE, UNTRIED, TrackRecord
from keyhole.models.catalogue import CATALOGUE
from keyhole.models.sequential.checks import LARGE_SAMPLE, record_at
from tests.models.samples import quick_chains, sample_of, typical_sample

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE, RESULTS = DOCS / "reference" / "model-guide.md", DOCS / "reference" / "real-populations.csv"
LOGLINEAR_PAGE = DOCS / "explanation" / "log-linear.md"
ON_THAT_PAGE = {"two-way": "two-way", "loglinear": "two-way", "skinner-shlomo": "skinner-shlomo", "lasso": "lasso"}
"""Models with their rows there, as they are without options."""

SEQUENTIAL = ("auto", "sequential-logit")
"""A pool in which one model alone has a say has its record."""

TABLES = ("kdd_CA10", "kdd_NY10", "kdd_NC12", "eph_CA10", "eph_NY10", "eph_NC13", "eph_CA10_adults18+")


def shown_in_the_guide(model: str) -> TrackRecord | None:
    """The record of a model, worked out again from the table of real populations; None if it is not there."""
    errors, covered = [], 0
    for line in GUIDE.read_text().splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.split("|")[1:-1]]
        if len(cells) == 11 and cells[3] == model:
            estimate, truth = float(cells[4]), float(cells[6])
            low, high = map(float, cells[5].split("-"))
            errors.append(round(100 * (estimate / truth - 1)))
            covered += low <= truth <= high
    return TrackRecord(min(errors), max(errors), covered, len(errors)) if errors else None


def shown_on_real_populations(model: str, *, large: bool) -> TrackRecord:
    """The record of a model over all small, or all large, samples of the declared tables that are kept."""
    lows, highs, covered, samples = [], [], 0, 0
    with RESULTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["model"] == model and row["table"] in TABLES and (int(row["n"]) >= LARGE_SAMPLE) is large:
                fitted = int(row["replicates"]) - int(row["failed"])
                lows.append(round(100 * float(row["tau1_lowest"])))
                highs.append(round(100 * float(row["tau1_highest"])))
                samples += fitted
                covered += round(fitted * float(row["tau1_covered"]))
    return TrackRecord(min(lows), max(highs), covered, samples)


def shown_on_the_loglinear_page(model: str) -> TrackRecord:
    """The record over the repeated samples of two real populations."""
    lows, highs, covered, samples = [], [], 0, 0
    for line in LOGLINEAR_PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 13 and cells[0] in TABLES and cells[2] == model:
            low, high = (int(part.strip(" %")) for part in cells[6].split(","))
            lows.append(low)
            highs.append(high)
            drawn = int(cells[3].split(",")[0])
            samples += drawn
            covered += round(drawn * int(cells[7].strip("%")) / 100)
    return TrackRecord(min(lows), max(highs), covered, samples)


def shown(name: str) -> TrackRecord | None:
    if name in SEQUENTIAL:
        return shown_on_real_populations("sequential-logit", large=typical_sample().sample_size >= LARGE_SAMPLE)
    return shown_on_the_loglinear_page(ON_THAT_PAGE[name]) if name in ON_THAT_PAGE else shown_in_the_guide(name)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_admitted_record_is_the_measured_one(name: str) -> None:
    record, counts = shown(name), typical_sample().table.counts
    # The sequential logit was tried with five keys and more only.
    expected = UNTRIED if record is None else record.diagnostic()
    for keys, admits in ((2, UNLIKE), (6, expected)) if name in SEQUENTIAL else ((2, expected),):
        sample = sample_of(counts.tolist(), 30_000, keys, levels=100 if keys == 2 else 3)
        fit = quick_chains(name).fit(sample, rng=np.random.default_rng(1))
        admitted = [check for check in fit.diagnostics if check.name == TRACK_RECORD]
        assert admitted == [admits]


@pytest.mark.parametrize(("records", "large"), [(1000, False), (10_000, True)])
def test_the_sequential_logit_has_a_record_for_each_size(records: int, large: bool) -> None:
    assert record_at(records) == shown_on_real_populations("sequential-logit", large=large)
