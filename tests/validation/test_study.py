"""A validation finds a right model right, and a wrong one wrong."""

from dataclasses import replace

import numpy as np
import pytest

from keyhole.errors import InputError, UnknownModel
from keyhole.models.catalogue import CATALOGUE
from keyhole.report.validation_content import keeps_level
from keyhole.validation.measures import calibration_by_chance, calibration_error, measure
from keyhole.validation.replicate import Interval, Replicate
from keyhole.validation.study import Study, Validation, options_of, validate

from .people import people


@pytest.fixture(scope="module")
def found() -> Validation:
    """The model of independent keys, which is true here, and one that takes all uniques for alike."""
    return validate(Study((400,), ("independence", "ewens"), replicates=16), people(8000))


def test_the_true_model_has_no_bias_and_keeps_its_intervals(found: Validation) -> None:
    right = next(one for one in found.measures if one.model == "independence")
    assert right.tau1 is not None
    assert right.tau2 is not None
    taus = [one.tau1 for trial, one in found.results.items() if trial.model == "independence" and one.tau1]
    error = np.array([tau.estimate - tau.truth for tau in taus])
    assert abs(error.mean()) < 4 * error.std(ddof=1) / np.sqrt(len(error))
    for tau in (right.tau1, right.tau2):
        assert keeps_level(tau.coverage, right.replicates)
    assert calibration_error(right.calibration_r1) < 2.5 * calibration_by_chance(right.calibration_r1)
    assert (right.auc_r1 or 0) > 0.7


def test_the_model_that_cannot_tell_records_apart_ranks_by_chance(found: Validation) -> None:
    other = next(one for one in found.measures if one.model == "ewens")
    assert other.auc_r1 == 0.5
    assert np.allclose(other.missed, 1 - np.linspace(0, 1, 51), atol=1e-5)


def test_a_model_made_wrong_on_purpose_is_found_out(found: Validation) -> None:
    def halved(one: Replicate) -> Replicate:
        assert one.tau1 is not None
        tau = one.tau1
        bins = tuple((size, risk / 2, true) for size, risk, true in one.calibration_r1)
        return replace(
            one, tau1=Interval(tau.estimate / 2, tau.low / 2, tau.high / 2, tau.truth), calibration_r1=bins
        )

    wrong = {trial: halved(one) for trial, one in found.results.items() if trial.model == "independence"}
    (bad,) = measure(wrong)
    assert bad.tau1 is not None
    assert bad.tau1.relative_bias < -0.3
    assert not keeps_level(bad.tau1.coverage, bad.replicates)
    assert calibration_error(bad.calibration_r1) > 2.5 * calibration_by_chance(bad.calibration_r1)


def test_options_go_to_the_models_that_have_them() -> None:
    own = options_of(("pitman", "two-way"), {"draws": "300"})
    assert own["pitman"] == {"draws": "300"}
    assert "draws" in CATALOGUE["two-way"].options or own["two-way"] == {}
    with pytest.raises(UnknownModel, match="colour"):
        options_of(("pitman", "two-way"), {"colour": "red"})
    with pytest.raises(UnknownModel, match="pitmann"):
        Study((10,), ("pitmann",)).trials()
    with pytest.raises(InputError, match="at least one"):
        Study((), ("pitman",))
    assert {trial.model for trial in Study((10,), ("all",), replicates=1).trials()} == set(CATALOGUE)


def test_what_cannot_be_drawn_or_told_is_refused_before_any_work() -> None:
    everybody = people(600)
    for size in (601, 0):
        with pytest.raises(InputError, match=f"A sample of {size} records"):
            validate(Study((300, size), ("pitman",), replicates=1), everybody)
    with pytest.raises(InputError, match="generators must be a text or a number, found list"):
        Study((300,), ("loglinear",), options={"generators": ["A*B"]})


def test_a_size_that_is_asked_for_twice_counts_once() -> None:
    found = validate(Study((300, 200, 300), ("benedetti-franconi",), replicates=2), people(600))
    assert found.study.sizes == (200, 300)
    assert (found.planned, found.complete, found.status) == (4, True, "ok")
