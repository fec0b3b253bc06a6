r"""All two-way interactions under an L1 penalty: a Poisson model between independence and all pairs.

The log mean of a cell is a sum of main effects and of one coefficient for each pair of levels of each pair of
keys, :math:`\log m_c = \sum_j \theta_j(c_j) + \sum_{i<j} u_{ij}(c_i, c_j)`, and the fit maximises

.. math:: \sum_c (f_c \log m_c - m_c) - \lambda \sum |u_{ij}(a, b)|.

Main effects carry no penalty. :math:`\lambda` is counted in records: a pair of levels whose count differs from
what the other terms expect by no more than :math:`\lambda` needs no coefficient.

**One step.** The pairs of levels of two keys divide the cells among them. With all else fixed, changing
:math:`u_{ab}` by d multiplies the margin :math:`m_{ab}` by :math:`e^d` and touches no other entry, so each
coefficient of the block has its own problem, max :math:`n_{ab} d - m_{ab} (e^d - 1) - \lambda |u_{ab} + d|`,
solved by

.. math:: u_{ab} \leftarrow \begin{cases}
          u_{ab} + \log\{(n_{ab} - \lambda)/m_{ab}\} & \text{if } n_{ab} > \lambda \text{ and this is positive} \\
          u_{ab} + \log\{(n_{ab} + \lambda)/m_{ab}\} & \text{if this is negative} \\
          0 & \text{otherwise.} \end{cases}

It is iterative proportional fitting to thresholded margins, and a pass costs what a pass of that costs. An empty
margin has a finite coefficient, so all admissible cells of the levels that occur keep a positive mean. The penalty
separates over the blocks, hence passes converge to the maximum (Tseng 2001, *JOTA* 109). They would be slow to
move what a whole row of a block has in common into the main effect that says the same without a penalty; after
each few passes the medians of rows and columns, which are the best such moves, are taken there at once. Passes
are also extrapolated to where their changes would vanish; the leap is taken if the objective is higher there
(Bertrand & Massias 2021, *Anderson acceleration of coordinate descent*, AISTATS).

**Part of the cells** can stand for all. A cell that stands for w cells counts as w times its mean in every margin,
and nothing else changes.

**The conditions of the maximum** (Karush, Kuhn, Tucker) are :math:`n_{ab} - m_{ab} = \lambda \,
\mathrm{sign}(u_{ab})` where the coefficient is not zero, :math:`|n_{ab} - m_{ab}| \le \lambda` where it is, and
fitted main margins equal to the observed ones. Their largest violation, in proportion to :math:`n_{ab} + \lambda`,
is what is reported. At :math:`\lambda_{\max} = \max |n_{ab} - m_{ab}|` under independence, and above, no
coefficient is needed.
"""

from collections.abc import Sequence

import numpy as np

from keyhole.arrays import IntVector, Mask, Vector, read_only
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear.information import Design
from keyhole.models.loglinear.penalised_fit import PenalisedFit
from keyhole.models.loglinear.thresholds import extrapolated, middle, thresholded, violations

TOLERANCE = 1e-4
"""Violation of the conditions of the maximum, in proportion to the margin, that counts as none."""

MOST_PASSES = 1000

REMEMBERED = 5
"""Passes between leaps."""

LOOKED_AT = 20
"""Passes after which blocks without coefficients are looked at, although the others have not settled."""


def fit_penalised(
    design: Design,
    counts: Vector | IntVector,
    penalty: float,
    *,
    start: Vector | None = None,
    tolerance: float = TOLERANCE,
    most_passes: int = MOST_PASSES,
) -> PenalisedFit:
    """The means for one penalty, from counts of the occupied cells and, where given, effects to begin with."""
    return PenalisedFitting(design).fit(counts, penalty, start=start, tolerance=tolerance, most_passes=most_passes)


