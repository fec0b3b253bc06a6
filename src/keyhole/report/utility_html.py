"""What synthetic files are good for as one self-contained web page: no script, no network."""

import math
from typing import TYPE_CHECKING

from keyhole.report import words
from keyhole.report.colours import COLOURS
from keyhole.report.html import MARKS
from keyhole.report.page import render_page
from keyhole.report.pictures import Picture, _label, _quiet, new_axes, new_picture
from keyhole.report.synthetic_pictures import plural_copies
from keyhole.report.utility_content import (
    RegressionPart,
    UtilityReport,
    shown_interval,
    shown_ratio,
)
from keyhole.synthesis.utility_regression import Coefficient

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_DRAWN = 20
"""Coefficients beyond which a picture has no room."""


def render_utility_html(content: UtilityReport) -> str:
    """The page as HTML, complete in itself; names and labels are escaped."""
    picture = _coefficients(content.regression)
    return render_page(
        "utility.html.j2",
        pictures={} if picture is None else {"coefficients": picture},
        sayings=(
            words.percent, words.count, words.plural, words.shortened, words.figure_of, words.listed,
            plural_copies, shown_interval, shown_ratio, estimate,
        ),
        report=content,
        mark=MARKS,
    )  # fmt: skip


def estimate(value: float) -> str:
    """A coefficient as it is read.

    Examples
    --------
    >>> estimate(0.25)
    '0.250'
    """
    return f"{value:.3f}".replace("-", "\N{MINUS SIGN}")


def _coefficients(found: RegressionPart | None) -> Picture | None:
    """Both intervals of every coefficient, the file's above those of the copies."""
    shown = [] if found is None else [one for one in found.coefficients if _drawn(one)]
    if not shown or len(shown) > MOST_DRAWN:
        return None
    description = "; ".join(
        f"{one.name}: file {estimate(one.original.estimate)} ({shown_interval(one.original)}), copies "
        f"{estimate(one.synthetic.estimate)} ({shown_interval(one.synthetic)})"
        for one in shown
        if one.original is not None and one.synthetic is not None
    )

    def paint(figure: "Figure", wide: bool) -> None:
        axes = new_axes(figure)
        for place, one in enumerate(shown):
            for part, colour, y in ((one.original, "main", place - 0.16), (one.synthetic, "alarm", place + 0.16)):
                if part is not None:
                    axes.plot([part.low, part.high], [y, y], color=COLOURS[colour], linewidth=3)
                    axes.plot([part.estimate], [y], "o", color=COLOURS[colour], markersize=7)
        axes.axvline(0, color=COLOURS["ink"], linewidth=1.2, zorder=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "\N{MINUS SIGN}"))
        axes.set_yticks(range(len(shown)), [_label(one.name, wide) for one in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("coefficient")
        for label, colour in (("the file", "main"), ("the copies", "alarm")):
            axes.plot([], [], "o-", color=COLOURS[colour], linewidth=3, label=label)
        figure.legend(loc="outside upper left", ncols=2, frameon=False, labelcolor=COLOURS["ink"])

    with _quiet():
        return new_picture(
            "coefficients", "Coefficients in the file and in the copies", description + ".", paint,
            height=90 + 40 * len(shown),
        )  # fmt: skip


def _drawn(one: Coefficient) -> bool:
    parts = (one.original, one.synthetic)
    return all(part is not None and math.isfinite(part.low) and math.isfinite(part.high) for part in parts)
