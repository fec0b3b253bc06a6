"""The pictures of a report: inline SVG that prints, follows light and dark, and says its numbers in words.

Every picture is drawn twice, for a wide and for a narrow page, because text that shrinks with a drawing
cannot be read on a phone. Colours are names that the style sheet of the page resolves.
"""

import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from keyhole.report.against_truth import (
    AgainstTruth,
    Measure,
    calibration_in_words,
    paint_calibration,
    paint_spreads,
    spreads_in_words,
)
from keyhole.report.colours import COLOURS
from keyhole.report.content import DataSummary, Distribution, Drivers, Report
from keyhole.report.dependence import KeyDependence, pair_in_words
from keyhole.report.matrix import matrix_of, paint_matrix
from keyhole.report.mixtures import Mixture, paint_mixture
from keyhole.report.path import ChosenPath, expected
from keyhole.report.words import between, count, percent, plural, rounded, shortened, wrapped
from keyhole.risk.estimate import RiskEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, NARROW = 680, 320
"""Widths in CSS pixels."""

KEYS_SHOWN = 12
PAIRS_TOLD = 10

LABEL = 16
"""Characters of a line of a label on a narrow page."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing for wide and for narrow pages, its title, and what it shows in words and numbers."""

    title: str
    description: str
    wide: str
    narrow: str

    def marked(self, mark: Callable[[str], str]) -> "Picture":
        """The same picture with its drawings marked as safe for a template."""
        return replace(self, wide=mark(self.wide), narrow=mark(self.narrow))


Draw = Callable[["Figure", bool], None]


def draw(report: Report) -> dict[str, Picture]:
    """The pictures that have something to show, by name.

    The names are tau1, tau2, r1, contributions, dependence, sizes, kept-r1, kept-r2, kept-people, and path-1, ...
    for ``report.paths``, mixture-1, ... for ``report.mixtures``.
    """
    with _quiet():
        found: dict[str, Picture | None] = {
            "tau1": _estimates(report, "tau1"),
            "tau2": _estimates(report, "tau2"),
            "r1": _distribution(report.distribution),
            "contributions": _contributions(report.drivers),
            "dependence": _dependence(report.dependence),
            "sizes": _sizes(report.data),
            **{f"path-{place}": _path(f"path-{place}", found) for place, found in enumerate(report.paths, 1)},
            **{f"mixture-{place}": _mixture(place, one) for place, one in enumerate(report.mixtures, 1)},
            "kept-r1": _calibration(report.kept, "r1"),
            "kept-r2": _calibration(report.kept, "r2"),
            "kept-people": _by_people(report.kept),
        }
    return {name: picture for name, picture in found.items() if picture is not None}


