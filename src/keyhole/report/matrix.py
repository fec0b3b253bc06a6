"""The picture of which keys go together: a triangle of squares, each key named once, where row and column meet."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keyhole.inference.dependence import Dependence
from keyhole.report.colours import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST_KEYS, MOST_KEYS = 3, 20
"""With fewer keys there is nothing to see; of more, those with the strongest pairs are drawn."""

ROW, WIDEST_CELL, GAP = 30, 62, 2
"""Height of a row, width of a cell where there is room, and the space between two, in pixels."""

READABLE_CELL = 25
"""Width from which a cell can hold its number."""

DARKEST, BEND = 0.56, 0.65
"""Opacity of the strongest pair, at which ink on it still has a contrast of 4.5, and how fast it fades."""

OUTLINED = 0.2
"""A square of less than this share of the strongest is so pale that it needs an outline."""

LETTER = 9.0
"""Width of a capital letter of a label, about."""

LEGEND, LEGEND_HEIGHT = 216, 78
DOUBLED = math.log(2.0)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Keys in their order and the strength of each pair (row > column), as they are drawn."""

    keys: tuple[str, ...]
    strength: dict[tuple[int, int], float]

    @property
    def top(self) -> float:
        """The strength with the darkest square: the strongest, or a doubling of the odds if all are weaker."""
        return max([DOUBLED, *self.strength.values()])

    def height(self, *, wide: bool) -> int:
        """Pixels of the whole drawing; on a narrow page the legend stands below the triangle."""
        rows = ROW * len(self.keys) + 8
        return max(rows, LEGEND_HEIGHT + 24) if wide else rows + LEGEND_HEIGHT + 12


def matrix_of(found: Dependence) -> Matrix | None:
    """The keys to draw, those with the strongest pairs if they are very many; None if they are too few."""
    if len(found.keys) < FEWEST_KEYS:
        return None
    strongest: dict[str, float] = dict.fromkeys(found.keys, 0.0)
    for pair in found.pairs:
        for key in (pair.first, pair.second):
            strongest[key] = max(strongest.get(key, 0.0), pair.strength)
    kept = set(sorted(strongest, key=lambda key: -strongest[key])[:MOST_KEYS])
    keys = tuple(key for key in found.keys if key in kept)
    place = {key: row for row, key in enumerate(keys)}
    strength = {
        (max(place[pair.first], place[pair.second]), min(place[pair.first], place[pair.second])): pair.strength
        for pair in found.pairs
        if pair.first in place and pair.second in place
    }
    return Matrix(keys, strength)


def paint_matrix(figure: "Figure", matrix: Matrix, width: int, *, wide: bool) -> None:
    """Draw in pixels: squares left of and below the names, the legend in the empty corner or below."""
    height = matrix.height(wide=wide)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    labels = [_short(key, 22 if wide else 13) for key in matrix.keys]
    cell = _cell_width(labels, width, wide=wide)
    for (row, column), strength in matrix.strength.items():
        _square(axes, column * cell, 4 + row * ROW, cell - GAP, ROW - GAP, strength / matrix.top)
        if cell >= READABLE_CELL:
            axes.text(
                column * cell + (cell - GAP) / 2, 4 + row * ROW + (ROW - GAP) / 2, _figure(strength),
                ha="center", va="center_baseline", fontsize=12 if cell >= 32 else 10.5, color=COLOURS["ink"],
                fontweight="bold" if strength >= DOUBLED else "normal", gid=f"value-{row}-{column}",
            )  # fmt: skip
    for place, label in enumerate(labels):
        axes.text(
            place * cell + (6 if place else 1), 4 + place * ROW + (ROW - GAP) / 2, label,
            ha="left", va="center_baseline", fontsize=12.5, color=COLOURS["ink"],
        )  # fmt: skip
    left, upper = (width - LEGEND - 14, 6) if wide else (1, height - LEGEND_HEIGHT)
    _legend(axes, left, upper, matrix.top)


def _cell_width(labels: list[str], width: int, *, wide: bool) -> float:
    """As wide as the names right of the squares allow; the legend needs the upper right corner of a wide page."""
    fits = [(width - 6 - LETTER * len(label)) / place for place, label in enumerate(labels) if place]
    if wide:
        beside = LEGEND + 34
        under = range(1, min(len(labels), math.ceil(LEGEND_HEIGHT / ROW) + 1))
        fits += [(width - beside - LETTER * len(labels[place])) / place for place in under]
    return max(4.0, min(WIDEST_CELL, *fits))


def _square(axes: "Axes", x: float, y: float, width: float, height: float, share: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    shape = f"round,pad=0,rounding_size={min(3.0, width / 4)}"
    look: Any = {"facecolor": COLOURS["main"], "linewidth": 0, "alpha": _opacity(share)}
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, **look))
    if share < OUTLINED:
        outline: Any = {"facecolor": "none", "edgecolor": COLOURS["line"], "linewidth": 0.8}
        axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, **outline))


def _opacity(share: float) -> float:
    return float(round(DARKEST * max(share, 0.0) ** BEND, 3))


def _short(key: str, length: int) -> str:
    """A name that keeps its end as well as its beginning: long names often differ in the end only."""
    if len(key) <= length:
        return key
    tail = length // 3
    return f"{key[: length - tail - 1].rstrip()}…{key[-tail:].lstrip()}"


def _figure(strength: float) -> str:
    return "0" if strength < 0.05 else f"{strength:.1f}"


def _legend(axes: "Axes", left: float, upper: float, top: float) -> None:
    """A bar from none to the strongest, with strengths below it and what they do to odds."""
    steps = 36
    bar = upper + 22
    title = "strength, and change of odds"
    axes.text(left, upper + 6, title, ha="left", va="center_baseline", fontsize=12, color=COLOURS["soft-ink"])
    from matplotlib.patches import Rectangle

    for step in range(steps):
        axes.add_patch(
            Rectangle(
                (left + LEGEND * step / steps, bar), LEGEND / steps, 12, facecolor=COLOURS["main"], linewidth=0,
                alpha=_opacity((step + 0.5) / steps), snap=False,
            )
        )  # fmt: skip
    axes.add_patch(Rectangle((left, bar), LEGEND, 12, facecolor="none", edgecolor=COLOURS["line"], linewidth=0.8))
    for doublings in _ticks(top):
        x = left + LEGEND * doublings * DOUBLED / top
        axes.plot([x, x], [bar + 12, bar + 16], color=COLOURS["soft-ink"], linewidth=1)
        strength = "0" if not doublings else f"{doublings * DOUBLED:.1f}"
        odds = "same" if not doublings else f"{2**doublings}-fold"
        align = "left" if not doublings else "center"
        for line, words in enumerate((strength, odds)):
            axes.text(
                x, bar + 25 + 16 * line, words, ha=align, va="center_baseline", fontsize=11.5,
                color=COLOURS["ink" if not line else "soft-ink"],
            )  # fmt: skip


def _ticks(top: float) -> list[int]:
    """Doublings of the odds that the legend names: at most four, none of them crowded."""
    most = math.floor(top / DOUBLED + 1e-9)
    step = max(1, math.ceil(most / 4))
    return list(range(0, most + 1, step))
