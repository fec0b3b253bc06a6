"""Several models side by side do not influence each other; the recommendation says why."""

from dataclasses import replace

import pytest

from keyhole.errors import NotConverged
from keyhole.inference.fit import IGNORED_WEIGHTS, Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.models.catalogue import model_named
from keyhole.risk.assess import assess_risk
from keyhole.risk.compare import _recommend, compare_models
from keyhole.risk.size_index_check import SizeIndexCheck
from tests.risk.samples import Geometric, random_sample

BOUNDARY = Diagnostic("sigma", 1.0, "untrusted", "The estimate lies on the boundary.")
UNWEIGHTED = Diagnostic(IGNORED_WEIGHTS, 0.4, "caution", "The weights vary and the model ignores them.")
GOOD = TrackRecord(-8, 12, covered=17, samples=18).diagnostic()
POOR = TrackRecord(23, 676, covered=2, samples=18).diagnostic()


def test_a_model_gives_the_same_numbers_alone_and_in_company() -> None:
    sample = random_sample()
    models = [Geometric((0.1,), name="first"), Geometric((0.3,), name="second")]
    together = compare_models(models, sample, seed=4)
    assert together.assessments[1].tau2 == assess_risk(models[1], sample, seed=4).tau2


def test_only_trusted_models_are_recommended() -> None:
    models = [Geometric(diagnostics=(BOUNDARY,), name="first"), Geometric(name="second"), Geometric(fails=True)]
    with pytest.warns(NotConverged):
        found = compare_models(models, random_sample())
    assert found.recommended == "second"
    assert found.chosen is not None
    assert found.chosen.model == "second"


def test_nothing_is_recommended_when_nothing_can_be_trusted() -> None:
    found = compare_models([Geometric(fails=True)], random_sample())
    assert (found.recommended, found.chosen) == (None, None)


def test_the_model_that_uses_weights_comes_first() -> None:
    models = [Geometric(diagnostics=(UNWEIGHTED,), name="first"), Geometric(name="weighted")]
    found = compare_models(models, random_sample())
    assert found.recommended == "weighted"
    assert "weights" in found.reason


def test_a_good_record_comes_before_the_fit_to_the_size_index() -> None:
    fitted = [model_named(name, draws=20) for name in ("pitman", "ewens")]
    found = compare_models([*fitted, Geometric(name="proven", diagnostics=(GOOD,))], random_sample())
    assert found.recommended == "proven"
    assert "from 8% too low to 12% too high, and 17 of 18 intervals covered the truth." in found.reason
    assert found.reason.endswith("No other model here has a record like it.")
    poor = compare_models([*fitted, Geometric(name="poor", diagnostics=(POOR,))], random_sample())
    assert poor.recommended in ("pitman", "ewens")


def test_nobody_stands_in_for_a_pool_that_cannot_be_trusted() -> None:
    found = [assess_risk(Geometric(name=name), random_sample()) for name in ("member", "other")]
    pool = replace(found[0], model="pool", members=(found[0],), status="not-converged")
    recommended, reason = _recommend([pool, found[1]], alone=False)
    assert recommended is None
    assert reason.startswith("pool cannot be trusted on this file")
    proven = assess_risk(Geometric(name="proven", diagnostics=(GOOD,)), random_sample())
    assert _recommend([pool, found[1], proven], alone=False)[0] == "proven"


def test_a_member_does_not_stand_in_for_a_pool_that_ran_alone() -> None:
    member = assess_risk(Geometric(name="member"), random_sample())
    pool = replace(member, model="pool", members=(member,), status="not-converged")
    assert _recommend([pool, member], alone=True)[0] is None


def test_one_without_a_criterion_makes_the_misfit_decide() -> None:
    found = [assess_risk(Geometric(name=name), random_sample()) for name in ("size index", "keys")]
    checks = [SizeIndexCheck(3.0, 100.0), SizeIndexCheck(0.9, None)]
    compared = [replace(one, size_index=check) for one, check in zip(found, checks, strict=True)]
    assert _recommend(compared, alone=False)[0] == "keys"


def test_models_without_a_criterion_are_chosen_by_their_misfit() -> None:
    found = [assess_risk(Geometric(name=name), random_sample()) for name in ("coarse", "near", "unknown")]
    checks = [SizeIndexCheck(26.0, None), SizeIndexCheck(2.5, None), None]
    compared = [replace(one, size_index=check) for one, check in zip(found, checks, strict=True)]
    recommended, reason = _recommend(compared, alone=False)
    assert recommended == "near"
    assert "misfit 2.5" in reason
    assert "deserves caution" in reason


def test_a_good_record_does_not_excuse_a_fit_that_cannot_be_trusted() -> None:
    models = [Geometric(name="proven", diagnostics=(GOOD, BOUNDARY)), Geometric(name="other")]
    with pytest.warns(NotConverged):
        assert compare_models(models, random_sample()).recommended == "other"


def test_of_two_good_records_the_one_that_uses_weights_comes_first() -> None:
    models = [
        Geometric(name="weighted"),
        Geometric(name="proven", diagnostics=(UNWEIGHTED, GOOD)),
        Geometric(name="both", diagnostics=(GOOD,)),
    ]
    found = compare_models(models, random_sample())
    assert found.recommended == "both"
    assert found.reason.endswith("It is the first with such a record.")
    assert compare_models(models[:2], random_sample()).recommended == "proven"


@pytest.mark.parametrize(("covered", "verdict"), [(20, "good"), (18, "good"), (17, "caution"), (0, "caution")])
def test_a_record_is_good_from_nine_in_ten_intervals(covered: int, verdict: str) -> None:
    found = TrackRecord(-30, -5, covered=covered, samples=20).diagnostic()
    assert (found.verdict, found.value) == (verdict, "-30% to -5%")
    assert f"5 to 30% too low, and {covered} of 20 intervals covered the truth" in found.words
    assert ("order of magnitude" in found.words) == (verdict == "caution")


def test_models_after_an_interrupted_one_are_not_run_and_named() -> None:
    stopped = Diagnostic("ending", "interrupted", "caution", "The run was interrupted.")
    models = [Geometric(name="a"), Geometric(diagnostics=(stopped,), name="b"), Geometric(name="c")]
    found = compare_models(models, random_sample())
    assert [one.model for one in found.assessments] == ["a", "b"]
    assert found.not_run == ("c",)
    assert found.interrupted
    assert compare_models(models[:1], random_sample()).not_run == ()
    assert not compare_models(models[:1], random_sample()).interrupted


def test_answers_stand_when_the_run_is_ended_within_the_next_model() -> None:
    models = [Geometric(name="a"), Geometric(stops=True, name="b"), Geometric(name="c")]
    found = compare_models(models, random_sample())
    assert [one.model for one in found.assessments] == ["a"]
    assert (found.not_run, found.recommended, found.interrupted) == (("b", "c"), None, True)
    assert found.reason == "The run was interrupted before b had an answer."
    with pytest.raises(KeyboardInterrupt):
        compare_models(models[1:], random_sample())


def test_answers_stand_when_the_run_is_ended_within_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*given: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("keyhole.risk.compare.nested_check", stop)
    models = [Geometric(name="a")]
    found = compare_models(models, random_sample(), subsampled=models)
    assert (found.recommended, found.not_run, found.interrupted) == ("a", (), True)