@contextmanager
def _quiet() -> Iterator[None]:
    """Matplotlib without its remarks on where it keeps its fonts, which say nothing about the report."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _estimates(report: Report, measure: str) -> Picture | None:
    rows: list[tuple[str, RiskEstimate, bool, bool]] = []
    for model in report.models:
        estimate = model.tau1 if measure == "tau1" else model.tau2
        if estimate is not None:
            rows.append((model.model, estimate, model.recommended, not model.doubtful))
    uniques = report.data.sample_uniques
    if not rows or not uniques:
        return None
    truth = None if report.truth is None else (report.truth.tau1 if measure == "tau1" else report.truth.tau2)
    title = "Unique in the population, by model" if measure == "tau1" else "Correct matches, by model"
    parts = [
        f"{name}: {rounded(e.estimate)} ({percent(e.level)} interval {between(e)})"
        + ("" if ok else ", drawn without weight")
        for name, e, _, ok in rows
    ]
    description = "; ".join(parts) + ("." if truth is None else f". The truth is {rounded(truth)}.")

    def paint(figure: "Figure", wide: bool) -> None:
        axes = new_axes(figure)
        for y, (_, e, recommended, ok) in enumerate(rows):
            colour = COLOURS["main"] if ok else COLOURS["soft-ink"]
            axes.plot([e.low, e.high], [y, y], color=colour, linewidth=4 if recommended else 2, alpha=1)
            if e.quartiles is not None:
                axes.plot(e.quartiles, [y, y], color=colour, linewidth=8 if recommended else 5, alpha=1)
            axes.plot(
                [e.estimate], [y], "o", markersize=10 if recommended else 7, markeredgewidth=2, color=colour,
                markerfacecolor=colour if ok else COLOURS["paper"],
            )  # fmt: skip
            axes.annotate(
                rounded(e.estimate), (e.estimate, y), (0, 9), textcoords="offset points", ha="center", va="bottom",
                fontweight="bold" if recommended else "normal", color=COLOURS["ink"],
            )  # fmt: skip
        axes.set_yticks(range(len(rows)), [_label(name, wide) for name, *_ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.75)
        top = max([e.high for _, e, _, _ in rows] + [0.0 if truth is None else truth])
        # One model alone has nothing beside it to be compared with but the number of unique records.
        axes.set_xlim(0, uniques if len(rows) == 1 else top * 1.08 or 1.0)
        if truth is not None:
            axes.axvline(truth, color=COLOURS["alarm"], linewidth=1.5, linestyle=(0, (5, 3)), zorder=0)
            axes.annotate(
                f"truth {rounded(truth)}", (truth, 1), (0, 4), xycoords=("data", "axes fraction"),
                textcoords="offset points", ha="center", va="bottom", color=COLOURS["alarm"],
            )  # fmt: skip
        what = "records unique in the population" if measure == "tau1" else "expected correct matches"
        axes.set_xlabel(f"{what}, of {count(uniques)}" if len(rows) == 1 else what)

    return new_picture(measure, title, description, paint, height=70 + 46 * len(rows))


def _distribution(found: Distribution | None) -> Picture | None:
    if found is None or found.same is not None:
        return None
    bands = list(zip(found.edges[:-1], found.edges[1:], found.counts, strict=True))
    description = "; ".join(
        f"{low:.0%} to {high:.0%}: {plural(number, 'record')}" for low, high, number in bands if number
    )

    def paint(figure: "Figure", wide: bool) -> None:
        axes = new_axes(figure, grid="y")
        colours = [_class_colour((low + high) / 2, found) for low, high, _ in bands]
        bars = axes.bar([low for low, *_ in bands], found.counts, 0.092, align="edge", color=colours)
        if wide:
            axes.bar_label(bars, [count(number) for number in found.counts], padding=2, color=COLOURS["ink"])
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1] if not wide else [i / 10 for i in range(11)])
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
        axes.set_xlabel("chance of being unique in the population")
        axes.set_ylabel("unique records")
        axes.margins(y=0.12)

    return new_picture(
        "r1", "How the risk is spread over the unique records", description + ".", paint, height=260
    )


def _class_colour(middle: float, found: Distribution) -> str:
    if middle > found.classes.kappa1:
        return COLOURS["alarm"]
    return COLOURS["light"] if middle < found.classes.kappa2 else COLOURS["main"]


def _contributions(drivers: Drivers | None) -> Picture | None:
    if drivers is None or not any(key.dropped.tau1_lost > 0 for key in drivers.keys):
        return None
    shown = drivers.keys[:KEYS_SHOWN]
    description = "; ".join(
        f"{key.key}: {rounded(key.dropped.tau1_lost)} if dropped"
        + ("" if key.coarsened is None else f", {rounded(key.coarsened.tau1_lost)} if coarsened")
        for key in shown
    )

    def paint(figure: "Figure", wide: bool) -> None:
        axes = new_axes(figure)
        places = range(len(shown))
        dropped = [key.dropped.tau1_lost for key in shown]
        coarsened = [0.0 if key.coarsened is None else key.coarsened.tau1_lost for key in shown]
        bars = axes.barh([y - 0.19 for y in places], dropped, 0.36, color=COLOURS["main"], label="key dropped")
        axes.bar_label(bars, [rounded(value) for value in dropped], padding=3, color=COLOURS["ink"])
        light = axes.barh(
            [y + 0.19 for y in places], coarsened, 0.36, color=COLOURS["light"], label="key coarsened"
        )
        labels = ["" if key.coarsened is None else rounded(key.coarsened.tau1_lost) for key in shown]
        axes.bar_label(light, labels, padding=3, color=COLOURS["ink"])
        axes.set_yticks(places, [_label(key.key, wide) for key in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.margins(x=0.14)
        what = "unique records" if drivers.model is None else "expected population uniques"
        axes.set_xlabel(f"{what} taken away, at least" if wide else f"{what} taken away")
        figure.legend(loc="outside upper left", ncols=2, frameon=False, labelcolor=COLOURS["ink"])

    return new_picture(
        "keys", "What each key adds to the risk", description + ".", paint, height=90 + 44 * len(shown)
    )


def _dependence(found: KeyDependence | None) -> Picture | None:
    matrix = None if found is None else matrix_of(found.found)
    if found is None or matrix is None:
        return None
    told, rest = found.found.pairs[:PAIRS_TOLD], found.found.pairs[PAIRS_TOLD:]
    description = "; ".join(map(pair_in_words, told)) + "."
    if rest:
        description += f" {plural(len(rest), 'weaker pair')}: strength {rest[0].strength:.1f} or less."

    def paint(figure: "Figure", wide: bool) -> None:
        paint_matrix(figure, matrix, WIDE if wide else NARROW, wide=wide)

    return new_picture(
        "dependence", "Which keys go together", description, paint,
        height=matrix.height(wide=True), narrow_height=matrix.height(wide=False),
    )  # fmt: skip


def _path(name: str, found: ChosenPath) -> Picture | None:
    if not found.drawn:
        return None

    def paint(figure: "Figure", wide: bool) -> None:
        drawn = figure.subplots(
            1 + len(found.panels), 1, sharex=True, squeeze=False, height_ratios=[5.0] + [2.0] * len(found.panels)
        )[:, 0]  # fmt: skip
        _risk_along(_styled(drawn[0], "y"), found, wide)
        for axes, statistic in zip(drawn[1:], found.panels, strict=True):
            _statistic_along(_styled(axes, "y"), found, statistic, wide)
        for axes in drawn:
            axes.axvline(found.path.chosen, color=COLOURS["alarm"], linewidth=1.5, linestyle=(0, (5, 3)), zorder=1)
        ticks = found.ticks(9 if wide else 5)
        drawn[-1].set_xticks(ticks, [found.number(place) for place in ticks])
        drawn[-1].set_xlabel(shortened(found.axis, 60 if wide else 30))
        drawn[-1].margins(x=0.04 if wide else 0.07)
        figure.legend(loc="outside upper left", ncols=2 if wide else 1, frameon=False, labelcolor=COLOURS["ink"])

    height = 300 + 95 * len(found.panels)
    title = f"Risk along the candidates of {shortened(found.model, 40)}"
    return new_picture(name, title, found.description, paint, height=height, narrow_height=height + 20)


def _risk_along(axes: "Axes", found: ChosenPath, wide: bool) -> None:
    """Both measures; numbers at the ends and at the chosen step, those of tau1, the lower, below their line."""
    chosen, last = found.path.chosen, found.shown[-1]
    named = [end for end in (0, last) if abs(end - chosen) > last * (0.1 if wide else 0.2)]
    lines = (
        ("unique in the population (τ₁)", "main", found.tau1, -9),
        ("correct matches (τ₂)", "light", found.tau2, 9),
    )
    for label, colour, values, offset in lines:
        look: Any = {"color": COLOURS[colour], "zorder": 2}
        dot = 6 if len(values) <= 15 else 3.5
        axes.plot(found.shown, values, "o-", linewidth=2.5, label=label, markersize=dot, **look)
        for place, value in zip(found.shown, values, strict=True):
            if place == chosen:
                axes.plot([place], [value], "o", markersize=10, **look)
            if (place == chosen or place in named) and math.isfinite(value):
                axes.annotate(
                    expected(value), (place, value), (0, offset), textcoords="offset points", color=COLOURS["ink"],
                    ha="center", va="top" if offset < 0 else "bottom",
                    fontweight="bold" if place == chosen else "normal",
                )  # fmt: skip
    known = [value for value in (*found.tau1, *found.tau2) if math.isfinite(value)]
    top = max([0.0, *known]) or 1.0
    # Numbers below the line of tau1 need room where it comes near 0.
    axes.set_ylim(min([0.0, *(value - 0.15 * top for value in known)]), 1.15 * top)
    left = 2 * chosen <= last
    axes.annotate(
        "chosen", (chosen, 1), (5 if left else -5, 0), xycoords=("data", "axes fraction"), color=COLOURS["alarm"],
        textcoords="offset points", ha="left" if left else "right", va="bottom",
    )  # fmt: skip


def _statistic_along(axes: "Axes", found: ChosenPath, statistic: str, wide: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    values = found.along_path(statistic)
    axes.plot(found.shown, values, "o-", color=COLOURS["soft-ink"], linewidth=1.8, markersize=3.5, zorder=2)
    axes.set_title(shortened(statistic, 60 if wide else 34), loc="left", fontsize=12, color=COLOURS["soft-ink"])
    if found.beside_zero(statistic):
        axes.axhline(0, color=COLOURS["ink"], linewidth=1.2, zorder=1)
    axes.margins(y=0.15)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.9g}".replace("-", "\N{MINUS SIGN}"))


def _mixture(place: int, found: Mixture) -> Picture:
    def paint(figure: "Figure", wide: bool) -> None:
        paint_mixture(new_axes(figure, grid="y"), found)

    title = f"How many {found.counted} model {shortened(found.model, 30)} saw"
    return new_picture(f"mixture-{place}", title, found.description, paint, height=240)


def _calibration(found: AgainstTruth | None, measure: Measure) -> Picture | None:
    if found is None:
        return None
    bands = found.bands(measure)

    def paint(figure: "Figure", wide: bool) -> None:
        paint_calibration(new_axes(figure, grid="y"), bands, measure)

    title = "Claimed and true uniqueness" if measure == "r1" else "Claimed and true matches"
    return new_picture(f"kept-{measure}", title, calibration_in_words(bands), paint, height=300)


def _by_people(found: AgainstTruth | None) -> Picture | None:
    if found is None:
        return None

    def paint(figure: "Figure", wide: bool) -> None:
        paint_spreads(new_axes(figure, grid="y"), found.by_people)

    words = spreads_in_words(found.by_people)
    return new_picture("kept-people", "Claims by the true number of people", words, paint, height=280)


def _sizes(data: DataSummary) -> Picture:
    description = "; ".join(
        f"{plural(cells, 'combination')} with {size} {'record' if size == '1' else 'records'}"
        for size, cells in data.size_index
    )

    def paint(figure: "Figure", wide: bool) -> None:
        axes = new_axes(figure, grid="y")
        cells = [number for _, number in data.size_index]
        colours = [COLOURS["alarm"], *[COLOURS["main"]] * (len(cells) - 1)]
        bars = axes.bar(range(len(cells)), cells, 0.78, color=colours)
        if wide:
            axes.bar_label(bars, [count(number) for number in cells], padding=2, color=COLOURS["ink"])
        axes.set_xticks(range(len(cells)), [size.replace(" or more", "+") for size, _ in data.size_index])
        axes.set_xlabel("records that share a combination")
        axes.set_ylabel("combinations")
        axes.margins(x=0.02, y=0.12)

    return new_picture("sizes", "How many records share a combination", description + ".", paint, height=240)


def _label(name: str, wide: bool) -> str:
    """A name beside a bar: on one line if there is room, else on two."""
    if wide:
        return shortened(name, 24)
    first, *rest = wrapped(shortened(name, 40), LABEL)
    lines = [first] if not rest else [first, " ".join(rest)]
    return "\n".join(shortened(line, LABEL) for line in lines)


def new_axes(figure: "Figure", grid: str = "x") -> "Axes":
    """Plain axes on all of a figure, with a grid across the numbers."""
    return _styled(figure.add_subplot(), grid)


def _styled(axes: "Axes", grid: str) -> "Axes":
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x" if grid == "x" else "y", color=COLOURS["line"], linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=6)
    number = axes.xaxis if grid == "x" else axes.yaxis
    number.set_major_formatter(lambda value, _: f"{value:,.0f}" if value == int(value) else "")
    return axes


def new_picture(
    name: str, title: str, description: str, paint: Draw, *, height: int, narrow_height: int | None = None
) -> Picture:
    """What ``paint`` draws, for wide and for narrow pages; ``name`` tells it from the other pictures of a page."""
    drawings = []
    for wide in (True, False):
        with _settings(name, wide):
            size = (WIDE, height) if wide else (NARROW, narrow_height or height)
            drawings.append(_svg(name, title, description, paint, size, wide))
    return Picture(title, description, *drawings)


@contextmanager
def _settings(name: str, wide: bool) -> Iterator[None]:
    import matplotlib

    style: Any = {
        "svg.fonttype": "none",  # text stays text: it can be searched, copied and read at any size
        "svg.hashsalt": f"{name}-{wide}",  # ids that are the same in every run and differ between drawings
        "text.parse_math": False,  # a dollar in a label is a dollar
        "font.family": ["sans-serif"],
        "font.size": 12.5,
        "axes.labelcolor": COLOURS["soft-ink"],
        "axes.edgecolor": COLOURS["line"],
        "xtick.labelcolor": COLOURS["soft-ink"],
        "ytick.labelcolor": COLOURS["ink"],
        "xtick.color": COLOURS["line"],
        "ytick.color": COLOURS["line"],
        "text.color": COLOURS["ink"],
    }
    # A glyph that matplotlib's own font lacks is drawn by the reader's fonts; only its width is guessed.
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support .* natively")
        yield


def _svg(name: str, title: str, description: str, paint: Draw, size: tuple[int, int], wide: bool) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72, layout="constrained", facecolor="none")
    FigureCanvasSVG(figure)
    paint(figure, wide)
    for axes in figure.axes:
        axes.set_facecolor("none")
        if not wide:
            # Long names leave little room below the axis: a label that ends with it cannot be cut off.
            axes.set_xlabel(axes.get_xlabel(), loc="right")
    out = StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inlined(out.getvalue(), f"{name}-{'wide' if wide else 'narrow'}", title, description, size)


def _inlined(svg: str, name: str, title: str, description: str, size: tuple[int, int]) -> str:
    """A drawing as it can stand inside a page: own ids, named colours, a title and a description."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<style type=\"text/css\">.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r' clip-path="[^"]*"|<clipPath.*?</clipPath>', "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r'xlink:href="#', f'xlink:href="#{name}-', body)
    for role, number in COLOURS.items():
        body = body.replace(number, f"var(--{role})")
    opening = (
        f'<svg class="drawing {name.rpartition("-")[2]}" viewBox="0 0 {size[0]} {size[1]}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'aria-labelledby="{name}-title" aria-describedby="{name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    )
    return re.sub(r"<svg[^>]*>", lambda _: opening, body, count=1)
