r"""Extended maximum likelihood of a hierarchical log-linear model by iterative proportional fitting.

The cell means are a product of effects, one for each generator g and each entry of its margin,

.. math:: m_c = \prod_g e^{\theta_g(c_g)},

and the likelihood equations say that every fitted margin of a generator is the observed one. One step scales the
cells to one margin; a pass takes all margins in turn. The fit is the limit of the passes (Darroch & Ratcliff 1972,
*Annals of Mathematical Statistics* 43). Cells with an empty margin are zero in the limit and are left out from the
start: the extended maximum likelihood estimate, which always exists.

**A pass in the tree of cells.** Scaling to a margin changes all cells below a node of its deepest key's layer
alike, so margins are taken layer by layer, the deepest first, and each is scaled on the nodes of its own layer
only: these carry the sum of the cells below. After the last, sums are shared out again from the top. It is
proportional fitting in this order of the margins, at the cost of :math:`\sum_d g_d A_d` instead of :math:`A
\sum_d g_d`, with :math:`A_d` nodes and :math:`g_d` margins in layer d.

**Acceleration.** Passes are a map of :math:`\theta`. Anderson's method extrapolates the last few of them to where
their changes would vanish; the next pass starts there. A pass never lowers the log likelihood
:math:`\sum_g \sum n_g \theta_g - \sum_c m_c`, so a start that ended below the best so far is given up. The limit
is the same, the passes fewer. A fit that is slow even so, because some means go to zero although no margin is
empty, gets Newton steps between passes: :math:`\theta + I^{-1}(n - X'm)`, under the same guard.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import special

from keyhole.arrays import IntVector, Vector, read_only
from keyhole.errors import FitFailed
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.formula import Generators
from keyhole.models.loglinear.information import Coding, Design
from keyhole.progress import Progress, silent

MEMORY = 8
"""Passes that the extrapolation looks back on."""

NEWTON_AFTER = 25
"""Passes after which Newton steps are tried, and again after one that failed."""

NEWTON_PARAMETERS, NEWTON_CELLS = 3000, 5_000_000
"""Effects and cells beyond which a Newton step costs more than it saves."""

PATIENCE = 60
"""Passes without a smaller discrepancy after which the fit is given up."""

Ending = Literal["converged", "no progress", "pass limit"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit of the sufficient margins.

    Attributes
    ----------
    fitted
        The mean of each cell on the scale of the counts.
    effects
        theta_g of each generator, one axis per key; entries that nobody has are minus infinity. Only their
        sum in a cell has a meaning.
    passes
        How often all margins were taken.
    discrepancy
        The largest relative difference between a fitted and an observed entry of a margin that the last pass
        found.
    risk_change
        The largest relative change of tau1 and tau2 over the last pass.
    ending
        Why the passes stopped.
    """

    cells: Cells
    generators: Generators
    fitted: Vector = field(repr=False)
    effects: tuple[Vector, ...] = field(repr=False)
    passes: int
    discrepancy: float
    risk_change: float
    ending: Ending

    @property
    def converged(self) -> bool:
        return self.ending == "converged"

    @property
    def at_occupied(self) -> Vector:
        """The means of the occupied cells, in the order of the sample's table."""
        return self.fitted[self.cells.occupied]


def fit_margins(
    cells: Cells,
    counts: Vector | IntVector,
    generators: Generators,
    *,
    start: Fitted | None = None,
    uniques: IntVector | None = None,
    multiplier: Vector | float = 1.0,
    tolerance: float = 1e-6,
    risk_tolerance: float = 1e-4,
    most_passes: int = 2000,
    progress: Progress = silent,
) -> Fitted:
    r"""The maximum-likelihood means of the cells.

    Parameters
    ----------
    counts
        The count, or the sum of weights, of each occupied cell of the table.
    start
        A fit to begin with, of any terms over the same levels; those in no generator of this fit are left out.
    uniques, multiplier
        The sample uniques, as positions among the occupied cells, and what turns a fitted mean into the mean of
        the unsampled count: (N - n)/n if records are alike. Passes go on until tau1 and tau2 of these cells
        settle.
    tolerance
        Relative difference between fitted and observed margins below which the fit has converged.
    risk_tolerance
        Relative change of tau1 and tau2 over a pass below which it has.

    Raises
    ------
    FitFailed
        There is nothing to fit.
    """
    observed = np.asarray(counts, dtype=np.float64)
    if not generators or not len(cells) or not observed.sum() > 0:
        raise FitFailed(f"A fit needs records and terms; found {observed.sum():g} and {len(generators)}.")
    fitting = _Fitting(Design(cells, generators), observed)
    watched = fitting.design.entries_of(cells.occupied[uniques] if uniques is not None else np.empty(0, np.int64))
    acceleration = _Acceleration(fitting)
    theta = fitting.theta_of(start)
    fitting.multiply_out(theta)
    risk, best, since = np.zeros(2), np.inf, 0
    ending: Ending = "pass limit"
    for passes in range(1, most_passes + 1):
        moved, discrepancy = fitting.run_pass()
        reached = theta + moved
        after = risk_of(np.exp(reached[watched].sum(axis=1)) * multiplier)
        change = float(np.max(np.abs(after - risk) / np.maximum(after, 1e-300), initial=0.0))
        risk = after
        progress("fitting margins", passes, None, f"margins within {discrepancy:.1g}")
        if discrepancy <= tolerance and change <= risk_tolerance:
            ending = "converged"
            break
        best, since = (discrepancy, 0) if discrepancy < 0.99 * best else (best, since + 1)
        if since == PATIENCE:
            ending = "no progress"
            break
        if passes < most_passes:
            theta = acceleration.after(theta, reached)
            if theta is reached:
                fitting.share_out()
            else:
                fitting.multiply_out(theta)
    fitting.share_out()
    return Fitted(
        cells,
        generators,
        read_only(fitting.values[-1]),
        fitting.effects_of(reached),
        passes,
        discrepancy,
        change,
        ending,
    )


