"""The terminal summary fits its terminal, and says the same without colours."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.inference.track_record import TrackRecord
from keyhole.report.content import Report, compose
from keyhole.report.text import render_text
from keyhole.report.words import rounded
from keyhole.risk.compare import Comparison
from keyhole.risk.estimate import RiskEstimate
from keyhole.risk.truth import Truth


def rendered(report: Report, width: int = 100, *, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=terminal, color_system="standard" if terminal else None
    )
    render_text(report, console)
    return out.getvalue()


def printed(comparison: Comparison, width: int = 100, *, terminal: bool = False, **options: Any) -> str:
    report = compose(comparison, source="survey.csv", command="keyhole assess", **options)
    return rendered(report, width, terminal=terminal)


def test_the_summary_has_the_table_the_verdict_and_the_warnings(everyday: Comparison) -> None:
    truth = Truth(11.0, 41.5, np.arange(everyday.assessments[0].sample.uniques) % 30 + 1)
    text = printed(everyday, truth=truth, warnings=["AGE has very many levels."])
    for words in (
        "two-way *",
        "believe first",
        "not to be trusted",
        "failed",
        "truth",
        "Warning: AGE has very many",
    ):
        assert words in text
    assert "41.5" not in text
    assert text.index("records") < text.index("two-way *")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(everyday: Comparison, width: int) -> None:
    assert max(cell_len(line) for line in printed(everyday, width).splitlines()) <= width


def test_numbers_are_whole_at_eighty_columns(everyday: Comparison) -> None:
    text = printed(everyday, 80)
    tau1 = everyday.assessments[2].tau1
    assert tau1 is not None
    assert f"{tau1.estimate:.0f} ({tau1.low:.0f}-{tau1.high:.0f})" in text


def test_a_long_model_name_is_not_broken_at_eighty_columns(compared: Any, toy: Any) -> None:
    text = printed(compared(toy("poisson-inverse-gaussian", untrusted=True), toy("b")), 80)
    assert "poisson-inverse-gaussian " in text


def test_nothing_but_text_when_it_is_not_a_terminal(everyday: Comparison) -> None:
    assert "\x1b" not in printed(everyday)


def test_no_color_is_respected(everyday: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[33m" in printed(everyday, terminal=True, warnings=["Look."])
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in printed(everyday, terminal=True, warnings=["Look."])


def test_labels_are_neither_markup_nor_emoji_nor_escape_sequences(compared: Any, hostile: Any) -> None:
    text = printed(compared(on=hostile), warnings=["[bold]level[/bold] :smile: \x1b[31m"])
    assert "[bold]level[/bold] :smile:" in text
    assert "\x1b" not in text


def test_every_awkward_case_can_be_printed(compared: Any, sampled: Any, toy: Any) -> None:
    nobody = sampled([["a"]], ["A"], 10, 100)
    assert "No record is unique" in printed(compared(on=nobody))
    assert "could not be estimated" in printed(compared(toy(fails="No.")))
    assert "believe first" not in printed(compared(toy(fails="No.")))


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("number", [2_974_321.0, 9_999_999.0])
def test_large_numbers_results_and_the_mark_are_never_cut(
    compared: Any, toy: Any, width: int, number: float
) -> None:
    huge = RiskEstimate(number, number * 0.99, number, 0.95, 0.0, None)
    names = ("slide-negative-binomial", "poisson-inverse-gaussian", "benedetti-franconi")
    found = compared(*(toy(name, factor=factor) for name, factor in zip(names, (2.0, 1.0, 9.0), strict=True)))
    report = compose(found, source="survey.csv", command="keyhole assess")
    models = tuple(replace(one, tau1=huge, tau2=huge) for one in report.models)
    text = rendered(replace(report, models=models), width)
    table = text[text.index("model ") : text.index("* believe first")]
    assert "…" not in table
    assert "result" in table
    for part in ("binomial", "gaussian *", "franconi", rounded(number), rounded(number * 0.99), "fits", "passed"):
        assert part in table
    assert table.count(rounded(number * 0.99)) == 6
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_results_that_are_not_plain_are_explained(compared: Any, toy: Any) -> None:
    assert "Fits poorly, does not fit: it does not reproduce" in printed(compared(toy(factor=2.0)))
    assert "Not checked: " in printed(compared(toy()))
    plain = printed(compared(toy(factor=1.0)))
    assert "Not checked" not in plain
    assert "Fits poorly" not in plain


def test_a_good_record_is_told_once(compared: Any, toy: Any) -> None:
    good = TrackRecord(-8, 12, covered=17, samples=18).diagnostic()
    for models in ((toy(admits=(good,)),), (toy(admits=(good,)), toy("b"))):
        text = " ".join(printed(compared(*models)).split())
        assert text.count("17 of 18 intervals covered the truth") == 1


def test_the_keys_that_go_together_are_told_in_words(compared: Any, toy: Any, hostile: Any) -> None:
    text = " ".join(printed(compared(toy(dependent=True))).split())
    assert "How the keys go together. By model toy. The keys that go together most: AGE with SEX, " in text
    assert "2 three-way terms were added: AGE and SEX on REGION, SEX and REGION on JOB." in text
    assert "\x1b" not in printed(compared(toy(dependent=True), on=hostile))
    assert "go together" not in printed(compared(toy()))


def test_how_a_model_was_chosen_is_told_in_words(
    compared: Any, toy: Any, term_path: Any, lambda_path: Any
) -> None:
    searching = (toy("skinner-shlomo", path=term_path()), toy("lasso", path=lambda_path()), toy("b"))
    text = " ".join(printed(compared(*searching)).split())
    assert (
        "How skinner-shlomo was chosen. 7 terms were added; tau1 went from 310 to 92 along the path; "
        "the last two steps differ by 1.8%." in text
    )
    assert (
        "How lasso was chosen. 21 values of lambda were tried; tau1 went from 310 to 110 along the path; "
        "lambda 0.4 was chosen, with tau1 230, up to 4.3% from the steps beside it." in text
    )
    assert "How b was chosen" not in text
    assert "was chosen" not in printed(compared(toy(path=term_path(1))))


def test_hostile_candidates_stay_text(compared: Any, toy: Any) -> None:
    steps = tuple(PathStep(f"[bold]{i}\x1b[31m\u202e", float(i), 9.0 - i, 20.0, {}) for i in range(4))
    text = printed(compared(toy(path=ModelPath("lambda", steps, 1))))
    assert "[bold]1" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
