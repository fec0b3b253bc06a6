"""The pages on synthetic files say what was found, and name nobody unless they are told to."""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from keyhole.inference.fit import Diagnostic
from keyhole.keys.variable import KeyVariable
from keyhole.report.json_result import to_text
from keyhole.report.synthetic_content import BARS, MOST_LISTED, SyntheticReport, compose_synthetic
from keyhole.report.synthetic_html import render_synthetic_html
from keyhole.report.synthetic_json import synthetic_json
from keyhole.report.synthetic_text import render_synthetic_text
from keyhole.report.utility_content import UtilityReport, compose_utility
from keyhole.report.utility_html import render_utility_html
from keyhole.synthesis.importance import CopyWeights
from keyhole.synthesis.matched_records import MatchRisk
from keyhole.synthesis.risk_result import Combinations, CurvePoint, SyntheticRisk
from keyhole.synthesis.utility_propensity import PropensityUtility
from keyhole.synthesis.utility_regression import Coefficient, CoefficientEstimate, RegressionUtility
from keyhole.synthesis.utility_tables import TableUtility

HOSTILE = "<script>alert('x')</script>"
NAMESPACES = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink")
VOID = {"meta", "br", "hr", "img", "link", "input", "use", "path"}
WHEN = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
GOOD = Diagnostic("rhat", 1.003, "good", "Chains agree.")
BAD = Diagnostic("rhat", 1.4, "untrusted", "Chains do not agree.")


