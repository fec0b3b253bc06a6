"""What a model admits of its past is what the table in the model guide shows."""

from pathlib import Path

import numpy as np
import pytest

from keyhole.inference.track_record import TRACK_RECORD, TrackRecord
from keyhole.models.catalogue import CATALOGUE, model_named
from tests.models.samples import typical_sample

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "model-guide.md"


def shown_in_the_guide(model: str) -> TrackRecord:
    """The record of a model, worked out again from the table of real populations."""
    errors, covered = [], 0
    for line in GUIDE.read_text().splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.split("|")[1:-1]]
        if len(cells) == 11 and cells[3] == model:
            estimate, truth = float(cells[4]), float(cells[6])
            low, high = map(float, cells[5].split("-"))
            errors.append(round(100 * (estimate / truth - 1)))
            covered += low <= truth <= high
    return TrackRecord(min(errors), max(errors), covered, len(errors))


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_admitted_record_is_the_measured_one(name: str) -> None:
    fit = model_named(name).fit(typical_sample(), rng=np.random.default_rng(1))
    admitted = [check for check in fit.diagnostics if check.name == TRACK_RECORD]
    assert admitted == [shown_in_the_guide(name).diagnostic()]
