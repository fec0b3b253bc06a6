"""The pictures of the page on the risk of synthetic files."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keyhole.report.colours import COLOURS
from keyhole.report.pictures import Picture, _quiet, new_axes, new_picture
from keyhole.report.synthetic_content import ChanceHistogram, RankHistogram, SyntheticReport
from keyhole.report.words import count, percent, plural
from keyhole.synthesis.risk_result import CurvePoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHES: Any = (0, (5, 3))


def draw_synthetic(report: SyntheticReport) -> dict[str, Picture]:
    """The pictures that have something to show, by name: ranks, chances, by-copies, by-records."""
    with _quiet():
        found = {
            "ranks": _ranks(report.ranks),
            "chances": _chances(report.chances, report.chance.highest),
            "by-copies": _curve("by-copies", report.by_copies, report.chance.mean_before),
            "by-records": _curve("by-records", report.by_records, report.chance.mean_before),
        }
    return {name: picture for name, picture in found.items() if picture is not None}


def _ranks(found: RankHistogram) -> Picture:
    parts = [
        f"{_ranks_named(begin, found.step)}: {plural(number, 'combination')}"
        for begin, number in zip(found.begins, found.counts, strict=True)
        if number
    ]

    def paint(figure: "Figure", wide: bool) -> None:
        axes = new_axes(figure, grid="y")
        colours = [COLOURS["alarm"] if found.step == 1 else COLOURS["main"]]
        colours += [COLOURS["main"]] * (len(found.counts) - 1)
        left = [begin - 0.45 for begin in found.begins]
        axes.bar(left, found.counts, found.step * 0.9, align="edge", color=colours)
        axes.set_xlabel("rank of the truth among the candidates")
        axes.set_ylabel("combinations")
        axes.set_xlim(0.4, found.begins[-1] + found.step - 0.4)
        axes.margins(y=0.12)
        axes.locator_params(axis="x", integer=True, nbins=9 if wide else 5)

    return new_picture("ranks", "How high the truth ranks", "; ".join(parts) + ".", paint, height=260)


def _ranks_named(begin: int, step: int) -> str:
    return f"rank {begin}" if step == 1 else f"ranks {count(begin)} to {count(begin + step - 1)}"


def _chances(found: ChanceHistogram, highest: float) -> Picture:
    bars = list(zip(found.edges[:-1], found.edges[1:], found.counts, strict=True))
    parts = [
        f"{_share(low)} to {_share(high)}: {plural(number, 'combination')}" for low, high, number in bars if number
    ]
    before = f"{percent(found.before)}{'' if found.alike else ' on average'}"

    def paint(figure: "Figure", wide: bool) -> None:
        axes = new_axes(figure, grid="y")
        width = found.edges[1] - found.edges[0]
        axes.bar(found.edges[:-1], found.counts, width * 0.9, align="edge", color=COLOURS["main"])
        axes.axvline(found.before, color=COLOURS["alarm"], linewidth=1.5, linestyle=DASHES)
        left = 2 * found.before <= found.edges[-1]
        axes.annotate(
            f"before the copies: {before}", (found.before, 1), (5 if left else -5, 0), color=COLOURS["alarm"],
            xycoords=("data", "axes fraction"), textcoords="offset points", va="bottom",
            ha="left" if left else "right",
        )  # fmt: skip
        # One combination among thousands has a bar too low to be seen.
        if 10 * found.counts[-1] < max(found.counts):
            axes.annotate(
                f"highest: {percent(highest)}", (found.edges[-1], 0), (0, 6), textcoords="offset points",
                ha="right", va="bottom", color=COLOURS["ink"],
            )  # fmt: skip
        axes.set_xlim(0, found.edges[-1])
        axes.xaxis.set_major_formatter(lambda share, _: _share(share))
        axes.locator_params(axis="x", nbins=9 if wide else 4)
        axes.set_xlabel("chance of the truth")
        axes.set_ylabel("combinations")
        axes.margins(y=0.12)

    description = "; ".join(parts) + f". The highest is {percent(highest)}; before the copies it was {before}."
    return new_picture("chances", "How likely the truth is", description, paint, height=270)


def _curve(name: str, points: Sequence[CurvePoint], before: float) -> Picture | None:
    """The highest and the mean chance along copies or records; one point alone needs no picture."""
    if len(points) < 2:
        return None
    copies = name == "by-copies"
    parts = [
        f"{plural_copies(point.number) if copies else plural(point.number, 'record')}: mean "
        f"{percent(point.mean_probability)}, highest {percent(point.max_probability)}"
        for point in points
    ]
    lines = (
        ("highest chance", "alarm", [point.max_probability for point in points]),
        ("mean chance", "main", [point.mean_probability for point in points]),
    )

    def paint(figure: "Figure", wide: bool) -> None:
        axes = new_axes(figure, grid="y")
        along = [point.number for point in points]
        for label, colour, values in lines:
            axes.plot(along, values, "o-", color=COLOURS[colour], linewidth=2.5, markersize=6, label=label)
        axes.axhline(before, color=COLOURS["ink"], linewidth=1.2, linestyle=DASHES, label="before the copies")
        axes.yaxis.set_major_formatter(lambda share, _: _share(share))
        axes.locator_params(axis="x", integer=True, nbins=9 if wide else 4)
        axes.xaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
        axes.set_ylim(0, 1.12 * max(before, *(value for *_, values in lines for value in values)))
        axes.set_xlabel("copies" if copies else "records of each copy")
        axes.set_ylabel("chance of the truth")
        figure.legend(loc="outside upper left", ncols=3 if wide else 1, frameon=False, labelcolor=COLOURS["ink"])

    title = "Risk by number of copies" if copies else "Risk by number of synthetic records"
    description = "; ".join(parts) + f". Before the copies the mean was {percent(before)}."
    return new_picture(name, title, description, paint, height=280, narrow_height=320)


def plural_copies(number: int) -> str:
    """A number of copies.

    Examples
    --------
    >>> plural_copies(1), plural_copies(20)
    ('1 copy', '20 copies')
    """
    return "1 copy" if number == 1 else f"{count(number)} copies"


def _share(share: float) -> str:
    return f"{100 * share:.4g}%"
