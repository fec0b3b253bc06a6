"""What a reader meets: the page in a real browser, wide and narrow, light and dark, on screen and on paper."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.report.content import compose
from keyhole.report.html import render_html
from keyhole.report.validation_content import compose_validation
from keyhole.report.validation_html import render_validation_html
from keyhole.risk.compare import Comparison
from keyhole.risk.truth import Truth
from keyhole.validation.population import KnownPopulation
from keyhole.validation.study import Study, validate

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
DESKTOP, PHONE = 1200, 360

SMALLEST_TEXT = """() => Math.min(...[...document.querySelectorAll('.drawing text')]
    .filter(text => text.getClientRects().length && text.getBoundingClientRect().width > 0)
    .map(text => [text.getScreenCTM(), parseFloat(getComputedStyle(text).fontSize)])
    .map(([scale, size]) => Math.hypot(scale.a, scale.b) * size))"""
CUT_OFF = """() => [...document.querySelectorAll('.drawing text')]
    .filter(text => text.getBoundingClientRect().width > 0)
    .map(text => [text.textContent, text.getBoundingClientRect(), text.closest('svg').getBoundingClientRect()])
    .filter(([, text, svg]) => text.left < svg.left - 12 || text.right > Math.max(svg.right, 0) + 12)
    .map(([label]) => label)"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no Chromium on this machine (looked for {', '.join(BROWSERS)})")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page_file(everyday: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    report = compose(
        everyday,
        source="survey.csv",
        command="keyhole compare survey.csv --keys AGE,SEX,REGION,JOB --population-size 12000",
        truth=Truth(11.0, 41.5, np.arange(everyday.assessments[0].sample.uniques) % 30 + 1),
        warnings=["AGE has very many levels."],
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(report), "utf-8")
    return path


@pytest.fixture(scope="module")
def hostile_file(compared: Any, toy: Any, hostile: Sample, tmp_path_factory: pytest.TempPathFactory) -> Path:
    comparison = compared(toy("m" * 90, uneven=True), toy("b", fails="f" * 400), on=hostile)
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    path.write_text(render_html(compose(comparison, source="s" * 300, command="c" * 500)), "utf-8")
    return path


@pytest.fixture(scope="module")
def path_file(
    compared: Any, toy: Any, term_path: Any, lambda_path: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    tiny = tuple(
        PathStep(
            f"{10.0**-i:.3g}", 10.0**-i, 1e6 * (i % 5), 6e6, {"a rather long name of a statistic " * 3: 1e8 + i}
        )
        for i in range(15)
    )
    models = (
        toy("search", path=term_path(12)),
        toy("m" * 90, path=ModelPath("lambda", tiny, 14)),
        toy("long", path=lambda_path(300, 4)),
    )
    path = tmp_path_factory.mktemp("paths") / "report.html"
    path.write_text(render_html(compose(compared(*models), source="survey.csv", command="keyhole")), "utf-8")
    return path


@pytest.fixture(scope="module")
def validation_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    keys = tuple(KeyVariable(name, tuple(map(str, range(9)))) for name in "ABC")
    people = KnownPopulation.from_codes(keys, np.random.default_rng(1).binomial(8, 0.3, (3000, 3)))
    models = ("benedetti-franconi", "independence", "poisson-inverse-gaussian", "slide-negative-binomial")
    found = validate(Study((100, 400), models, replicates=2), people)
    path = tmp_path_factory.mktemp("validation") / "report.html"
    content = compose_validation(found, source="register.csv", command="keyhole validate register.csv " * 9)
    path.write_text(render_validation_html(content), "utf-8")
    return path


class Visit:
    """A page open in the browser, with what it logged and what it asked the network for."""

    def __init__(self, browser: Any, path: Path, width: int, scheme: str = "light") -> None:
        # The page forbids all scripts, the accessibility checker's included, unless its policy is set aside.
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
        )
        self.asked: list[str] = []
        self.logged: list[str] = []
        self.context.route("**/*", self._answer)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.logged.append(message.text))
        self.page.on("pageerror", lambda error: self.logged.append(str(error)))
        self.page.goto(path.as_uri())

    def _answer(self, route: Any) -> None:
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            self.asked.append(route.request.url)
            route.abort()

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_accessibility_check_finds_nothing(browser: Any, page_file: Path, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with Visit(browser, page_file, width, scheme) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        found = axe.run(visit.page)
    assert found.response["violations"] == [], found.generate_report()


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_validation_is_accessible_and_readable(browser: Any, validation_file: Path, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with Visit(browser, validation_file, width) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        found = axe.run(visit.page)
        assert found.response["violations"] == [], found.generate_report()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        assert visit.page.evaluate(SMALLEST_TEXT) >= 10
        assert visit.page.evaluate(CUT_OFF) == []
        assert (visit.logged, visit.asked) == ([], [])


@pytest.mark.parametrize("which", ["page_file", "hostile_file"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_page_never_scrolls_sideways(
    browser: Any, request: pytest.FixtureRequest, which: str, width: int
) -> None:
    with Visit(browser, request.getfixturevalue(which), width) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


def test_nothing_is_logged_and_nothing_is_asked_for(browser: Any, page_file: Path, hostile_file: Path) -> None:
    for path in (page_file, hostile_file):
        with Visit(browser, path, DESKTOP) as visit:
            assert (visit.logged, visit.asked) == ([], [])
            assert visit.page.evaluate("document.scripts.length") == 0


def test_the_policy_of_the_page_stops_a_script(browser: Any, page_file: Path) -> None:
    infected = page_file.with_name("infected.html")
    infected.write_text(
        page_file.read_text("utf-8").replace("</body>", "<script>document.title='x'</script></body>")
    )
    context = browser.new_context()
    page = context.new_page()
    page.goto(infected.as_uri())
    assert page.title() == "Disclosure risk of survey.csv"
    context.close()


def test_text_in_the_drawings_is_large_enough_to_read(browser: Any, page_file: Path) -> None:
    for width in (DESKTOP, PHONE):
        with Visit(browser, page_file, width) as visit:
            assert visit.page.evaluate(SMALLEST_TEXT) >= 10


def test_no_label_of_a_drawing_is_cut_off(browser: Any, page_file: Path) -> None:
    for width in (DESKTOP, PHONE):
        with Visit(browser, page_file, width) as visit:
            assert visit.page.evaluate(CUT_OFF) == []


def test_paths_are_readable_whatever_their_numbers(browser: Any, path_file: Path) -> None:
    crowded = """() => [...document.querySelectorAll('[id^="path-"] .drawing [id*="xtick"]')]
        .map(tick => [tick.closest('svg'), tick.querySelector('text')])
        .filter(([, text]) => text && text.getBoundingClientRect().width > 0)
        .map(([svg, text]) => [svg, text.textContent, text.getBoundingClientRect()])
        .filter(([svg, , box], i, all) => i && all[i - 1][0] === svg && box.left < all[i - 1][2].right + 1)
        .map(([, label]) => label)"""
    for width in (DESKTOP, PHONE):
        with Visit(browser, path_file, width) as visit:
            assert visit.page.evaluate(SMALLEST_TEXT) >= 10
            assert visit.page.evaluate(CUT_OFF) == []
            assert visit.page.evaluate(crowded) == []
            assert visit.page.evaluate("document.querySelectorAll('[id^=path-] .drawing [id*=xtick]').length") > 20


def test_the_page_prints_with_everything_unfolded(browser: Any, page_file: Path, tmp_path: Path) -> None:
    with Visit(browser, page_file, DESKTOP, "dark") as visit:
        visit.page.pdf(path=tmp_path / "report.pdf", format="A4")
        visit.page.emulate_media(media="print")
        shown = visit.page.evaluate("document.querySelector('#settings-table').getBoundingClientRect().height")
        background = visit.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")
    assert shown > 0
    assert background == "rgb(255, 255, 255)"
