"""Ranking, calibration and classification of single records, against slow counting."""

import numpy as np
import pytest

from keyhole.validation.measures import (
    TauMeasures,
    calibration_by_chance,
    calibration_error,
    calibration_points,
)
from keyhole.validation.per_record import (
    KAPPAS,
    calibration_bins,
    false_negatives,
    false_positives,
    missed_at,
    rank_auc,
)
from keyhole.validation.replicate import Interval


@pytest.fixture(params=[0, 1, 2])
def records(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    """Risks, rounded so that some are tied and some are thresholds, and who is alone."""
    rng = np.random.default_rng(request.param)
    r1 = rng.beta(0.5, 1.5, 80).round(2)
    return r1, rng.random(80) < r1


def test_auc_is_the_share_of_pairs_in_order(records: tuple[np.ndarray, np.ndarray]) -> None:
    r1, alone = records
    pairs = [(a > b) + (a == b) / 2 for a in r1[alone] for b in r1[~alone]]
    assert rank_auc(r1, alone) == pytest.approx(np.mean(pairs))
    assert rank_auc(r1, np.ones(80, dtype=bool)) is None


def test_errors_are_counted_on_the_right_side_of_each_threshold(records: tuple[np.ndarray, np.ndarray]) -> None:
    r1, alone = records
    wrong = [sum(r > kappa and not one for r, one in zip(r1, alone, strict=True)) for kappa in KAPPAS]
    missed = [sum(r < kappa and bool(one) for r, one in zip(r1, alone, strict=True)) for kappa in KAPPAS]
    assert list(false_positives(r1, alone)) == wrong
    assert list(false_negatives(r1, alone)) == missed


def test_the_curve_of_both_errors_has_the_area_of_the_ranks(records: tuple[np.ndarray, np.ndarray]) -> None:
    r1, alone = records
    fine = np.linspace(0, 1, 20_001)
    missed = missed_at(r1, alone, tuple(fine))
    assert np.trapezoid(missed, fine) == pytest.approx(1 - (rank_auc(r1, alone) or 0), abs=1e-4)
    assert missed[-1] == 0.0
    assert (np.diff(missed) <= 1e-9).all()
    assert missed_at(r1, np.zeros(80, dtype=bool)) == ()


def test_calibration_bins_hold_every_record_once(records: tuple[np.ndarray, np.ndarray]) -> None:
    r1, alone = records
    bins = calibration_bins(r1, alone)
    assert [size for size, _, _ in bins] == np.histogram(r1, np.arange(11) / 10 - 1e-9 * (np.arange(11) < 10))[
        0
    ].tolist()
    assert sum(risk for _, risk, _ in bins) == pytest.approx(r1.sum())
    assert sum(true for _, _, true in bins) == alone.sum()
    assert all(abs(risk - (low + 0.05)) < 0.06 for low, (risk, _, _) in _with_low(bins))


def _with_low(bins: tuple) -> list:
    return [(tenth / 10, (risk / size, true, size)) for tenth, (size, risk, true) in enumerate(bins) if size]


def test_calibration_error_is_near_chance_for_true_risks_and_not_for_others() -> None:
    rng = np.random.default_rng(3)
    r1 = rng.beta(0.4, 1.2, 20_000)
    right = calibration_bins(r1, rng.random(20_000) < r1)
    wrong = calibration_bins(r1, rng.random(20_000) < r1 * 0.8)
    assert calibration_error(right) < 2 * calibration_by_chance(right)
    assert calibration_error(wrong) > 5 * calibration_by_chance(wrong)
    assert len(calibration_points(right)) == 10


def test_errors_where_nobody_is_at_risk_are_not_passed_over() -> None:
    taus = [Interval(0.0, 0.0, 1.0, 0.0), Interval(2.0, 1.0, 3.0, 0.0), Interval(3.0, 1.0, 5.0, 2.0)]
    found = TauMeasures.of(taus)
    assert found.median_abs_relative_error == 0.5
    assert found.errors[-1] == np.inf
    assert found.coverage == pytest.approx(2 / 3)
    assert found.relative_bias == pytest.approx(1.5)


def test_the_median_of_an_even_number_of_errors_is_between_the_middle_two() -> None:
    found = TauMeasures.of([Interval(estimate, 0.0, 9.0, 1.0) for estimate in (2.0, 4.0, 5.0, 9.0)])
    assert found.errors[2] == found.median_abs_relative_error == 3.5
    assert (found.errors[1], found.errors[3]) == (2.5, 5.0)
