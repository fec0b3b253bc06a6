"""The page and the summary of a validation say what was found, also where little or nothing was."""

import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import CATALOGUE
from keyhole.report.json_result import to_text
from keyhole.report.validation_content import TOO_FEW, ValidationReport, compose_validation, keeps_level
from keyhole.report.validation_html import render_validation_html
from keyhole.report.validation_json import validation_json
from keyhole.report.validation_pictures import MOST_PANELS
from keyhole.report.validation_text import render_validation_text
from keyhole.validation.per_record import (
    calibration_bins,
    false_negatives,
    false_positives,
    missed_at,
    rank_auc,
)
from keyhole.validation.population import KnownPopulation
from keyhole.validation.replicate import Interval, Replicate, Trial
from keyhole.validation.study import EVERYBODY, Study, Validation

HOSTILE = "<script>alert('x')</script>"
VOID = {"meta", "br", "hr", "img", "link", "input", "use", "path"}
NAMES = tuple(CATALOGUE)[:14]


def replicate(seed: int, bias: float) -> Replicate:
    """An estimate with about this relative error of tau1, with an interval of 20 either side."""
    rng = np.random.default_rng(seed)
    r1 = rng.beta(0.5, 1.5, 120)
    alone = rng.random(120) < r1
    truth = float(alone.sum())
    estimate = truth * (1 + bias) + rng.normal()
    return Replicate(
        "ok", "", 1.5, 1.2, 500, 120, int(truth), truth + 9,
        Interval(estimate, estimate - 20, estimate + 20, truth), Interval(estimate + 9, 0.0, 99.0, truth + 9),
        3.0, rank_auc(r1, alone), calibration_bins(r1, alone), calibration_bins(r1, r1),
        false_positives(r1, alone), false_negatives(r1, alone), missed_at(r1, alone),
    )  # fmt: skip


def failed() -> Replicate:
    return Replicate("failed", f"No margin of {HOSTILE} is left.", 0.1, 0.1, 500, 120, 30, 40.0)


def validation(models: dict[str, float | None], planned: int | None = None, replicates: int = 3) -> Validation:
    """Models by their bias; None for one that fails."""
    keys = (KeyVariable(HOSTILE, ("a", "b", "c")), KeyVariable("B", ("x", "y")))
    people = KnownPopulation.from_codes(keys, np.random.default_rng(2).integers(0, (3, 2), (600, 2)))
    study = Study((500,), tuple(models), replicates=replicates)
    results = {
        Trial(EVERYBODY, 500, seed, name): failed() if bias is None else replicate(seed, bias)
        for name, bias in models.items()
        for seed in range(1, replicates + 1)
    }
    return Validation(study, people, results, planned or len(results))


def composed(found: Validation) -> ValidationReport:
    return compose_validation(found, source=f"{HOSTILE}.csv", command="keyhole validate x", warnings=["Odd keys."])