class Page(HTMLParser):
    """Tags and text; closing tags must match the opening ones."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.open = "", list[str]()
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def keys_named(*names: str, levels: str = "zq-{name}-{level}") -> tuple[KeyVariable, ...]:
    return tuple(
        KeyVariable(name, tuple(levels.format(name=place, level=level) for level in range(3)))
        for place, name in enumerate(names)
    )


KEYS = keys_named("AGE", "SEX", "JOB")


def combinations(number: int = 27, candidates: int = 7, seed: int = 1) -> Combinations:
    """Combinations of three keys with three levels; one has a chance of 0.6, two come first."""
    rng = np.random.default_rng(seed)
    probability = rng.uniform(0.05, 0.2, number)
    probability[4] = 0.6
    rank = rng.integers(4, candidates + 1, number)
    rank[[4, 7]], rank[9] = 1, 3
    return Combinations(
        cells=np.stack(np.unravel_index(np.arange(number) % 27, (3, 3, 3)), axis=1).astype(np.int32),
        counts=1 + np.arange(number) % 3,
        probability=probability,
        error=np.full(number, 0.004),
        rank=rank,
        before=np.full(number, 1 / candidates),
        candidates=np.full(number, candidates),
        needed=np.where(rank == 1, 1.0, rank / 2.0),
        khat=np.full(number, 0.2),
        learned=np.full(number, 0.7),
        learned_before=np.full(number, 0.5),
        known=np.minimum(1.0, 1.5 * probability),
    )


def made_up(found: Combinations | None = None, *, even: bool = False, **changes: Any) -> SyntheticRisk:
    """A result whose importance weights are hopeless, unless ``even``."""
    rng = np.random.default_rng(2)
    log_weight = np.zeros((3, 100)) if even else 40 * rng.standard_normal((3, 100))
    risk = SyntheticRisk(
        copies=3,
        records=54,
        support="one-change",
        estimator="bridge",
        prior="uniform",
        combinations=found or combinations(),
        weights=CopyWeights(log_weight),
        by_copies=tuple(CurvePoint(m, 0.13 + 0.01 * m, 0.2 * m, m) for m in (1, 2, 3)),
        by_records=(CurvePoint(20, 0.13, 0.3, 1), CurvePoint(40, 0.14, 0.5, 2)),
        diagnostics=(GOOD,),
    )
    return replace(risk, **changes)


MATCHES = MatchRisk(0.05, 9, 4, 0.11, 0.6, 0.5, 0.7, 0.5, 0.65, 8)


def composed(risk: SyntheticRisk | None = None, **changes: Any) -> SyntheticReport:
    options: dict[str, Any] = {
        "matches": MATCHES,
        "target": "JOB",
        "keys": KEYS,
        "source": "survey.csv",
        "copies_from": "copies",
        "command": "keyhole synthetic-risk survey.csv --synthetic copies",
        "seed": 7,
        "show_combinations": False,
        "external": False,
        "when": WHEN,
    }
    return compose_synthetic(risk or made_up(), **{**options, **changes})


def printed(content: SyntheticReport, width: int = 100) -> str:
    out = io.StringIO()
    render_synthetic_text(content, Console(file=out, width=width, color_system=None))
    return out.getvalue()


def words_of(text: str) -> str:
    return " ".join(text.split())


def assert_self_contained(html: str) -> None:
    rest = html
    for namespace in NAMESPACES:
        rest = rest.replace(f'="{namespace}"', "")
    assert not re.search(r"https?:|//[a-z]|@import|url\(|javascript:", rest)
    page = Page(html)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "img", "form", "base", "audio", "video"}
    policy = next(one for tag, one in page.tags if tag == "meta" and "http-equiv" in one)
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("src", "srcset", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
            if name in attributes:
                assert str(attributes[name])[1:] in ids
        for name in ("aria-labelledby", "aria-describedby"):
            assert all(target in ids for target in str(attributes.get(name) or "").split())
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_verdict_says_the_numbers() -> None:
    content = composed()
    assert content.verdict.headline == "For 1 of 27 combinations the copies make the truth more likely than not."
    sentence = (
        "Of 27 combinations, an intruder who knows every other record would put the true one first for 2; its "
        "chance is at most 60%, against 14% before the copies."
    )
    assert sentence in content.verdict.summary
    html = render_synthetic_html(content)
    assert sentence in words_of(Page(html).text)
    assert sentence in words_of(printed(content))


def test_a_prior_that_differs_is_that_of_the_same_combination() -> None:
    found = combinations()
    before = np.where(np.arange(27) == 4, 0.31, 0.1)
    text = " ".join(composed(made_up(replace(found, before=before))).verdict.summary)
    assert "at most 60%, against 31% for the same combination before the copies." in text


@pytest.mark.parametrize(("times", "words"), [(1.5, "For no combination"), (2.5, "For 27 of 27 combinations")])
def test_the_headline_looks_at_what_the_copies_add(times: float, words: str) -> None:
    found = replace(combinations(candidates=20), probability=np.full(27, times / 20))
    assert composed(made_up(found)).verdict.headline.startswith(words)


def test_what_is_not_trusted_says_so_first() -> None:
    content = composed(made_up(diagnostics=(BAD, GOOD)))
    assert content.verdict.headline == "These numbers are not to be relied on."
    assert content.verdict.summary[0] == "Chains do not agree."
    for text in (Page(render_synthetic_html(content)).text, printed(content)):
        assert text.index("not to be relied on") < text.index("Of 27 combinations")


def test_single_combinations_that_are_not_trusted_are_counted_and_marked() -> None:
    khat = np.where(np.isin(np.arange(27), (4, 5)), 0.9, 0.1)
    content = composed(made_up(replace(combinations(), khat=khat)))
    assert (content.untrusted_combinations, content.untrusted_records) == (2, 2 + 3)
    assert "The chances of 2 combinations, held by 5 records" in " ".join(content.verdict.summary)
    assert [line.trusted for line in content.lines[:2]] == [False, True]
    assert '<span class="tag">not to be relied on</span>' in render_synthetic_html(content)


def test_combinations_are_named_only_if_that_is_wanted() -> None:
    labels = [label for key in KEYS for label in key.levels]
    hidden = composed()
    for text in (
        render_synthetic_html(hidden),
        printed(hidden),
        repr(hidden),
        to_text(synthetic_json(made_up(), MATCHES, 7)),
    ):
        assert not [label for label in labels if label in text]
    shown = composed(show_combinations=True)
    first = shown.lines[0].levels
    assert first == (("AGE", "zq-0-0"), ("SEX", "zq-1-1"), ("JOB", "zq-2-1"))
    html = render_synthetic_html(shown)
    assert all(label in html for _, label in first)
    assert "Keep this page as safe as the file itself." in html
    assert not [label for label in labels if label in printed(shown)]


def test_numbers_of_combinations_do_not_tell_their_place_in_the_file() -> None:
    assert [line.number for line in composed().lines] == list(range(1, 11))


def test_the_table_is_in_order_and_says_what_is_left_out() -> None:
    lines = composed().lines
    assert [line.rank for line in lines[:3]] == [1, 1, 3]
    assert lines[0].probability == 0.6
    assert lines[0].times == pytest.approx(0.6 * 7)
    crowd = replace(combinations(200), rank=np.ones(200, dtype=np.int64))
    content = composed(made_up(crowd))
    assert (len(content.lines), content.listed_all) == (MOST_LISTED, False)
    assert "200 are among the first 3, of which 50 are listed" in words_of(
        Page(render_synthetic_html(content)).text
    )


def test_hostile_labels_stay_labels() -> None:
    keys = keys_named(
        HOSTILE, "a & b {{ 7 * 7 }}", "x\x1b[31m\u202e", levels=HOSTILE + "{name}{level}[bold]:smile:"
    )
    content = composed(
        keys=keys, show_combinations=True, target=HOSTILE, learns=[HOSTILE], source='"><script>x</script>',
        copies_from="<b>", command="<svg onload=x>", warnings=["</style><script>", "[bold]x[/bold]"],
    )  # fmt: skip
    html = render_synthetic_html(content)
    assert_self_contained(html)
    page = Page(html)
    assert "b" not in {tag for tag, _ in page.tags}
    assert HOSTILE in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "[bold]x[/bold]" in printed(content)


def test_the_importance_sampler_is_never_praised_where_it_fails() -> None:
    content = composed()
    assert not content.importance.trusted
    assert (
        "Its answers are not to be relied on, and nothing on this page comes from it." in content.importance.words
    )
    assert "Here it has them" not in render_synthetic_html(content)
    assert "k-hat up to 15.7: not to be relied on, not used." in words_of(printed(content))
    used = composed(made_up(estimator="importance", diagnostics=(GOOD, BAD)))
    assert "the chances on this page, are not to be relied on" in used.importance.words
    assert "The chance of no combination is to be relied on." in used.verdict.summary
    even = composed(made_up(even=True))
    assert even.importance.trusted
    assert "Here it has them." in even.importance.words
    assert "enough to go by, not used." in words_of(printed(even))
    assert "relied on" not in even.importance.words


def test_copies_from_elsewhere_come_with_their_assumption() -> None:
    words = "assume that they were drawn from a latent class model of the file"
    content = composed(external=True)
    for text in (Page(render_synthetic_html(content)).text, words_of(printed(content))):
        assert words in text
    assert words not in render_synthetic_html(composed())


@pytest.mark.parametrize("candidates", [1, 7, 35, 41, 650, 20_000])
@pytest.mark.parametrize("top", [0.6, 0.019, 1.0, 1e-6, 0.0])
def test_histograms_hold_every_combination_once(candidates: int, top: float) -> None:
    rng = np.random.default_rng(3)
    found = replace(
        combinations(),
        rank=rng.integers(1, candidates + 1, 27),
        candidates=np.full(27, candidates),
        probability=np.linspace(0, top, 27),
        before=np.full(27, min(top, 1 / candidates)),
    )
    content = composed(made_up(found))
    ranks, chances = content.ranks, content.chances
    assert sum(ranks.counts) == sum(chances.counts) == 27
    assert len(ranks.counts) == len(ranks.begins) <= BARS
    assert len(chances.counts) == len(chances.edges) - 1 <= BARS
    assert chances.edges[-1] >= top - 1e-6
    for low, high, number in zip(chances.edges[:-1], chances.edges[1:], chances.counts, strict=True):
        inside = (found.probability >= low - 1e-9) & (found.probability <= high + 1e-9)
        assert number <= inside.sum()
    if ranks.step == 1:
        assert ranks.counts[0] == (found.rank == 1).sum()


def test_the_page_is_self_contained_and_has_its_parts() -> None:
    html = render_synthetic_html(composed(warnings=["AGE is fine."], learns=["AGE", "SEX"]))
    assert_self_contained(html)
    page = Page(html)
    assert [one["id"] for tag, one in page.tags if tag == "section"] == [
        "verdict", "spread", "combinations", "curves", "others", "importance", "matches", "diagnostics",
        "provenance",
    ]  # fmt: skip
    drawn = [str(one["aria-labelledby"]) for tag, one in page.tags if tag == "svg"]
    assert [name.removesuffix("-wide-title") for name in drawn if "-wide-" in name] == [
        "ranks", "chances", "by-copies", "by-records",
    ]  # fmt: skip
    heads = [one for tag, one in page.tags if tag == "th"]
    assert all(one.get("scope") in ("col", "row") for one in heads)
    assert sum(tag == "table" for tag, _ in page.tags) == sum(tag == "caption" for tag, _ in page.tags)
    assert html == render_synthetic_html(composed(warnings=["AGE is fine."], learns=["AGE", "SEX"]))


def test_the_page_does_without_what_was_not_asked_for() -> None:
    bare = replace(combinations(), known=None, learned=None, learned_before=None)
    risk = made_up(bare, copies=1, by_copies=(CurvePoint(1, 0.1, 0.2, 3),), by_records=(), diagnostics=())
    content = composed(risk, matches=None, target=None)
    html = render_synthetic_html(content)
    assert_self_contained(html)
    assert [one["id"] for tag, one in Page(html).tags if tag == "section"] == [
        "verdict", "spread", "combinations", "importance", "diagnostics", "provenance",
    ]  # fmt: skip
    assert "and the synthetic copy." in Page(html).text
    assert "By matches" not in printed(content)


def test_measures_without_a_target_or_without_sure_matches() -> None:
    assert [line.name for line in composed(matches=MatchRisk(0.0, 9, 4)).matches] == [
        "Replicated uniques", "Unmatched records",
    ]  # fmt: skip
    lines = composed(matches=replace(MATCHES, tcap=None, tcap_modal=None, tcap_records=0)).matches
    assert lines[-1].value == "not defined"
    assert "65% by one guess for all of them; 50% by a draw" in composed().matches[-1].compared


def test_awkward_numbers_can_be_shown() -> None:
    found = replace(
        combinations(),
        rank=np.ones(27, dtype=np.int64),
        candidates=np.ones(27, dtype=np.int64),
        probability=np.ones(27),
        before=np.zeros(27),
        needed=np.full(27, np.inf),
        error=np.full(27, np.nan),
    )
    content = composed(made_up(found, support="strange", weights=CopyWeights(np.arange(30.0).reshape(3, 10))))
    html = render_synthetic_html(content)
    assert_self_contained(html)
    assert "the truth is the only candidate" in html
    assert "k-hat of infinity" in html
    assert not re.search(r"\bnan\b|\binf\b", Page(html).text)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_summary_fits_the_terminal(width: int) -> None:
    text = printed(composed(external=True, warnings=["AGE is fine."]), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    if width >= 80:
        assert 10 <= len(text.splitlines()) <= 26
    assert "comes first" in text
    assert "4 by luck" in text


def assert_finite(value: object) -> None:
    if isinstance(value, dict):
        for inner in value.values():
            assert_finite(inner)
    elif isinstance(value, list):
        for inner in value:
            assert_finite(inner)
    else:
        assert value is None or isinstance(value, bool | int | float | str)
        assert not isinstance(value, float) or np.isfinite(value)


def test_the_json_has_the_fields_of_the_contract() -> None:
    contract: dict[str, Sequence[str]] = {
        "": ("schema", "command", "keyhole", "copies", "combinations", "support", "estimator", "prior"),
        "risk": (
            "mean_probability", "max_probability", "mean_prior", "top_ranked", "top_three", "above_twice_prior",
            "untrusted_records",
        ),
        "importance": ("ess", "khat", "trusted"),
        "data_only": ("replicated_uniques", "disco", "dcap", "dcap_baseline", "tcap"),
    }  # fmt: skip
    result: Any = synthetic_json(made_up(), MATCHES, 7)
    for part, names in contract.items():
        assert set(names) <= set(result[part] if part else result)
    assert_finite(result)
    assert (result["schema"], result["command"], result["status"]) == (1, "synthetic-risk", "ok")
    assert (result["risk"]["top_ranked"], result["risk"]["top_three"]) == (2, 3)
    assert result["risk"]["max_probability"] == 0.6
    assert result["data_only"]["tcap_modal"] == 0.65
    assert result["by_records"][1] == {
        "records": 40, "mean_probability": 0.14, "max_probability": 0.5, "top_ranked": 2,
    }  # fmt: skip
    assert result["diagnostics"] == {"rhat": 1.003, "verdict": "No check raised a concern."}
    assert json.loads(to_text(result)) == result


def test_the_json_says_null_where_there_is_no_number() -> None:
    found = replace(combinations(), known=None, learned=None, learned_before=None)
    weights = CopyWeights(np.arange(30.0).reshape(3, 10))
    strange = Diagnostic("rhat", float("nan"), "untrusted", "No chains.")
    result: Any = synthetic_json(made_up(found, weights=weights, diagnostics=(strange,)), None, 7)
    assert_finite(result)
    assert result["status"] == "not-converged"
    assert result["importance"]["khat"] == [None, None]
    assert result["known_parameters"] is result["learned"] is result["data_only"]["dcap"] is None
    assert result["diagnostics"] == {"rhat": None, "verdict": "No chains."}
    to_text(result)


def regression() -> RegressionUtility:
    def one(centre: float, half: float = 0.2) -> CoefficientEstimate:
        return CoefficientEstimate(centre, half / 2, centre - half, centre + half)

    return RegressionUtility(
        formula="JOB ~ AGE + SEX",
        family="logistic",
        rule="full",
        level=0.95,
        response="JOB",
        success="yes",
        records=(54, 54, 54),
        coefficients=(
            Coefficient("Intercept", one(-0.5), one(-0.45), 12.0, False, 0.9, ""),
            Coefficient(f"AGE[T.{HOSTILE}]", one(1.0), one(2.0), 9.0, True, 0.0, ""),
            Coefficient("SEX[T.m]", one(0.3), one(0.2, np.inf), 0.01, False, 0.5, ""),
            Coefficient("SEX[T.x]", one(0.1), None, None, False, None, "In 1 of 2 copies, nobody has it."),
        ),
        notes=("Coefficients that were mended: 1 of 4.",),
    )


def utility(**changes: Any) -> UtilityReport:
    options: dict[str, Any] = {
        "regression": regression(),
        "records": 54,
        "copy_records": 54,
        "source": "survey.csv",
        "copies_from": "copies",
        "command": "keyhole synthesize survey.csv",
        "seed": 7,
        "diagnostics": (GOOD,),
        "when": WHEN,
    }
    return compose_utility(
        changes.pop("tables", TABLES), changes.pop("propensity", PROPENSITY), **{**options, **changes}
    )


TABLES = TableUtility(
    (("AGE",), ("SEX",), ("JOB",), ("AGE", "SEX"), ("AGE", "JOB"), ("SEX", "JOB")),
    np.array([0.02, 0.01, 0.0, 0.03, 0.2, 0.04]),
    np.array([1.2, 0.9, np.nan, 1.1, 31.0, 0.8]),
    np.array([2.0, 2, 0, 8, 8, 8]),
)
PROPENSITY = PropensityUtility(
    np.array([0.01, 0.02]), np.full(2, 0.01), np.array([1.0, 2.0]), np.array([0.5, 1.0]), np.full(2, 7),
    np.array([True, True]),
)  # fmt: skip


def test_the_utility_page_says_the_numbers() -> None:
    content = utility()
    one, two = content.tables
    assert [line.keys for line in two.worst] == [("AGE", "JOB"), ("AGE", "SEX"), ("SEX", "JOB")]
    assert one.worst[-1].ratio is None
    assert two.worst[0].words == "far from the original"
    assert content.verdict.headline == "The copies differ from the file by much more than luck."
    assert "3 coefficients of the regression overlap by 47% on average; 1 by less than half" in " ".join(
        content.verdict.summary
    )
    html = render_utility_html(content)
    assert_self_contained(html)
    text = words_of(Page(html).text)
    for words in (
        "unbounded",
        "\N{MINUS SIGN}0.500",
        "In 1 of 2 copies, nobody has it.",
        HOSTILE,
        "is mended",
        "AGE by JOB",
    ):
        assert words in text
    assert html == render_utility_html(utility())


def test_the_utility_page_without_regression_and_with_doubts() -> None:
    failed = replace(PROPENSITY, converged=np.array([True, False]))
    html = render_utility_html(utility(regression=None, diagnostics=(BAD,), propensity=failed))
    assert_self_contained(html)
    text = Page(html).text
    assert "These copies are not to be relied on." in text
    assert "did not converge for 1 of 2 copies" in text
    assert 'id="regression"' not in html


def test_copies_that_repeat_the_file_are_not_praised() -> None:
    nan = np.full(2, np.nan)
    near = replace(PROPENSITY, sample_ratio=np.full(2, 0.1))
    assert "the copies repeat the file, which is no merit" in utility(propensity=near).propensity_words
    assert "no merit" not in utility(propensity=near, partial=True).propensity_words
    alike = utility(propensity=replace(PROPENSITY, ratio=nan, sample_ratio=nan))
    assert alike.propensity_words.startswith("All records are alike")
    assert_self_contained(render_utility_html(alike))
