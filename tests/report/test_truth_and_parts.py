"""Claims of a model beside the truth, and the number of parts that its chains saw."""

from dataclasses import replace

import numpy as np
import pytest

from keyhole.report.against_truth import against_truth, calibration_in_words, spreads_in_words
from keyhole.report.content import compose
from keyhole.report.html import render_html
from keyhole.report.mixtures import mixtures_of
from keyhole.risk.compare import Comparison
from keyhole.risk.estimate import RecordRisk, RiskAssessment
from keyhole.risk.truth import Truth


def claiming(found: RiskAssessment, r1: list[float], r2: list[float]) -> RiskAssessment:
    return replace(found, records=RecordRisk(np.array(r1), np.array(r2), None, None))


def test_groups_of_records_show_what_was_claimed_and_what_is_true(everyday: Comparison) -> None:
    people = np.array([1] * 10 + [4] * 10)
    claims = claiming(everyday.assessments[0], [0.9] * 10 + [0.2] * 10, [0.95] * 10 + [0.4] * 10)
    found = against_truth(claims, Truth(10.0, 12.5, people))
    assert found is not None
    assert [(band.claimed, band.true, band.records) for band in found.r1] == [(0.2, 0.0, 2)] * 5 + [
        (0.9, 1.0, 2)
    ] * 5
    assert found.bands("r2")[0].true == pytest.approx(0.25)
    assert [(one.people, one.middle, one.true, one.records) for one in found.by_people] == [
        ("1", 0.95, 1.0, 10),
        ("4", 0.4, 0.25, 10),
    ]
    assert calibration_in_words(found.r1).startswith("2 records at 20%: 0% true; ")
    assert "4 people: middle 40%, half of the 10 records from 40% to 40%, true 25%" in spreads_in_words(
        found.by_people
    )


def test_without_truth_or_with_one_claim_for_all_nothing_is_compared(everyday: Comparison) -> None:
    claims = claiming(everyday.assessments[0], [0.5, 0.5], [0.6, 0.6])
    assert against_truth(claims, None) is None
    assert against_truth(claims, Truth(1.0, 1.5, np.array([1, 2]))) is None
    assert against_truth(None, Truth(1.0, 1.5, np.array([1, 2]))) is None


def with_parts(everyday: Comparison, values: list[float]) -> Comparison:
    first, *rest = everyday.assessments
    drawn = np.array(values).reshape(2, -1)
    return replace(everyday, assessments=(replace(first, draws={"clusters": drawn}), *rest))


def test_numbers_of_parts_are_counted(everyday: Comparison) -> None:
    (found,) = mixtures_of(with_parts(everyday, [3, 4, 4, 6]))
    assert (found.counted, found.begins, found.shares) == ("clusters", (3, 4, 5, 6), (0.25, 0.5, 0.0, 0.25))
    assert found.description == "3 clusters: 25%; 4 clusters: 50%; 6 clusters: 25%. On average 4.2."


def test_a_wide_spread_is_shown_by_steps(everyday: Comparison) -> None:
    (found,) = mixtures_of(with_parts(everyday, [1, 50, 90, 100]))
    assert found.step == 4
    assert sum(found.shares) == pytest.approx(1.0)
    assert found.description.startswith("1 to 4 clusters: 25%; ")


def test_one_number_of_parts_needs_no_picture(everyday: Comparison) -> None:
    assert mixtures_of(with_parts(everyday, [7, 7])) == ()


def test_both_are_in_the_page(everyday: Comparison) -> None:
    comparison = with_parts(everyday, [3, 4, 4, 6])
    chosen = comparison.chosen
    assert chosen is not None
    people = np.arange(chosen.sample.uniques) % 25 + 1
    r1 = np.linspace(0.1, 0.9, len(people))
    shown = tuple(
        replace(one, records=RecordRisk(r1, np.sqrt(r1), None, None)) if one is chosen else one
        for one in comparison.assessments
    )
    truth = Truth(float((people == 1).sum()), float((1 / people).sum()), people)
    page = render_html(
        compose(replace(comparison, assessments=shown), source="people.csv", command="keyhole", truth=truth)
    )
    for name in ("mixture-1", "kept-r1", "kept-r2", "kept-people"):
        assert f'aria-labelledby="{name}-wide-title"' in page
    assert "people in the cell, in truth" in page
