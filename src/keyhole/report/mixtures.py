"""Into how many parts chains saw the people or the cells fall: the posterior of a number of classes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from keyhole.report.colours import COLOURS
from keyhole.report.words import clean, percent
from keyhole.risk.compare import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = {
    "clusters": "clusters of cells with the same effect",
    "classes": "classes of people",
    "profiles": "profiles that people mix",
}
"""What chains may count, and what it is in words."""

BARS = 30
"""Numbers with a bar of their own; a wider spread is shown by steps of several."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """How many parts the draws of one model had: ``shares[i]`` of them from ``begins[i]`` on, ``step`` numbers."""

    model: str
    counted: str
    begins: tuple[int, ...]
    shares: tuple[float, ...]
    step: int
    mean: float

    @property
    def description(self) -> str:
        """The bars in words."""
        wide = "" if self.step == 1 else f" to {{}} {self.counted}"
        parts = [
            f"{begin}{wide.format(begin + self.step - 1) if wide else f' {self.counted}'}: {percent(share)}"
            for begin, share in zip(self.begins, self.shares, strict=True)
            if share >= 0.005
        ]
        return "; ".join(parts) + f". On average {self.mean:.1f}."


def mixtures_of(comparison: Comparison) -> tuple[Mixture, ...]:
    """The numbers of parts of every model whose chains counted them and did not always find the same."""
    found = []
    for one in comparison.assessments:
        for counted in PARTS:
            values = None if one.draws is None else one.draws.get(counted)
            if values is not None and values.size and np.ptp(values) > 0:
                found.append(_mixture(clean(one.model), counted, np.rint(values).astype(np.int64).ravel()))
    return tuple(found)


def _mixture(model: str, counted: str, values: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Mixture:
    low, high = int(values.min()), int(values.max())
    step = -(-(high - low + 1) // BARS)
    begins = range(low, high + 1, step)
    shares = np.bincount((values - low) // step, minlength=len(begins)) / len(values)
    return Mixture(model, counted, tuple(begins), tuple(shares.tolist()), step, float(values.mean()))


def paint_mixture(axes: "Axes", found: Mixture) -> None:
    """Bars of the shares of the draws."""
    left = [begin - 0.5 for begin in found.begins]
    axes.bar(left, found.shares, found.step * 0.9, align="edge", color=COLOURS["main"])
    axes.axvline(found.mean, color=COLOURS["ink"], linewidth=1.5, linestyle=(0, (5, 3)))
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel(PARTS[found.counted])
    axes.set_ylabel("share of the draws")
    axes.margins(y=0.12)
