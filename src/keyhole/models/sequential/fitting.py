r"""Fit one conditional: Newton steps for the coefficients, empirical Bayes for the ridge of each block.

The log posterior of the coefficients :math:`W_b` of the blocks is

.. math:: \ell(W) = \sum_i w_i \log p(x_{ij} \mid x_{i,<j}; W) - \tfrac12 \sum_b \lambda_b \lVert W_b \rVert^2,

concave, and the evidence of :math:`\lambda_b` is largest where :math:`\lambda_b \lVert W_b\rVert^2 = \gamma_b`,
the number of coefficients of the block that the data determine (MacKay 1992),
:math:`\gamma_b = P_b - \lambda_b\,\mathrm{tr}(H^{-1})_{bb}`. A weak Gamma prior on :math:`\lambda_b` keeps both
sides positive.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.models.sequential import _kernels as kernels
from keyhole.models.sequential.conditional import Conditional
from keyhole.models.sequential.curvature import Curvature, curvature_at

INTERCEPT_PENALTY = 1e-6
"""Keeps levels that stand alone wherever they are admitted from floating; no other effect."""

START_PENALTY, START_PAIR_PENALTY = 1.0, 10.0
LOWEST_PENALTY, HIGHEST_PENALTY = 1e-4, 1e6

PRIOR_SHAPE, PRIOR_RATE, PAIR_RATE = 0.1, 0.1, 0.01
"""Twice the shape and twice the rate of the Gamma prior of each penalty, the rate of three-way terms last.

Of a block of P coefficients that are all zero, and about each of which the data say h, the penalty ends where
(rate * penalty - shape) (h + penalty)^2 = P h^2: the smaller the rate, the less of what is chance stays in it."""

ROUNDS, DRAFT_ROUNDS, ROUND_TOLERANCE = 5, 2, 0.05
"""Updates of the penalties, in a draft too, and the change of log penalty at which they stop.

