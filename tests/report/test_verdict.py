"""The verdict says what is known, and what is not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from keyhole.errors import InputError
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TRACK_RECORD, TrackRecord
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.report.agreement import HOPELESS_FIT, POOR_FIT, misfit_figure
from keyhole.report.content import Report, compose
from keyhole.report.words import rounded
from keyhole.risk.compare import Comparison
from keyhole.risk.truth import Truth
from keyhole.table.contingency import ContingencyTable

GOOD = TrackRecord(-8, 12, covered=17, samples=18).diagnostic()


def report_of(comparison: Comparison, **options: Any) -> Report:
    return compose(comparison, source="survey.csv", command="keyhole assess survey.csv", **options)


def told(report: Report) -> str:
    points = [f"{point.topic}: {point.words}" for point in report.verdict.points]
    return " ".join([report.verdict.headline, *report.verdict.summary, *points])


def point(report: Report, topic: str) -> str:
    return next(found.words for found in report.verdict.points if found.topic == topic)


def test_the_verdict_begins_with_the_number_and_its_interval(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy("two-way", mean=1.0, uneven=True, factor=1.0)))
    chosen = report.chosen
    assert chosen is not None
    assert chosen.tau1 is not None
    assert f"About {chosen.tau1.estimate:.0f} of the 600 records" in report.verdict.headline
    assert f"By model two-way, about {chosen.tau1.estimate:.0f} of them (95% interval: " in told(report)
    assert f"{chosen.tau1.low:.0f} to {chosen.tau1.high:.0f}) are unique" in told(report)
    assert "would be right about" in told(report)


def test_the_chance_of_a_right_match_is_tau2_over_the_uniques(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy(mean=1.0)))
    assert "would be right about 63% of the time" in told(report)  # 1 - exp(-1)


def test_no_uniques_is_no_risk(compared: Any, sampled: Any, toy: Any) -> None:
    pairs = sampled([["a"], ["x"]], ["A", "B"], 10, 100)
    report = report_of(compared(toy(), toy("b", fails="There is nothing to fit."), on=pairs))
    assert report.verdict.headline == "No record is unique on these keys."
    assert "both measures of risk are 0" in told(report)
    assert report.distribution is None
    assert report.drivers is None


def test_a_census_needs_no_estimate(compared: Any, sample: Sample, toy: Any) -> None:
    census = replace(sample, population_size=sample.sample_size)
    report = report_of(compared(toy(), on=census))
    assert report.verdict.headline == f"{sample.uniques} records are unique, for certain."
    assert "holds the whole population" in told(report)
    assert "gives every unique record the same chance" not in told(report)
    assert "What would help most" in told(report)


def test_everyone_unique_is_a_warning_about_the_keys(compared: Any, sampled: Any, toy: Any) -> None:
    identifiers = sampled([[str(i) for i in range(9)]] * 30, [f"K{j}" for j in range(30)], 200, 4000)
    assert identifiers.uniques == 200
    report = report_of(compared(toy(), on=identifiers))
    assert "Every one of the 200 records is unique on these 30 keys." in told(report)
    assert report.verdict.headline.startswith("Every record is unique on these keys; by model toy, about")
    assert "rests on the form of the model alone" in told(report)


def test_one_unique_record_is_spoken_of_in_the_singular(compared: Any, sample: Sample, toy: Any) -> None:
    counts = np.maximum(sample.table.counts, 2)
    counts[4] = 1
    lonely = replace(sample, table=replace(sample.table, counts=counts))
    report = report_of(compared(toy(mean=0.1), on=lonely))
    assert "1 (0.1%) is unique on" in told(report)
    assert "(0.1%) is expected to be unique in the population." in report.verdict.headline
    assert "alike" not in told(report)


def test_almost_no_risk_is_not_called_zero(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy(mean=30.0)))
    assert report.verdict.headline == "Probably none of the 600 records is unique in the population."
    assert "fewer than one of them" in told(report)
    assert "What would help most" not in told(report)


def test_models_that_treat_every_unique_alike_are_named(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy("pitman", mean=1.0)))
    assert "gives every unique record the same chance, 37%," in point(report, "Who is exposed")
    assert report.distribution is not None
    assert report.distribution.same == pytest.approx(np.exp(-1.0))


def test_models_that_differ_say_how_many_are_exposed(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy(uneven=True)), kappa1=0.8, kappa2=0.2)
    assert report.distribution is not None
    classes = report.distribution.classes
    assert f"{classes.risky} records have a chance above 80%" in point(report, "Who is exposed")
    assert f"For {classes.safe} the chance is below 20%" in point(report, "Who is exposed")
    assert sum(report.distribution.counts) == report.data.sample_uniques


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ((1.05,), "agree closely"),
        ((1.5,), "agree roughly"),
        ((3.0,), "disagree"),
        ((), "Only one model was run"),
    ],
)
def test_the_verdict_says_how_far_models_agree(
    compared: Any, toy: Any, others: tuple[float, ...], words: str
) -> None:
    models = [toy("a", mean=1.0), *(toy(f"b{mean}", mean=mean) for mean in others)]
    report = report_of(compared(*models))
    assert words in point(report, "How far models agree")
    assert ("the models disagree" in report.verdict.headline) == (words == "disagree")


def test_a_model_that_does_not_fit_does_not_count(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy("good", mean=1.0, factor=1.0), toy("bad", mean=4.0, factor=9.0)))
    assert "Only one of the models run can be used" in point(report, "How far models agree")
    assert "Left aside, for fitting the file far worse than good: bad" in point(report, "How far models agree")
    assert [model.result for model in report.models] == ["passed its checks", "does not fit"]
    assert [model.doubtful for model in report.models] == [False, True]


@pytest.mark.parametrize(("factor", "words"), [(2.0, "fits poorly"), (9.0, "does not fit")])
def test_a_poor_fit_takes_the_confidence_out_of_the_headline(
    compared: Any, toy: Any, factor: float, words: str
) -> None:
    report = report_of(compared(toy(factor=factor)))
    assert report.verdict.headline.startswith("Perhaps")
    assert report.verdict.headline.endswith(f"by a model that {words}.")
    assert report.models[0].result == words
    assert "does not reproduce well" in point(report, "Fit")


def test_agreement_of_models_that_fit_poorly_proves_little(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy("a", factor=2.0), toy("b", factor=2.1)))
    assert "they may err together" in point(report, "How far models agree")


def test_models_that_cannot_be_trusted_are_named_with_the_reason(everyday: Comparison) -> None:
    report = report_of(everyday)
    assert "The chains have not met." in point(report, "Not to be trusted: hdp")
    assert "The table has too few cells to fit." in point(report, "Not to be trusted: lancaster")


def test_without_a_trusted_model_nothing_is_claimed(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy("a", untrusted=True), toy("b", fails="No maximum was found.")))
    assert report.verdict.headline.startswith("The risk could not be estimated")
    assert "all of them may be" in told(report)
    assert report.distribution is None
    assert report.drivers is not None
    assert report.drivers.model is None
    assert "of the unique records" in point(report, "What would help most")


def test_a_run_that_was_interrupted_too_early_says_so_first(compared: Any, toy: Any) -> None:
    ended = replace(compared(toy("a")), recommended=None, not_run=("auto", "b"), interrupted=True)
    headline = report_of(ended).verdict.headline
    assert headline == "The risk could not be estimated: the run was interrupted before auto had an answer."


def test_the_truth_stands_beside_the_estimate(compared: Any, toy: Any, sample: Sample) -> None:
    comparison = compared(toy(mean=1.0))
    inside = Truth(round(comparison.assessments[0].tau1.estimate), 50.0, np.ones(sample.uniques, dtype=np.int64))
    assert "inside the interval" in point(report_of(comparison, truth=inside), "The truth")
    outside = replace(inside, tau1=1.0)
    words = point(report_of(comparison, truth=outside), "The truth")
    assert "1 record of the file in truth is unique in it, outside the interval" in words


def test_the_remedy_is_the_key_that_takes_most_away(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy()))
    assert report.drivers is not None
    best = report.drivers.keys[0]
    assert point(report, "What would help most").startswith(f"Dropping {best.key} would hide")


def test_a_remedy_says_that_it_may_do_more_than_is_counted(compared: Any, toy: Any) -> None:
    words = point(report_of(compared(toy())), "What would help most")
    assert "at least" in words
    assert words.endswith("to see all of it.")


def test_the_only_key_is_not_to_be_dropped(compared: Any, sampled: Any, toy: Any) -> None:
    ages = sampled([[str(i) for i in range(60)]], ["AGE"], 400, 4000)
    report = report_of(compared(toy(mean=0.5), on=ages))
    assert "Dropping" not in told(report)
    assert "Coarsening AGE (neighbouring levels joined in pairs) would hide" in told(report)


def test_impossible_thresholds_are_refused(compared: Any, toy: Any) -> None:
    with pytest.raises(InputError, match="thresholds"):
        report_of(compared(toy(fails="No.")), kappa1=0.1, kappa2=0.5)


def test_the_chance_of_a_right_match_names_its_model(compared: Any, toy: Any) -> None:
    assert "By model toy, an intruder who finds one of these" in told(report_of(compared(toy(mean=1.0))))


def test_models_that_disagree_give_a_range_of_chances_too(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy("a", mean=1.0), toy("b", mean=3.0)))
    assert report.verdict.apart
    assert "from 32% to 63% of the time, depending on the model (63% by model a)" in told(report)
    assert "right about" not in told(report)


def test_a_doubtful_model_is_quoted_with_perhaps(compared: Any, toy: Any) -> None:
    rough = Diagnostic(TRACK_RECORD, "-26% to +49%", "caution", "It erred by half.")
    for model in (toy(mean=1.0, factor=2.0), toy(mean=1.0, factor=1.0, admits=(rough,))):
        words = told(report_of(compared(model)))
        assert "By model toy, perhaps 33 of them" in words
        assert "right perhaps 63% of the time" in words


def test_near_certainty_is_not_called_about(compared: Any, toy: Any) -> None:
    words = told(report_of(compared(toy(mean=1e-7))))
    assert "would be right more than 99% of the time." in words


def test_a_range_from_nothing_is_an_upper_end(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy("a", mean=2.0), toy("b", mean=12.0)))
    assert report.verdict.headline.startswith("Up to 12 of the 600 records may be unique")
    assert "by more than a factor of 100" in point(report, "How far models agree")


def test_the_remedy_speaks_of_an_expected_number(compared: Any, toy: Any) -> None:
    words = point(report_of(compared(toy())), "What would help most")
    assert "of the expected number of population uniques (" in words
    assert "probably" not in words


def test_an_identifier_is_to_be_dropped_not_coarsened(compared: Any, toy: Any, sample: Sample) -> None:
    keys = (KeyVariable("id", tuple(str(i) for i in range(50))), KeyVariable("AGE", ("a", "b", "c")))
    codes = np.stack([np.arange(50), np.arange(50) % 3], axis=1)
    report = report_of(compared(toy(mean=0.5), on=Sample(ContingencyTable.from_codes(keys, codes), 1000)))
    words = point(report, "What would help most")
    assert words.startswith("Dropping id would hide nearly all")
    assert "id has nearly as many levels as there are records: drop it" in words
    assert "oarsening id" not in words
    assert report.drivers is not None
    assert report.drivers.keys[0].coarsened is None
    alone = report_of(compared(toy(), on=Sample(ContingencyTable.from_codes(keys[:1], codes[:, :1]), 1000)))
    assert point(alone, "What would help most").startswith("id has nearly as many levels")


def test_only_one_record_is_no_every_one(compared: Any, toy: Any, sampled: Any) -> None:
    words = told(report_of(compared(toy(mean=1.0), on=sampled([["a", "b"]], ["A"], 1, 9))))
    assert words.startswith("The file holds one record, unique by definition; its chance")
    assert "The only record of the file is unique on this key (A)." in words
    assert "1 records" not in words
    assert "Every one" not in words


def test_no_pairs_are_not_counted(compared: Any, sampled: Any) -> None:
    words = told(report_of(compared(on=sampled([["a"]], ["A"], 10, 100))))
    assert "0 combinations" not in words
    assert "one more variable" in words


@pytest.mark.parametrize("misfit", [1.951, 1.9999, 2.0, 2.049, 9.96, 10.04])
def test_a_misfit_reads_on_the_side_of_the_limit_where_it_is(misfit: float) -> None:
    shown = float(misfit_figure(misfit))
    assert (shown >= POOR_FIT, shown >= HOPELESS_FIT) == (misfit >= POOR_FIT, misfit >= HOPELESS_FIT)


def test_a_model_without_a_check_of_fit_did_not_pass_it(compared: Any, toy: Any) -> None:
    doubt = Diagnostic("doubt", 1, "caution", "Hm.")
    report = report_of(compared(toy("a"), toy("b", admits=(doubt,)), toy("c", factor=1.0)))
    assert [model.result for model in report.models] == [
        "not checked against the file",
        "not checked against the file; use with caution",
        "passed its checks",
    ]
    assert "that count" not in point(report, "How far models agree")


def test_a_good_record_takes_the_perhaps_out_of_the_verdict(compared: Any, toy: Any) -> None:
    report = report_of(compared(toy("proven", mean=1.0, uneven=True, admits=(GOOD,)), toy("b", mean=9.0)))
    assert report.recommended == "proven"
    assert report.verdict.headline.startswith("About ")
    assert report.verdict.headline.endswith("expected to be unique in the population.")
    assert "erhaps" not in told(report)
    assert "rough guide" not in told(report)
    assert "17 of 18 intervals covered the truth" in point(report, "How far to believe it")
    assert report.models[0].result == "held on real samples"


def test_beside_a_good_record_the_others_do_not_count(compared: Any, toy: Any) -> None:
    others = [toy("low", mean=6.0), toy("high", mean=0.1, factor=1.0)]
    report = report_of(compared(toy("proven", mean=1.0, admits=(GOOD,)), *others))
    assert not report.verdict.apart
    assert "disagree" not in told(report)
    low, high = (f"{model.model} ({rounded(model.tau1.estimate)})" for model in report.models[1:])
    words = point(report, "How far models agree")
    assert words.startswith(f"The other models have no weight in this verdict: {low} and {high} were never tried")
    without = report_of(compared(toy("proven", mean=1.0), *others))
    assert without.verdict.apart


def test_two_good_records_can_disagree(compared: Any, toy: Any) -> None:
    models = [toy("a", mean=1.0, admits=(GOOD,)), toy("b", mean=3.0, admits=(GOOD,))]
    assert "The 2 models with a good record disagree" in point(
        report_of(compared(*models)), "How far models agree"
    )


def test_a_good_record_alone_needs_no_company(compared: Any, toy: Any) -> None:
    proven = toy("proven", admits=(GOOD,))
    words = point(report_of(compared(proven)), "How far models agree")
    assert words.startswith("Only one model was run. Its record on real populations")
    failed = point(report_of(compared(proven, toy("b", fails="No."))), "How far models agree")
    assert failed.startswith("Only one model of those run can be used.")


def test_a_good_record_does_not_hide_a_doubt_about_this_file(compared: Any, toy: Any) -> None:
    doubt = Diagnostic("allowance", 0.4, "caution", "This file is of another kind.")
    report = report_of(compared(toy("proven", admits=(GOOD, doubt)), toy("b")))
    assert point(report, "What raises a doubt here") == "This file is of another kind."
    assert report.models[0].result == "use with caution"
    words = next(one.words for one in report.assumptions if one.topic == "What the intervals contain")
    assert "How often the intervals of proven covered the truth" in words
