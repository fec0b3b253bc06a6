"""The pictures of a validation: errors by model, calibration, errors of classification."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from keyhole.report.colours import COLOURS
from keyhole.report.pictures import Picture, _label, _quiet, _styled, new_axes, new_picture
from keyhole.report.validation_content import BySize, Line, signed
from keyhole.report.words import count, percent, plural
from keyhole.validation.measures import Measures, TauMeasures, calibration_points
from keyhole.validation.per_record import KAPPAS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 12
"""Models that have a panel of their own; the others are in the tables."""

FURTHEST = 1.5
"""Relative errors beyond are drawn at the edge."""

TOLD_KAPPAS = (5, 25, 45)
"""The thresholds, by place, whose errors are told in words: 0.1, 0.5, 0.9."""

Tau = Literal["tau1", "tau2"]
Panel = Callable[["Axes", Measures, bool], None]


def draw_validation(sizes: Sequence[BySize]) -> dict[str, Picture]:
    """The pictures that have something to show, each name followed by the sample size.

    The names are tau1, tau2, calibration-r1, calibration-r2, errors and both.
    """
    found: dict[str, Picture | None] = {}
    with _quiet():
        for one in sizes:
            lines = [line.measures for line in one.lines if line.measures.tau1 is not None]
            shown = lines[:MOST_PANELS]
            found |= {
                f"tau1-{one.size}": _by_model(one, "tau1"),
                f"tau2-{one.size}": _by_model(one, "tau2"),
                f"calibration-r1-{one.size}": _calibration(one.size, shown, "r1"),
                f"calibration-r2-{one.size}": _calibration(one.size, shown, "r2"),
                f"errors-{one.size}": _classification(one.size, [m for m in shown if m.false_positives]),
                f"both-{one.size}": _both(one.size, [m for m in shown if m.missed]),
            }
    return {name: picture for name, picture in found.items() if picture is not None}


def _by_model(one: BySize, name: Tau) -> Picture | None:
    rows = [(line, tau) for line in one.lines if (tau := _measures(line, name)) is not None]
    if not rows:
        return None
    parts = [
        f"{line.model}: middle error {signed(tau.errors[2])}, 95% of errors from {signed(tau.errors[0])} to "
        f"{signed(tau.errors[4])}, covered {tau.coverage:.0%}"
        for line, tau in rows
    ]

    def paint(figure: "Figure", wide: bool) -> None:
        axes = new_axes(figure)
        for y, (_, tau) in enumerate(rows):
            low, first, middle, third, high = (min(max(error, -1.0), FURTHEST) for error in tau.errors)
            colour = COLOURS["main"]
            axes.plot([low, high], [y, y], color=colour, linewidth=2)
            axes.plot([first, third], [y, y], color=colour, linewidth=7, solid_capstyle="butt")
            beyond = tau.errors[2] > FURTHEST
            axes.plot([middle], [y], ">" if beyond else "o", color=COLOURS["ink"], markersize=9 if beyond else 7)
            if beyond:
                axes.annotate(
                    signed(tau.errors[2]),
                    (middle, y),
                    (-8, 5),
                    textcoords="offset points",
                    ha="right",
                    va="bottom",
                )
        axes.axvline(0.0, color=COLOURS["alarm"], linewidth=1.5, linestyle=(0, (5, 3)), zorder=0)
        axes.set_yticks(range(len(rows)), [_label(line.model, wide) for line, _ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        ends = [error for _, tau in rows for error in (tau.errors[0], tau.errors[4])]
        reach = min(FURTHEST, max(0.1, *map(abs, ends)))
        axes.set_xlim(-min(1.0, reach) * 1.05, reach * 1.05)
        axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:+.0f}%" if round(share, 6) else "0")
        axes.locator_params(axis="x", nbins=9 if wide else 4)
        axes.set_xlabel(f"relative error of {name}")

    title = f"Errors of {name}, samples of {count(one.size)}"
    height = 90 + 30 * len(rows)
    return new_picture(f"{name}-{one.size}", title, "; ".join(parts) + ".", paint, height=height)


def _measures(line: Line, name: Tau) -> TauMeasures | None:
    return line.measures.tau1 if name == "tau1" else line.measures.tau2


def _calibration(size: int, shown: Sequence[Measures], name: Literal["r1", "r2"]) -> Picture | None:
    def points(one: Measures) -> tuple[tuple[float, float, int], ...]:
        return calibration_points(one.calibration_r1 if name == "r1" else one.calibration_r2)

    shown = [one for one in shown if points(one)]  # no sample may have had a unique record

    def panel(axes: "Axes", one: Measures, wide: bool) -> None:
        axes.plot([0, 1], [0, 1], color=COLOURS["line"], linewidth=1.2, zorder=1)
        found = points(one)
        most = max(number for _, _, number in found)
        sizes = [10 + 70 * (number / most) ** 0.5 for _, _, number in found]
        axes.plot([x for x, _, _ in found], [y for _, y, _ in found], color=COLOURS["light"], linewidth=1.2)
        axes.scatter([x for x, _, _ in found], [y for _, y, _ in found], sizes, color=COLOURS["main"], zorder=3)

    parts = [
        f"{one.model}: " + ", ".join(f"{percent(x)} claimed and {percent(y)} true" for x, y, _ in points(one))
        for one in shown
    ]
    true = "unique in truth" if name == "r1" else "right matches in truth"
    title = f"Calibration of {name}, samples of {count(size)}"
    return _panels(f"calibration-{name}-{size}", title, "; ".join(parts) + ".", shown, panel, ("claimed", true))


def _classification(size: int, shown: Sequence[Measures]) -> Picture | None:
    def panel(axes: "Axes", one: Measures, wide: bool) -> None:
        axes.plot(KAPPAS, one.false_positives, color=COLOURS["main"], linewidth=2, label="false positives")
        axes.plot(
            KAPPAS, one.false_negatives, color=COLOURS["alarm"], linewidth=2, linestyle=(0, (5, 2)),
            label="false negatives",
        )  # fmt: skip

    parts = [
        f"{one.model}: "
        + ", ".join(
            f"at {KAPPAS[place]:.1f} false positives {percent(one.false_positives[place])} and false negatives "
            f"{percent(one.false_negatives[place]) if one.false_negatives else 'none possible'}"
            for place in TOLD_KAPPAS
        )
        for one in shown
    ]
    title = f"Wrong classifications by threshold, samples of {count(size)}"
    both = [one for one in shown if one.false_negatives]
    labels = ("kappa", "share")
    return _panels(f"errors-{size}", title, "; ".join(parts) + ".", both, panel, labels, legend=True)


def _both(size: int, shown: Sequence[Measures]) -> Picture | None:
    def panel(axes: "Axes", one: Measures, wide: bool) -> None:
        for other in shown:
            axes.plot(KAPPAS, other.missed, color=COLOURS["line"], linewidth=1, zorder=1)
        axes.plot(KAPPAS, one.missed, color=COLOURS["main"], linewidth=2.2, zorder=2)

    parts = [f"{one.model}: {percent(one.missed[5])} missed at 10% false positives" for one in shown]
    title = f"Uniques missed by false positives, samples of {count(size)}"
    labels = ("false positives", "missed")
    return _panels(f"both-{size}", title, "; ".join(parts) + ".", shown, panel, labels)


def _panels(
    name: str,
    title: str,
    description: str,
    shown: Sequence[Measures],
    panel: Panel,
    labels: tuple[str, str],
    legend: bool = False,
) -> Picture | None:
    """A panel for each model, from 0 to 1 both ways."""
    if not shown:
        return None

    def paint(figure: "Figure", wide: bool) -> None:
        columns = min(len(shown), 3 if wide else 2)
        rows = -(-len(shown) // columns)
        for place, one in enumerate(shown, start=1):
            axes = _styled(figure.add_subplot(rows, columns, place), "y")
            panel(axes, one, wide)
            axes.set_title(_label(one.model, wide), fontsize=12, loc="left", color=COLOURS["ink"])
            axes.set_xlim(-0.03, 1.03)
            axes.set_ylim(-0.03, 1.05)
            axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
            if place > len(shown) - columns:
                axes.set_xlabel(labels[0])
            if place % columns == 1 or columns == 1:
                axes.set_ylabel(labels[1])
            if legend and place == 1:
                figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False)

    rows_wide, rows_narrow = (-(-len(shown) // min(len(shown), columns)) for columns in (3, 2))
    return new_picture(
        name,
        title,
        description,
        paint,
        height=70 + 185 * rows_wide,
        narrow_height=70 + (185 if len(shown) > 1 else 260) * rows_narrow,
    )


def caption_of_panels(models: int) -> str:
    """What is not shown, if anything."""
    hidden = models - MOST_PANELS
    return "" if hidden <= 0 else f" The {plural(hidden, 'model')} with the largest errors of tau1 are left out."
