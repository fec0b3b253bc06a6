"""The page is one file, complete in itself, whatever the labels."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.population.sample import Sample
from keyhole.report.content import Report, compose
from keyhole.report.html import render_html
from keyhole.risk.compare import Comparison
from keyhole.risk.truth import Truth

VOID = {"meta", "br", "hr", "img", "link", "input", "use", "path"}
NAMESPACES = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink")


class Page(HTMLParser):
    """Tags, ids and text of a page; closing tags must match the opening ones."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
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
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def report_of(comparison: Comparison, **options: Any) -> Report:
    when = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
    return compose(comparison, source="survey.csv", command="keyhole assess survey.csv", when=when, **options)


@pytest.fixture(scope="module")
def html(everyday: Comparison) -> str:
    return render_html(
        report_of(
            everyday,
            truth=Truth(11.0, 41.5, np.arange(everyday.assessments[0].sample.uniques) % 30 + 1),
            warnings=["AGE is fine."],
        )
    )


def assert_self_contained(html: str) -> None:
    rest = html
    for namespace in NAMESPACES:
        rest = rest.replace(f'="{namespace}"', "")
    assert not re.search(r"https?:|//[a-z]|@import|url\(|javascript:", rest.replace("postgresql://", ""))
    page = Page(html)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "img", "form", "base", "audio", "video"}
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("src", "srcset", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")


def test_the_page_is_self_contained(html: str) -> None:
    assert_self_contained(html)
    policy = next(meta for meta in Page(html).all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_ids_are_unique_and_references_lead_somewhere(html: str) -> None:
    page = Page(html)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for name in ("href", "xlink:href"):
            if name in attributes:
                assert str(attributes[name])[1:] in ids
        for name in ("aria-labelledby", "aria-describedby"):
            for target in str(attributes.get(name) or "").split():
                assert target in ids


def test_headings_go_down_one_step_at_a_time(html: str) -> None:
    levels = [int(tag[1]) for tag, _ in Page(html).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_part_of_the_report_is_there(html: str) -> None:
    page = Page(html)
    sections = [section["id"] for section in page.all("section")]
    assert sections == [
        "verdict", "estimates", "distribution", "drivers", "kept", "diagnostics", "assumptions", "provenance",
    ]  # fmt: skip
    text = " ".join(page.text)
    for words in ("believe first", "keyhole assess survey.csv", "1 March 2025", "The chains have not met.", "11"):
        assert words in text
    assert len([svg for svg in page.all("svg") if svg["role"] == "img"]) == 16


def test_tables_have_captions_scopes_and_a_way_to_scroll_by_keyboard(html: str) -> None:
    page = Page(html)
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(cell.get("scope") in ("col", "row") for cell in page.all("th"))
    regions = [div for div in page.all("div") if div.get("class") == "scroll"]
    assert len(regions) == len(page.all("table"))
    assert all(div.get("role") == "region" and div.get("tabindex") == "0" for div in regions)


def test_pictures_give_their_numbers_in_words(html: str, everyday: Comparison) -> None:
    described = re.search(r'<desc id="tau1-wide-desc">(.*?)</desc>', html)
    assert described
    tau1 = everyday.assessments[2].tau1
    assert tau1 is not None
    assert f"two-way: {tau1.estimate:.0f} (95% interval {tau1.low:.0f} to {tau1.high:.0f})" in described[1]
    assert "The truth is 11." in described[1]


def test_the_same_report_is_the_same_page(html: str, everyday: Comparison) -> None:
    again = report_of(
        everyday,
        truth=Truth(11.0, 41.5, np.arange(everyday.assessments[0].sample.uniques) % 30 + 1),
        warnings=["AGE is fine."],
    )
    assert render_html(again) == html


def test_hostile_labels_stay_labels(compared: Any, hostile: Sample, toy: Any) -> None:
    comparison = compared(
        toy("<b>&", uneven=True, fails=""), toy("x", fails="<img src=x onerror=alert(1)>"), on=hostile
    )
    html = render_html(
        compose(
            comparison, source='"><script>alert(1)</script>', command="<svg onload=x> & 'y'", warnings=["</style>"]
        )
    )
    assert_self_contained(html)
    page = Page(html)
    assert not page.all("b")
    text = "".join(page.text)
    assert "<script>alert('x')</script>" in text
    assert "{{ 7 * 7 }}" in text
    assert "49" not in re.findall(r"smile: (\S+)", text)
    assert "$x_1^2$" in text
    assert "משרד" in text
    assert "\u202e" not in html
    assert "\x1b" not in html


def awkward(case: str, compared: Any, sampled: Any, toy: Any) -> Comparison:
    if case == "nobody unique":
        return compared(on=sampled([["a"]], ["A"], 10, 100))
    if case == "everyone unique":
        return compared(on=sampled([list("abcdefgh")] * 30, [f"K{j}" for j in range(30)], 80, 900))
    if case == "no trusted model":
        return compared(toy("a", untrusted=True), toy("b", fails="No."))
    if case == "everything failed":
        return compared(toy(fails="No."))
    if case == "census":
        return compared(on=sampled([list("abcdefgh")] * 3, list("ABC"), 80, 80))
    if case == "one key":
        return compared(on=sampled([[str(i) for i in range(80)]], ["AGE"], 300, 9000))
    if case == "forty keys":
        names = [f"a rather long name of a key variable number {j}" for j in range(40)]
        return compared(on=sampled([list("abc")] * 40, names, 80, 900))
    assert case == "one record"
    return compared(toy(uneven=True), on=sampled([["a", "b"]], ["A"], 1, 9))


@pytest.mark.parametrize(
    "case",
    [
        "nobody unique", "everyone unique", "no trusted model", "everything failed",
        "census", "one key", "forty keys", "one record",
    ],
)  # fmt: skip
def test_awkward_samples_make_sound_pages(case: str, compared: Any, sampled: Any, toy: Any) -> None:
    html = render_html(report_of(awkward(case, compared, sampled, toy)))
    assert_self_contained(html)
    assert "None" not in "".join(Page(html).text)
    assert "nan" not in re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL).split()


def test_matplotlib_is_silent_without_a_home(tmp_path: Path) -> None:
    home = tmp_path / "nowhere"
    home.write_text("a file, so that no directory can be made in it")
    code = "from keyhole.report.pictures import _quiet\nwith _quiet():\n    import matplotlib.font_manager\n"
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MPLCONFIGDIR", "XDG_CACHE_HOME")
    }
    environment |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stderr == ""


def test_the_size_index_is_explained_and_nothing_is_said_for_every_model(html: str) -> None:
    text = " ".join(" ".join(Page(html).text).split())
    assert text.index("is called the size index of the file") < text.index("misfit compares it")
    assert text.count("the uncertainty of the fitted parameters") == 1
    assert "It gives every unique record the same risk" not in text
    assert "Every unique record has the same risk by pitman and ewens." in text


def dependent_page(compared: Any, sampled: Any, toy: Any, keys: int, **options: Any) -> str:
    names = [f"a rather long name of key {j}" if j % 2 else f"K{j}" for j in range(keys)]
    sample = sampled([list("abcd")] * keys, names, 80, 900)
    return render_html(report_of(compared(toy(dependent=True, **options), on=sample)))


@pytest.mark.parametrize("keys", [3, 7, 20, 40])
def test_the_keys_that_go_together_are_a_picture_and_words(
    compared: Any, sampled: Any, toy: Any, keys: int
) -> None:
    html = dependent_page(compared, sampled, toy, keys)
    assert_self_contained(html)
    page = Page(html)
    assert [section["id"] for section in page.all("section")][-4] == "dependence"
    described = re.search(r'<desc id="dependence-wide-desc">(.*?)</desc>', html)
    assert described
    assert described[1].startswith("K0 and a rather long name of key 1: strength 2.5, odds change 12-fold; ")
    drawing = html[html.index('<svg class="drawing wide" viewBox', html.index('id="dependence"')) :]
    drawing = drawing[: drawing.index("</svg>")]
    drawn = min(keys, 20)
    squares = len(re.findall(r'id="dependence-wide-value-', drawing))
    assert squares == drawn * (drawn - 1) / 2
    assert "#0" not in drawing.split("</desc>")[1].replace('href="#', "")
    text = " ".join(" ".join(page.text).split())
    assert "What a rather long name of key 1 says of K2 is not the same for every K0 (score 15)" in text
    assert ("Of 40 keys, the 20 with the strongest pairs are drawn." in text) == (keys == 40)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_two_keys_need_no_picture_and_one_nothing(compared: Any, sampled: Any, toy: Any) -> None:
    two = dependent_page(compared, sampled, toy, 2, three_way=False)
    assert 'id="dependence-wide-title"' not in two
    assert "<li>K0 and a rather long name of key 1: strength 2.5, odds change 12-fold</li>" in two
    assert "None was added" in two
    assert 'id="dependence"' not in dependent_page(compared, sampled, toy, 1)


def test_hostile_keys_that_go_together_stay_labels(compared: Any, hostile: Sample, toy: Any) -> None:
    html = render_html(report_of(compared(toy(dependent=True), on=hostile)))
    assert_self_contained(html)
    assert "\u202e" not in html
    assert "\x1b" not in html


def section_of(html: str, name: str) -> str:
    start = html.index(f'<section id="{name}"')
    return html[start : html.index("</section>", start)]


def dots(section: str, name: str, colour: str) -> int:
    """How many dots of a colour the wide drawing has, the large one of the chosen step included."""
    drawing = section[section.index('<svg class="drawing wide"') : section.index("</svg>")]
    assert f'id="{name}-wide-' in drawing
    return len(re.findall(rf"<use [^>]*fill: var\(--{colour}\)", drawing))


@pytest.mark.parametrize("steps", [2, 8, 500])
def test_a_path_is_a_picture_words_and_a_table(compared: Any, toy: Any, lambda_path: Any, steps: int) -> None:
    chosen = steps // 3
    html = render_html(report_of(compared(toy("lasso", path=lambda_path(steps, chosen)))))
    assert_self_contained(html)
    page = Page(html)
    assert [section["id"] for section in page.all("section")][-4] == "path-1"
    assert '<a href="#path-1"><bdi>How lasso was chosen</bdi></a>' in html
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    section = section_of(html, "path-1")
    text = " ".join(" ".join(Page(f"{section}</section>").text).split())
    assert f"{steps} values of lambda were tried; τ₁ went from 310 to 110 along the path;" in text
    rows = len(re.findall(r"<tbody>.*?</tbody>", section, re.DOTALL)[0].split("<tr")) - 1
    assert 38 <= rows <= 40 if steps > 40 else rows == steps
    assert dots(section, "path-1", "main") == dots(section, "path-1", "light") == rows + 2  # legend, chosen
    assert (f"Of {steps} steps, {rows} are shown here" in text) == (steps > 40)
    value = f"{chosen / (steps - 1):.3g}"
    assert len(re.findall(r'<span class="tag">chosen</span>', section)) == 1
    assert re.search(rf'<bdi>{re.escape(value)}</bdi> <span class="tag">chosen</span></th>', section)
    described = re.search(r'<desc id="path-1-wide-desc">(.*?)</desc>', section)
    assert described
    assert "lambda 0: tau1 310, tau2 500; " in described[1]
    assert f"Chosen: lambda {value}, score -8,12" in described[1]
    assert "a line marks 0" not in section  # scores of eight thousand would be a straight line with 0 in sight


def test_terms_are_counted_and_statistics_near_0_have_its_line(compared: Any, toy: Any, term_path: Any) -> None:
    section = section_of(render_html(report_of(compared(toy("search", path=term_path(8))))), "path-1")
    assert (
        "7 terms were added; τ₁ went from 310 to 92 along the path; the last two steps differ by 1.8%." in section
    )
    assert "a line marks 0" in section
    assert section.count(">terms added</text>") == 2
    assert section.count(">B1</text>") == section.count(">B2</text>") == 2
    assert '<th scope="col" class="number">Terms added</th>' in section
    assert re.search(r"<bdi>independence</bdi></th><td[^>]*>0</td><td[^>]*>310</td><td[^>]*>500</td>", section)


def test_at_most_three_paths_are_drawn_and_the_recommended_is_one(compared: Any, toy: Any, term_path: Any) -> None:
    doubtful = [toy(name, untrusted=True, path=term_path(5)) for name in "abc"]
    html = render_html(report_of(compared(*doubtful, toy("d", path=term_path(5)), toy("e", path=term_path(1)))))
    assert_self_contained(html)
    drawn = ['<svg class="drawing wide"' in section_of(html, f"path-{place}") for place in (1, 2, 3, 4)]
    assert drawn == [True, True, False, True]
    assert "3 other models are drawn; this one is listed only" in section_of(html, "path-3")
    assert 'id="path-5"' not in html  # one candidate is no choice


def test_candidates_without_numbers_leave_gaps(compared: Any, toy: Any) -> None:
    nan = float("nan")
    steps = tuple(
        PathStep(f"try {i}", None, nan if i == 2 else 5.0, nan, {"B1": np.inf, "B2": -1.0}) for i in range(5)
    )
    partly, nowhere = ModelPath("penalty", steps, 2), ModelPath("penalty", steps[2:3] * 2, 1)
    html = render_html(report_of(compared(toy(path=partly), toy("b", path=nowhere))))
    assert_self_contained(html)
    for section in (section_of(html, "path-1"), section_of(html, "path-2")):
        assert not re.search(r"\b(nan|inf)\b", section)
        assert '<td class="number">\N{EN DASH}</td>' in section


def test_hostile_candidates_stay_labels(compared: Any, toy: Any, hostile: Sample) -> None:
    names = [f"{key.name} $\\frac{{1}}$" for key in hostile.table.keys]
    steps = tuple(PathStep(name, None, 9.0 - i, 20.0 - i, {names[0]: 1.0 - i}) for i, name in enumerate(names))
    html = render_html(report_of(compared(toy("<b>&", path=ModelPath("<i>", steps, 2)), on=hostile)))
    assert_self_contained(html)
    page = Page(html)
    assert not page.all("b")
    assert not page.all("i")
    assert "\u202e" not in html
    assert "\x1b" not in html