def summary(content: ValidationReport, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    render_validation_text(content, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class Page(HTMLParser):
    """Tags and text; closing tags must match the opening ones."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.text, self.open = list[str](), "", list[str]()
        self.ids = list[str]()
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_headline_names_the_size_of_its_error_and_doubts_have_a_reason() -> None:
    small = validation({"two-way": 0.02, "ewens": -0.9})
    study = replace(small.study, sizes=(500, 900))
    more = {replace(trial, size=900): replicate(trial.seed, 0.3) for trial in small.results}
    doubt = replace(replicate(1, 0.02), status="not-converged", verdict="R-hat is 1.3.")
    results = {**small.results, **more, Trial(EVERYBODY, 500, 1, "two-way"): doubt}
    content = composed(replace(small, study=study, results=results, planned=len(results)))
    assert re.match(r"two-way came nearest: median error of tau1 \d.*% with 500 records and 3", content.headline)
    assert "% with 900 records; 6 of 6 intervals" in content.headline
    assert "3 samples each of 500 and 900 records, " in content.summary[0]
    assert any("not to be trusted" in words for words in content.summary)
    assert content.doubts == ("two-way, n = 500: 1 fit; the first: R-hat is 1.3.",)
    assert content.failures == ()
    assert "Fits not to be trusted, and in all measures" in render_validation_html(content)


def test_many_samples_judge_intervals() -> None:
    content = composed(validation({"ewens": -0.9, "two-way": 0.02}, replicates=20))
    assert content.sizes[0].summary.endswith("as they claim for two-way.")


def test_models_are_told_from_the_nearest_to_the_one_that_failed() -> None:
    content = composed(validation({"ewens": -0.9, "two-way": 0.02, "pitman": None, "zayatz": 4.0}))
    assert [line.model for line in content.sizes[0].lines] == ["two-way", "zayatz", "ewens", "pitman"]
    assert content.headline.startswith("two-way came nearest")
    assert "3 of 3 intervals held" in content.headline
    assert content.sizes[0].summary.endswith(TOO_FEW)
    truth = float(content.sizes[0].lines[0].tau1.truth)  # type: ignore[union-attr]
    assert content.sizes[0].summary.startswith(f"On average {truth:.1f} records were unique in the population")
    assert "3 fits failed and are in no measure." in content.summary
    page = Page(render_validation_html(content))
    assert "script" not in page.tags
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("svg") == 12
    assert "3 (3 failed)" in page.text
    assert f"pitman, n = 500: 3 times: No margin of {HOSTILE} is left." in page.text
    assert "too few" in page.text
    words = summary(content, 80)
    assert "17% !" not in words
    assert re.search(r"ewens +3 +\d+% +\d+% !", words)
    assert all(len(line) <= 80 for line in words.splitlines())
    assert "bias" in summary(content, 120)


def test_fits_that_did_not_converge_are_named() -> None:
    whole = validation({"two-way": 0.02, "slide-negative-binomial": 0.5})
    some = {
        trial: replace(one, status="not-converged") if trial.model == "two-way" else one
        for trial, one in whole.results.items()
    }
    content = composed(replace(whole, results=some))
    assert "in all measures: two-way, n = 500: 3 fits" in " ".join(summary(content, 80).split())
    assert "3 (3 not converged)" in Page(render_validation_html(content)).text


def test_where_no_model_is_near_nobody_wins() -> None:
    """Models come in the order of what their sentence says; a third of the truth is as far as three times it."""
    content = composed(validation({"ewens": -0.9, "pitman": 1.8}))
    assert content.headline.startswith("No model came near; pitman did best: median error of tau1 1")
    assert re.search(
        r"did best: half of its errors were between \+1\d\d% and \+\d+% of tau1", content.sizes[0].summary
    )
    assert composed(validation({"pitman": 0.3})).sizes[0].summary.count("pitman came nearest") == 1


def test_models_that_were_not_begun_are_named() -> None:
    whole = validation({"two-way": 0.02, "ewens": 0.1})
    some = {trial: one for trial, one in whole.results.items() if trial.model == "two-way"}
    assert "Not begun: ewens." in composed(replace(whole, results=some)).summary
    assert not any("Not begun" in words for words in composed(replace(whole, planned=40)).summary)


def test_a_member_that_its_pool_answered_for_took_no_time_of_its_own() -> None:
    both, alone = (
        composed(validation(dict.fromkeys(names, 0.1))) for names in (("auto", "sequential-logit"), ("auto",))
    )
    assert both.seconds == alone.seconds == pytest.approx(4.5)


def test_what_is_not_there_is_said() -> None:
    whole = validation({"two-way": 0.02})
    part = composed(replace(whole, planned=40))
    assert any("3 of 40 fits" in words for words in part.summary)
    assert validation_json(replace(whole, planned=40))["status"] == "incomplete"
    assert validation_json(whole)["status"] == "ok"
    lost = validation({"pitman": None})
    assert validation_json(lost)["status"] == "failed"
    doubted = {trial: replace(one, status="not-converged") for trial, one in whole.results.items()}
    assert validation_json(replace(whole, results=doubted))["status"] == "not-converged"
    page = Page(render_validation_html(composed(lost)))
    assert page.tags.count("svg") == 0
    assert "No model gave an estimate" in page.text
    nothing = Validation(whole.study, whole.population, {}, 3)
    assert "No model gave an estimate" in Page(render_validation_html(composed(nothing))).text
    for found in (whole, lost, nothing):
        assert "NaN" not in to_text(validation_json(found))


def test_with_many_models_the_far_ones_have_no_panel_and_that_is_said() -> None:
    content = composed(validation({name: 0.1 * place for place, name in enumerate(NAMES)}))
    html = render_validation_html(content)
    assert len(NAMES) > MOST_PANELS
    assert f"The {len(NAMES) - MOST_PANELS} models with the largest errors of tau1 are left out" in html
    calibration = next(
        part for part in re.findall(r"<svg.*?</svg>", html, re.DOTALL) if "Calibration of r1" in part
    )
    shown = [name for name in NAMES if f">{name}<" in calibration]
    assert shown == list(NAMES[:MOST_PANELS])


@pytest.mark.parametrize(
    ("held", "number", "kept"), [(20, 20, True), (18, 20, True), (16, 20, False), (0, 1, True)]
)
def test_coverage_is_doubted_only_where_chance_would_not_explain_it(held: int, number: int, kept: bool) -> None:
    # P(at most 18, 16 of 20) at 95%: 0.26, 0.003; P(0 of 1) = 0.05.
    assert keeps_level(held / number, number) is kept


def test_the_json_tells_with_which_settings_each_model_was_tried() -> None:
    whole = validation({"pitman": 0.0, "independence": 0.1})
    found = replace(whole, study=replace(whole.study, options={"draws": 50}))
    results = validation_json(found)["results"]
    assert isinstance(results, list)
    assert {one["model"]: one["settings"]["draws"] for one in results} == {"pitman": 50, "independence": 50}
