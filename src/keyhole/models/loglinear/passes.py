r"""One pass of iterative proportional fitting, in the tree of cells.

Scaling to a margin changes all cells below a node of its deepest key's layer alike, so margins are taken layer by
layer, the deepest first, and each is scaled on the nodes of its own layer only: these carry the sum of the cells
below. After the last, sums are shared out again from the top. It is proportional fitting in this order of the
margins, at the cost of :math:`\sum_d g_d A_d` instead of :math:`A \sum_d g_d`, with :math:`A_d` nodes and
:math:`g_d` margins in layer d.
"""

import numpy as np

from keyhole.arrays import Vector
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear.information import Design


class Passes:
    """The sums below every node, which passes change in place, and the margins they are fitted to.

    Vectors over all entries of all margins hold one margin after the other, in the order in which a pass takes
    them: the deepest layer first.
    """

    def __init__(self, design: Design, counts: Vector) -> None:
        self.design = design
        self.layers = design.cells.layers
        entries = design.entries_of(design.cells.occupied)
        self.total = float(counts.sum())
        self.target = np.zeros(design.parameters)
        for k in range(entries.shape[1]):
            np.add.at(self.target, entries[:, k], counts)
        self.values = [np.empty(len(layer.own)) for layer in self.layers]
        self._root = np.empty(1)
        self._ready: Vector | None = None  # the sums of the first margin, where the last sweep left them

    def run_pass(self) -> tuple[Vector, float]:
        """Take all margins once; give the change of the effects and the largest discrepancy found."""
        moved, worst = np.zeros(len(self.target)), 0.0
        for depth in reversed(range(len(self.values))):
            here = self.design.by_layer[depth]
            layer, value = self.layers[depth], self.values[depth]
            above = self.values[depth - 1] if depth else self._root
            if not here:
                kernels.lift(layer.branch, value, above)
                continue
            sums = self._ready if self._ready is not None else self._sum(here[0])
            self._ready = None
            nodes = layer.prefix, layer.branch, layer.own, value
            for k, following in zip(here, [*here[1:], None], strict=True):
                part = slice(self.design.begins[k], self.design.begins[k + 1])
                factor, found = _factors(self.target[part], sums.sum(axis=0))
                worst = max(worst, found)
                moved[part] = np.log(factor, out=moved[part], where=factor > 0)
                rows, strides = self.design.margins[k].rows, self.design.margins[k].strides
                if following is None:
                    kernels.scale_and_lift(*nodes, rows, strides, factor, above)
                else:
                    then = self.design.margins[following]
                    sums = np.zeros((2, then.entries))
                    kernels.scale_and_sum(*nodes, rows, strides, factor, then.rows, then.strides, sums)
        return moved, worst

    def share_out(self) -> None:
        """Bring what a pass did to the layers above down to the cells, and begin the sums of the next pass."""
        last = len(self.values) - 1
        for depth in range(1, last + 1):
            layer, value, above = self.layers[depth], self.values[depth], self.values[depth - 1]
            if depth < last or self.design.margins[0].depth < last:
                kernels.share_out(layer.branch, value, above)
            else:
                first = self.design.margins[0]
                self._ready = np.zeros((2, first.entries))
                nodes = layer.prefix, layer.branch, layer.own, value
                kernels.share_out_and_sum(*nodes, above, first.rows, first.strides, self._ready)

    def multiply_out(self, theta: Vector) -> None:
        """Set the cells to the product of their effects."""
        self._multiply_out(theta, len(self.layers))

    def margins_at(self, theta: Vector) -> tuple[Vector, float]:
        """The margins and the total of the products of effects, by one sweep that leaves the cells as they are."""
        effects = self._multiply_out(theta, len(self.layers) - 1)
        found = np.zeros(len(self.target))
        for depth in reversed(range(len(self.layers))):
            layer, here = self.layers[depth], self.design.by_layer[depth]
            above = self.values[depth - 1] if depth else self._root
            nodes, margins = (layer.prefix, layer.branch, layer.own), self.design.flat_of(here)
            if depth == len(self.layers) - 1:
                kernels.product_and_sums(*nodes, above, *margins, effects, found)
                continue
            kernels.sum_margins(*nodes, self.values[depth], *margins, found)
            kernels.lift(layer.branch, self.values[depth], above)
        return found, float(self._root[0])

    def _multiply_out(self, theta: Vector, layers: int) -> Vector:
        """Set the first layers to the product of the effects so far; give the effects."""
        effects = np.where(self.target > 0, np.exp(theta), 0.0)
        above = self._root
        above[0] = 1.0
        for depth in range(layers):
            layer = self.layers[depth]
            nodes = layer.prefix, layer.branch, layer.own
            kernels.multiply_out(
                *nodes, above, *self.design.flat_of(self.design.by_layer[depth]), effects, self.values[depth]
            )
            above = self.values[depth]
        self._ready = None
        return effects

    def _sum(self, k: int) -> Vector:
        margin, layer = self.design.margins[k], self.layers[self.design.margins[k].depth]
        sums = np.zeros((2, margin.entries))
        nodes = layer.prefix, layer.branch, layer.own, self.values[margin.depth]
        kernels.sum_margin(*nodes, margin.rows, margin.strides, sums)
        return sums


def _factors(target: Vector, now: Vector) -> tuple[Vector, float]:
    """What makes a fitted margin the observed one, and the largest relative difference between them."""
    wanted = target > 0
    factor = np.divide(target, now, out=np.zeros(len(target)), where=wanted & (now > 0))
    # Means too small to be told from zero can be scaled to nothing: they stay, and are a discrepancy.
    lost = wanted & ~(now > 0)
    factor[lost] = 1.0
    worst = np.abs(now[wanted] - target[wanted]) / target[wanted]
    return factor, float(worst.max(initial=0.0))
