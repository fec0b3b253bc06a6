"""The risk of synthetic files as one self-contained web page: no script, no network, nothing beside the file."""

from keyhole.report import words
from keyhole.report.html import MARKS
from keyhole.report.page import render_page
from keyhole.report.synthetic_content import MOST_LISTED, TOP, SyntheticReport
from keyhole.report.synthetic_pictures import draw_synthetic, plural_copies
from keyhole.report.synthetic_verdict import shown_khat

CERTAIN = 0.0005
"""Chances nearer to 0 or 1 are not rounded to it."""


def render_synthetic_html(content: SyntheticReport) -> str:
    """The page as HTML, complete in itself.

    Labels come from the data and may hold anything; the template escapes all of them.
    """
    return render_page(
        "synthetic.html.j2",
        pictures=draw_synthetic(content),
        sayings=(
            words.rounded, words.percent, words.count, words.plural, words.shortened, words.figure_of,
            words.span, words.listed, plural_copies, chance, with_error, needed, shown_khat,
        ),
        report=content,
        mark=MARKS,
        top=TOP,
        most=MOST_LISTED,
    )  # fmt: skip


def chance(share: float) -> str:
    """A chance to a tenth of a per cent, never rounded to a certainty that it is not.

    Examples
    --------
    >>> chance(0.19), chance(0.99999)
    ('19.0%', 'more than 99%')
    """
    return f"{share:.1%}" if CERTAIN <= share <= 1 - CERTAIN else words.percent(min(share, 1.0))


def with_error(share: float, error: float) -> str:
    """A chance and its Monte Carlo standard error in points of a per cent.

    Examples
    --------
    >>> with_error(0.0883, 0.0021), with_error(0.5, 0.0)
    ('8.8% ± 0.2', '50.0% ± <0.1')
    """
    if not error < float("inf"):
        return f"{chance(share)} ± unknown"
    return f"{chance(share)} ± {f'{100 * error:.1f}' if error >= CERTAIN else '<0.1'}"


def needed(times: float) -> str:
    """How many times likelier the truth would have to be beforehand.

    Examples
    --------
    >>> needed(1.0), needed(1.4649), needed(25_310.2), needed(1e280)
    ('1', '1.46', '25,310', 'over a billion')
    """
    if not times < 1e9:
        return "over a billion"
    return f"{times:,.0f}" if times >= 100 else f"{times:.2f}".removesuffix(".00")