class PenalisedFitting:
    """Room for fits of one design: the sums below every node, which passes change in place.

    Parameters
    ----------
    design
        The cells and their margins.
    weights
        How many cells each cell stands for; by default 1.
    """

    def __init__(self, design: Design, weights: Vector | None = None) -> None:
        self.design, self.weights = design, weights
        self.layers = design.cells.layers
        self.values = [np.empty(len(layer.own)) for layer in self.layers]
        self._root = np.empty(1)
        self._entries = design.entries_of(design.cells.occupied)
        self.is_pair = np.array([len(margin.generator) == 2 for margin in design.margins])
        self._possible = design.margins_of(np.ones(len(design.cells))) > 0
        self._main = {
            margin.depth: slice(design.begins[k], design.begins[k + 1])
            for k, margin in enumerate(design.margins)
            if len(margin.generator) == 1
        }
        self.margin_of = np.repeat(np.arange(len(design.margins)), [m.entries for m in design.margins])

    def margins_of(self, counts: Vector | IntVector) -> Vector:
        """The observed margins of counts of the occupied cells."""
        weights = np.tile(np.asarray(counts, dtype=np.float64), self._entries.shape[1])
        return np.bincount(self._entries.T.ravel(), weights, self.design.parameters).astype(np.float64)

    def largest_penalty(self, counts: Vector | IntVector) -> float:
        """The smallest penalty under which no coefficient is needed."""
        fit = self.fit(counts, np.inf, tolerance=1e-6)
        apart = np.abs(self.margins_of(counts) - self.design.margins_of(fit.fitted))
        return float(apart[self.is_pair[self.margin_of]].max(initial=0.0))

    def fit(
        self,
        counts: Vector | IntVector,
        penalty: float,
        *,
        start: Vector | None = None,
        tolerance: float = TOLERANCE,
        most_passes: int = MOST_PASSES,
    ) -> PenalisedFit:
        """As `fit_penalised`; passes take blocks with coefficients, the others are looked at in between."""
        target = self.margins_of(counts)
        u = np.zeros(len(target)) if start is None else start.copy()
        self._multiply_out(u)
        active = ~self.is_pair | (np.bincount(self.margin_of, u != 0, len(self.is_pair)) > 0)
        violation, passes, since = np.inf, 0, [u.copy()]
        while passes < most_passes:
            passes += 1
            worst = self._run_pass(target, u, penalty, active)
            self._share_out()
            since.append(u.copy())
            if worst <= tolerance or passes % LOOKED_AT == 0 or passes == most_passes:
                missed = self._violations(target, u, penalty)
                violation = float(missed.max(initial=0.0))
                if violation <= tolerance:
                    break
                active |= missed > tolerance
            if len(since) > REMEMBERED:
                u = self._leap(since, target, penalty)
                if 0 < penalty < np.inf:
                    self._balance(u, active)
                since = [u.copy()]
        return PenalisedFit(
            self.design, penalty, read_only(u), read_only(self.values[-1].copy()), self.weights, passes, violation,
            violation <= tolerance,
        )  # fmt: skip

    def _leap(self, since: Sequence[Vector], target: Vector, penalty: float) -> Vector:
        """The extrapolated effects if they are better than the last, else the last; sets the cells to them."""
        before, last = self._objective(since[-1], target, penalty), self.values[-1].copy()
        leap = extrapolated(since)
        with np.errstate(over="ignore"):
            self._multiply_out(leap)
            if self._objective(leap, target, penalty) > before:
                return leap
        self.values[-1][:] = last
        return since[-1].copy()

    def _objective(self, u: Vector, target: Vector, penalty: float) -> float:
        """What the fit maximises, at effects that the cells are set to."""
        some = np.isfinite(u)
        price = penalty * np.abs(u[self.is_pair[self.margin_of]]).sum() if np.isfinite(penalty) else 0.0
        return float(target[some] @ u[some] - self.values[-1].sum() - price)

    def _violations(self, target: Vector, u: Vector, penalty: float) -> Vector:
        """The largest violation in each margin."""
        now = self.design.margins_of(self.values[-1])
        found = np.zeros(len(self.is_pair))
        for k, begin in enumerate(self.design.begins[:-1]):
            part = slice(begin, self.design.begins[k + 1])
            if not self.is_pair[k]:
                found[k] = violations(target[part], now[part], np.zeros(part.stop - begin), 0.0).max(initial=0.0)
            elif np.isfinite(penalty):
                found[k] = violations(target[part], now[part], u[part], penalty).max(initial=0.0)
        return found

    def _run_pass(self, target: Vector, u: Vector, penalty: float, active: Mask) -> float:
        """Take the active margins once, the deepest first; the largest violation met."""
        worst = 0.0
        for depth in reversed(range(len(self.values))):
            here = [k for k in self.design.by_layer[depth] if active[k]]
            layer, value = self.layers[depth], self.values[depth]
            above = self.values[depth - 1] if depth else self._root
            nodes = layer.prefix, layer.branch, layer.own, value
            if not here:
                kernels.lift(layer.branch, value, above)
                continue
            first = self.design.margins[here[0]]
            sums = np.zeros((2, first.entries))
            kernels.sum_margin(*nodes, first.rows, first.strides, sums)
            for k, following in zip(here, [*here[1:], None], strict=True):
                margin = self.design.margins[k]
                part = slice(self.design.begins[k], self.design.begins[k + 1])
                factor, found = self._step(
                    target[part], sums.sum(axis=0), u[part], penalty if self.is_pair[k] else None
                )
                worst = max(worst, found)
                if following is None:
                    kernels.scale_and_lift(*nodes, margin.rows, margin.strides, factor, above)
                else:
                    then = self.design.margins[following]
                    sums = np.zeros((2, then.entries))
                    kernels.scale_and_sum(
                        *nodes, margin.rows, margin.strides, factor, then.rows, then.strides, sums
                    )
        return worst

    @staticmethod
    def _step(n: Vector, m: Vector, u: Vector, penalty: float | None) -> tuple[Vector, float]:
        """Change the effects of one margin in place; what multiplies its cells, and the violation found."""
        if penalty is None:
            missed = violations(n, m, np.zeros(len(n)), 0.0)
            with np.errstate(divide="ignore"):
                new = np.where(m > 0, u + np.log(n / np.where(m > 0, m, 1.0)), u)
        else:
            missed = violations(n, m, u, penalty)
            new = thresholded(n, m, u, penalty)
        # Both are minus infinity where nobody is left: nothing to multiply.
        with np.errstate(invalid="ignore"):
            factor = np.where(m > 0, np.exp(new - u), 1.0)
        u[:] = new
        return factor, float(missed.max(initial=0.0))

    def _balance(self, u: Vector, active: Mask) -> None:
        """Move the median of each row and column of a block into a main effect: same means, smaller penalty."""
        for k in np.flatnonzero(self.is_pair & active):
            margin = self.design.margins[k]
            part = slice(self.design.begins[k], self.design.begins[k + 1])
            block, possible = u[part].reshape(margin.shape), self._possible[part].reshape(margin.shape)
            for axis, depth in enumerate((margin.rows[0], margin.depth)):
                shift = middle(block, possible, axis=1 - axis)
                block -= np.where(possible, np.expand_dims(shift, 1 - axis), 0.0)
                u[self._main[depth]] += shift

    def _share_out(self) -> None:
        for depth in range(1, len(self.values)):
            kernels.share_out(self.layers[depth].branch, self.values[depth], self.values[depth - 1])

    def _multiply_out(self, u: Vector) -> None:
        """Set the cells to the product of their effects."""
        effects, above = np.exp(u), np.ones(1)
        first, rows, strides, _ = self.design.flat
        for depth, layer in enumerate(self.layers):
            here = self.design.by_layer[depth]
            ends, begins = first[here.start : here.stop + 1], self.design.begins[here.start : here.stop]
            nodes = layer.prefix, layer.branch, layer.own
            kernels.multiply_out(*nodes, above, ends, rows, strides, begins, effects, self.values[depth])
            above = self.values[depth]
        # Nodes above get their sums from the passes; those of the cells are all that counts here.
        if self.weights is not None:
            self.values[-1] *= self.weights