More rounds hardly move tau: penalties that still change are those of blocks that say little."""

NEWTON_STEPS, DECREMENT, ROUND_DECREMENT = 50, 1e-6, 0.5
"""Newton steps in the last round, and the decrement (twice the loss of log posterior) at which they stop; and at
which those of earlier rounds do."""

FALL = 10.0
"""A Hessian serves another step as long as the decrement falls by this factor."""


@dataclass(frozen=True, eq=False)
class FittedConditional:
    """A conditional with its coefficients at the posterior mode.

    Attributes
    ----------
    coefficients
        (R, L), each row summing to zero.
    penalty
        The ridge of each block, the intercept's first.
    decrement
        Newton's decrement at the end.
    solved
        Whether the equations of its last steps, and of the penalties before, were solved exactly enough.
    """

    data: Conditional
    coefficients: Vector
    penalty: Vector
    decrement: float
    solved: bool
    curvature: Curvature

    @property
    def determined(self) -> Vector:
        """For each block the number of coefficients that the data determine, gamma."""
        return _sizes(self.data) - self.penalty * self.curvature.traces()

    @cached_property
    def mean_shift(self) -> Vector:
        """Posterior mean of the coefficients minus their mode."""
        return self.curvature.mean_shift()

    def drawn(self, rng: Generator) -> "FittedConditional":
        """With coefficients drawn from their posterior, to second order: N(mode + mean shift, H^-1)."""
        moved = self.mean_shift + self.curvature.draws(1, rng)[0]
        return replace(self, coefficients=self.coefficients + moved)

    @property
    def converged(self) -> bool:
        return self.decrement <= 1e-3 and self.solved and self.curvature.solved

    @property
    def penalties_at_bound(self) -> int:
        """How many blocks ended with the weakest or the strongest ridge allowed."""
        tied = (self.penalty[1:] <= LOWEST_PENALTY) | (self.penalty[1:] >= HIGHEST_PENALTY)
        return int(np.count_nonzero(tied))


def unhindered() -> None:
    """Nobody wants the work to end early."""


def fit_conditional(
    data: Conditional,
    before: FittedConditional | None = None,
    *,
    ridge: bool = True,
    draft: bool = False,
    rng: Generator,
    proceed: Callable[[], None] = unhindered,
) -> FittedConditional:
    """The posterior mode, with penalties by empirical Bayes.

    Parameters
    ----------
    before
        A fit with the same or fewer blocks to start from.
    ridge
        Without it the coefficients are those of maximum likelihood, up to a penalty too small to matter.
    draft
        Stop after a few rounds: good enough to see what is missing, and to start from.
    proceed
        Called before each step; raises to end the work early.
    """
    theta = np.zeros((data.rows, data.levels))
    theta[0] = _log_margin(data)
    penalty = np.full(len(data.blocks), START_PENALTY)
    if before is not None:
        theta[: before.data.rows] = before.coefficients
        penalty[:] = START_PAIR_PENALTY
        penalty[: len(before.penalty)] = before.penalty
    penalty[0] = INTERCEPT_PENALTY
    if not ridge:
        penalty[:] = INTERCEPT_PENALTY
        return _finish(data, theta, penalty, rng, proceed=proceed)
    curvature = None
    for turn in range((DRAFT_ROUNDS if draft else ROUNDS) if len(data.blocks) > 1 else 0):
        steps = 12 if turn == 0 else 4
        theta, curvature, _ = _newton(data, theta, penalty, ROUND_DECREMENT, steps, rng, proceed, curvature)
        updated = _update(data, theta, penalty, curvature)
        change = np.abs(np.log(updated / penalty))[penalty < 100.0]
        penalty = updated
        if change.max() < ROUND_TOLERANCE:
            break
    return _finish(data, theta, penalty, rng, draft, proceed, curvature)


def _finish(
    data: Conditional,
    theta: Vector,
    penalty: Vector,
    rng: Generator,
    draft: bool = False,
    proceed: Callable[[], None] = unhindered,
    curvature: Curvature | None = None,
) -> FittedConditional:
    goal = ROUND_DECREMENT if draft else DECREMENT
    theta, curvature, decrement = _newton(data, theta, penalty, goal, NEWTON_STEPS, rng, proceed, curvature)
    solved = curvature.solved
    if not draft:
        curvature = curvature_at(data, theta, _by_row(data, penalty), rng, last=True)
    return FittedConditional(data, theta, penalty, decrement, solved, curvature)


def _newton(
    data: Conditional,
    theta: Vector,
    penalty: Vector,
    goal: float,
    steps: int,
    rng: Generator,
    proceed: Callable[[], None] = unhindered,
    curvature: Curvature | None = None,
) -> tuple[Vector, Curvature, float]:
    """Damped Newton steps until the decrement falls below ``goal``, and the curvature of the last of them.

    A step needs the gradient at the new place but not its Hessian: an old one will do as long as the decrement
    falls by `FALL` with every step.
    """
    ridge = _by_row(data, penalty)
    curvature = curvature_at(data, theta, ridge, rng) if curvature is None else curvature.with_penalty(ridge)
    value, slope = _ascent(data, theta, ridge)
    last = np.inf
    for _ in range(steps):
        proceed()
        direction = curvature.solve(slope)
        decrement = float((direction * slope).sum())
        if decrement > max(last / FALL, goal):
            curvature = curvature_at(data, theta, ridge, rng)
            direction = curvature.solve(slope)
            decrement = float((direction * slope).sum())
        last, size = decrement, 1.0
        while True:
            moved = theta + size * direction
            gained, ahead = _ascent(data, moved, ridge)
            if size < 1e-6 or gained >= value + 1e-4 * size * decrement - 1e-10 * abs(value):
                break
            size /= 2
        theta, value, slope = moved, gained, ahead
        if decrement < goal:
            break
    return theta, curvature, decrement


def _ascent(data: Conditional, theta: Vector, ridge: Vector) -> tuple[float, Vector]:
    """The log posterior and its gradient."""
    slope = -ridge[:, None] * theta
    value = kernels.gradient(*data.layout, *data.entries, theta, slope) - _charge(theta, ridge)
    return float(value), slope


def _update(data: Conditional, theta: Vector, penalty: Vector, curvature: Curvature) -> Vector:
    squares = np.add.reduceat((theta**2).sum(axis=1), data.offsets[:-1])
    determined = np.maximum(_sizes(data) - penalty * curvature.traces(), 0.0)
    updated = (determined + PRIOR_SHAPE) / (squares + prior_rates(data))
    updated = np.clip(updated, LOWEST_PENALTY, HIGHEST_PENALTY)
    updated[0] = INTERCEPT_PENALTY
    return np.asarray(updated)


def prior_rates(data: Conditional) -> Vector:
    """Twice the rate of the prior of each block's penalty."""
    return np.array([PAIR_RATE if len(block.keys) == 2 else PRIOR_RATE for block in data.blocks])


def _log_margin(data: Conditional) -> Vector:
    """The intercept that fits the level's margin: where Newton's method starts."""
    log = np.log(np.bincount(data.level, data.weight, data.levels))
    return np.asarray(log - log.mean())


def _sizes(data: Conditional) -> Vector:
    return np.diff(data.offsets).astype(np.float64) * (data.levels - 1)


def _by_row(data: Conditional, penalty: Vector) -> Vector:
    return np.repeat(penalty, np.diff(data.offsets))


def _charge(theta: Vector, ridge: Vector) -> float:
    return float(0.5 * (ridge * (theta**2).sum(axis=1)).sum())
