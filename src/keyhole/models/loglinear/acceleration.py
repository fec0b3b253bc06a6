r"""Where the next pass of proportional fitting should start, and when Newton steps take over.

Both kinds of step are maps of :math:`\theta` whose fixed point is the fit: a pass, and
:math:`\theta + I^{-1}(n - X'm)` with the information of some earlier place. Anderson's method extrapolates the
last few steps to where their changes would vanish.

Passes come first, from any start. They are slow where means go to zero although no margin is empty, so once they
have cost as much as the information matrix, this is worked out and factorised. A step then needs the margins of
one :math:`\theta` only, a single sweep over the cells, and the extrapolation makes up for a matrix of another
place. With very many cells the matrix is estimated: large ones are summed, of the small ones a sample.

Neither kind of step may lower the log likelihood :math:`\sum_g \sum n_g \theta_g - \sum_c m_c`. A pass never does;
an extrapolation that did is given up for the step itself, a Newton step that did for a pass and another matrix.
"""

from collections import deque

import numpy as np

from keyhole.arrays import Vector
from keyhole.models.loglinear.information import Coding, thin_small
from keyhole.models.loglinear.passes import Passes

MEMORY = 8
"""Steps that the extrapolation looks back on."""

FEWEST_PASSES, MOST_PASSES = 6, 25
"""Passes before the first Newton step, whatever the matrix costs."""

NEWTON_PARAMETERS = 3000
"""Effects beyond which a matrix costs more than it saves."""

MOST_SUMMED, POINTS = 4_000_000, 2_000_000
"""Cells beyond which the matrix is estimated, and the size of the sample that it is estimated from."""

STEPS_PER_MATRIX = 15
"""Newton steps with one matrix, after which it is worked out anew."""


LONGEST = 10.0
"""The most that one effect may change at once: a factor of twenty thousand."""


class Anderson:
    """Extrapolation of a map, from where its last few steps started and ended."""

    def __init__(self, scale: Vector) -> None:
        self._scale = scale  # what a change is measured in
        self._moved: deque[Vector] = deque(maxlen=MEMORY)
        self._reached: deque[Vector] = deque(maxlen=MEMORY)

    def after(self, start: Vector, reached: Vector) -> Vector:
        """The next start; ``reached`` itself to simply go on."""
        self._moved.append((reached - start) * self._scale)
        self._reached.append(reached)
        if len(self._moved) < 2:
            return reached
        changes = np.diff(np.array(self._moved), axis=0)
        weights = np.linalg.lstsq(changes.T, self._moved[-1], rcond=1e-8)[0]
        proposed = np.asarray(reached - weights @ np.diff(np.array(self._reached), axis=0))
        return start + shortened(proposed - start) if np.isfinite(proposed).all() else reached

    def forget(self) -> None:
        self._moved.clear()
        self._reached.clear()


class Course:
    """The way of :math:`\\theta` from a start to the fit; each step takes all margins once."""

    def __init__(self, passes: Passes, theta: Vector) -> None:
        self._passes, self._next = passes, theta
        self._anderson = Anderson(np.sqrt(passes.target))  # in standard errors of the margins
        self._best, self._good = -np.inf, theta
        self._total = passes.total
        self._possible = passes.design.parameters <= NEWTON_PARAMETERS
        self._wait = passes_worth_a_matrix(passes) if self._possible else 0
        self._delay = 1
        self._coding: Coding | None = None
        self._steps = 0
        self._step: Vector | None = None  # the last step, while what is tried next extrapolates it
        passes.multiply_out(theta)

    def step(self) -> tuple[Vector, float]:
        """Go on once; give the effects reached and the largest relative difference of margins found."""
        return self._pass() if self._coding is None else self._newton(self._coding)

    def _pass(self) -> tuple[Vector, float]:
        start = self._next
        moved, discrepancy = self._passes.run_pass()
        reached = start + moved
        if not self._better(reached):
            self._anderson.forget()
            self._next = self._good
            self._passes.multiply_out(self._next)
            return reached, discrepancy
        self._wait -= 1
        if self._possible and self._wait <= 0:
            self._passes.share_out()
            self._factorise(reached)
            return reached, discrepancy
        self._next = self._anderson.after(start, reached)
        if self._next is reached:
            self._passes.share_out()
        else:
            self._passes.multiply_out(self._next)
        return reached, discrepancy

    def _newton(self, coding: Coding) -> tuple[Vector, float]:
        target = self._passes.target
        margins, total = self._passes.margins_at(self._next)
        # The likelihood is highest along the common shift where the means add up to the counts.
        first = self._passes.design.margins[0].entries
        theta = self._next.copy()
        theta[:first] += np.log(self._total / total)
        if not self._better(theta):
            self._anderson.forget()
            if self._step is not None:
                self._next, self._step = self._good + self._step, None
            else:
                self._wait, self._delay, self._coding = self._delay, 2 * self._delay, None
                self._next = self._good
                self._passes.multiply_out(self._next)
            return self._good, np.inf
        margins *= self._total / total
        wanted = target > 0
        discrepancy = float(np.max(np.abs(margins[wanted] / target[wanted] - 1.0)))
        self._steps += 1
        if self._steps == STEPS_PER_MATRIX:
            self._passes.multiply_out(theta)
            self._factorise(theta)
            return theta, discrepancy
        step = shortened(coding.solve(target - margins))
        plain = theta + step
        self._next = self._anderson.after(theta, plain)
        self._step = None if self._next is plain else step
        return theta, discrepancy

    def _better(self, theta: Vector) -> bool:
        """Whether effects, whose means add up to the counts, are not less likely than the best so far."""
        likelihood = float(self._passes.target @ theta)
        if not likelihood >= self._best - 1e-9 * self._total:
            return False
        self._best, self._good = likelihood, theta
        return True

    def _factorise(self, theta: Vector) -> None:
        """Work out the matrix at the cells as they are, and begin Newton steps at their effects."""
        cells = self._passes.values[-1]
        if len(cells) > MOST_SUMMED:
            thin_small(cells, POINTS)
        self._coding = Coding.of(self._passes.design.information(cells))
        self._anderson.forget()
        self._steps, self._step, self._next = 0, None, theta


def shortened(step: Vector) -> Vector:
    """The step, no longer than the longest."""
    return step * min(1.0, LONGEST / max(float(np.abs(step).max()), LONGEST))


def passes_worth_a_matrix(passes: Passes) -> int:
    """How many passes cost about as much as an information matrix and its factorisation."""
    design = passes.design
    joint = design.joint_layout
    nodes = [len(layer.own) for layer in design.cells.layers]
    one = sum(len(here) * (count + CALL) for here, count in zip(design.by_layer, nodes, strict=True))
    share = min(1.0, POINTS / nodes[-1]) if nodes[-1] > MOST_SUMMED else 1.0
    matrix = sum(len(here) * count * share for here, count in zip(joint.by_layer, nodes, strict=True))
    matrix += len(design.margins) ** 2 * CALL / 2 + design.parameters**3 / FACTORISED
    return int(np.clip(matrix / one, FEWEST_PASSES, MOST_PASSES))


CALL, FACTORISED = 3000.0, 600.0
"""A sweep of one node takes about 10 ns: what a call of a kernel, and each parameter cubed, is in such sweeps."""