def risk_of(mean: Vector) -> Vector:
    r""":math:`\tau_1 = \sum e^{-\mu}` and :math:`\tau_2 = \sum (1 - e^{-\mu})/\mu`."""
    return np.array([np.exp(-mean).sum(), special.exprel(-mean).sum()])


class _Acceleration:
    """Where the next pass should start: extrapolated, or a Newton step ahead, and never to the worse for long."""

    def __init__(self, fitting: "_Fitting") -> None:
        self._fitting = fitting
        self._scale = np.sqrt(fitting.target)  # a change is measured in standard errors of the margins
        self._moved: deque[Vector] = deque(maxlen=MEMORY)
        self._reached: deque[Vector] = deque(maxlen=MEMORY)
        self._best, self._good = -np.inf, fitting.target
        self._wait = NEWTON_AFTER
        self._possible = (
            fitting.design.parameters <= NEWTON_PARAMETERS and len(fitting.design.cells) <= NEWTON_CELLS
        )
        self._coding: Coding | None = None
        self._miss = np.inf

    def after(self, theta: Vector, reached: Vector) -> Vector:
        """The next start, given where the last pass started and ended; ``reached`` itself to simply go on."""
        # After a pass the means add up to the counts, so this is the log likelihood but for a constant.
        likelihood = float(self._fitting.target @ reached)
        if not likelihood >= self._best - 1e-9 * float(self._fitting.target.sum()):
            self._forget()
            return self._good.copy()
        self._best, self._good = likelihood, reached
        self._wait -= 1
        proposed = self._newton(reached) if self._possible and self._wait < 0 else self._anderson(theta, reached)
        return proposed if np.isfinite(proposed).all() else reached

    def _forget(self) -> None:
        self._moved.clear()
        self._reached.clear()
        self._best, self._wait, self._coding, self._miss = -np.inf, NEWTON_AFTER, None, np.inf

    def _anderson(self, theta: Vector, reached: Vector) -> Vector:
        self._moved.append((reached - theta) * self._scale)
        self._reached.append(reached)
        if len(self._moved) < 2:
            return reached
        changes = np.diff(np.array(self._moved), axis=0)
        weights = np.linalg.lstsq(changes.T, self._moved[-1], rcond=1e-8)[0]
        return np.asarray(reached - weights @ np.diff(np.array(self._reached), axis=0))

    def _newton(self, reached: Vector) -> Vector:
        self._fitting.share_out()
        fitted, design = self._fitting.values[-1], self._fitting.design
        score = self._fitting.target - design.margins_of(fitted)
        miss = float(np.abs(score).max())
        if miss > 0.7 * self._miss:
            # Where a mean vanishes an exact step still divides the miss by e: this one is not worth its price.
            self._forget()
            return reached
        # A factorisation serves as long as each step with it gains a digit.
        if self._coding is None or miss > 0.1 * self._miss:
            self._coding = Coding.of(design.information(fitted))
        self._miss = miss
        return reached + self._coding.solve(score)


class _Fitting:
    """The sums below every node, which passes change in place, and the margins they are fitted to.

    Vectors over all entries of all margins hold one margin after the other, in the order in which a pass takes
    them: the deepest layer first.
    """

    def __init__(self, design: Design, counts: Vector) -> None:
        self.design = design
        self.layers = design.cells.layers
        entries = design.entries_of(design.cells.occupied)
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
        effects = np.where(self.target > 0, np.exp(theta), 0.0)
        above = np.ones(1)
        for depth, layer in enumerate(self.layers):
            here = self.design.by_layer[depth]
            first, rows, strides, _ = self.design.flat
            ends, begins = first[here.start : here.stop + 1], self.design.begins[here.start : here.stop]
            nodes = layer.prefix, layer.branch, layer.own
            kernels.multiply_out(*nodes, above, ends, rows, strides, begins, effects, self.values[depth])
            above = self.values[depth]
        self._ready = None

    def theta_of(self, start: Fitted | None) -> Vector:
        """The effects of a fit, each given to the first margin here that has all its keys; 0 without a fit."""
        theta = np.zeros(len(self.target))
        if start is None:
            return theta
        if start.cells.sizes != self.design.cells.sizes:
            raise ValueError("A fit can only start from one over the same levels.")
        for generator, effects in zip(start.generators, start.effects, strict=True):
            for k, margin in enumerate(self.design.margins):
                if set(generator) <= set(margin.generator):
                    spread = effects.reshape(
                        [self.design.cells.sizes[j] if j in generator else 1 for j in margin.generator]
                    )
                    read = [margin.generator.index(j) for j in self.design.cells.order if j in margin.generator]
                    spread = np.broadcast_to(spread.transpose(read), margin.shape)
                    theta[self.design.begins[k] : self.design.begins[k + 1]] += np.nan_to_num(
                        spread, neginf=0.0
                    ).ravel()
                    break
        return theta

    def effects_of(self, theta: Vector) -> tuple[Vector, ...]:
        """The effects of each generator, in the order in which they were given."""
        known = np.where(self.target > 0, theta, -np.inf)
        found = {
            margin.generator: read_only(margin.in_table_order(known[begin:end], self.design.cells.order))
            for margin, begin, end in zip(
                self.design.margins, self.design.begins, self.design.begins[1:], strict=False
            )
        }
        return tuple(found[generator] for generator in self.design.generators)

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
