r"""The normal law with the mode and the curvature of a posterior of fixed effects (Laplace's approximation).

With minus the second derivative of the log likelihood of each cell in a table w, the precision is
:math:`A = X' \mathrm{diag}(w) X + I/v`. Up to a few thousand effects it is factorised. Beyond, it is only applied
to vectors, by margins, and conjugate gradients solve :math:`A y = b`; a draw is the solution for a b with the
variance A, :math:`b = X' \sqrt{w}\,\epsilon + \epsilon'/\sqrt v`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg

from keyhole.arrays import Vector
from keyhole.errors import FitFailed
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects, Margins
from keyhole.models.mixed_loglinear.full_table import FullTable

MOST_FACTORISED = 2_000
"""Effects up to which the precision is factorised."""

NEWTON = 100
"""Steps to the mode."""


@dataclass(frozen=True, eq=False)
class Bend:
    """The log density at one place, its gradient, and minus the curvature of each cell."""

    beta: Vector
    height: float
    gradient: Vector = field(repr=False)
    curvature: Vector = field(repr=False)


@dataclass(frozen=True, eq=False)
class Precision:
    """A, with what is needed to solve and to draw."""

    fixed: FixedEffects
    table: FullTable
    curvature: Vector
    variance: float

    @property
    def small(self) -> bool:
        return self.fixed.number <= MOST_FACTORISED

    @cached_property
    def margins(self) -> Margins:
        return Margins(self.table.spread(self.curvature))

    @cached_property
    def matrix(self) -> Vector:
        return self.fixed.information(self.margins) + np.eye(self.fixed.number) / self.variance

    @cached_property
    def factor(self) -> Vector:
        return np.asarray(cho_factor(self.matrix, lower=True)[0])

    def times(self, vector: Vector) -> Vector:
        """A times a vector, without A."""
        moved = self.curvature * self.table.gathered(self.fixed.predictor(vector))
        return self.fixed.projected(Margins(self.table.spread(moved))) + vector / self.variance

    def solve(self, right: Vector) -> Vector:
        if self.small:
            return np.asarray(cho_solve((self.factor, True), right))
        size = len(right)
        inverse = 1.0 / (self.fixed.projected_squares(self.margins) + 1.0 / self.variance)
        operator = LinearOperator((size, size), matvec=self.times)
        rough = LinearOperator((size, size), matvec=lambda vector: inverse * vector)
        found, unfinished = cg(operator, right, rtol=1e-5, maxiter=2_000, M=rough)
        if unfinished:
            raise FitFailed("Conjugate gradients did not come to an end, so fixed effects cannot be drawn.")
        return np.asarray(found)

    def draw(self, rng: Generator) -> Vector:
        """Normal with this precision."""
        if self.small:
            return np.asarray(
                solve_triangular(self.factor, rng.standard_normal(self.fixed.number), lower=True, trans="T")
            )
        cells = np.sqrt(self.curvature) * rng.standard_normal(len(self.curvature))
        right = self.fixed.projected(Margins(self.table.spread(cells)))
        return self.solve(right + rng.standard_normal(self.fixed.number) / np.sqrt(self.variance))


def mode_of(
    start: Vector, bend_at: Callable[[Vector], Bend], precision_at: Callable[[Bend], Precision]
) -> tuple[Vector, Precision]:
    """The mode of the posterior and the precision there, by Newton steps, shorter ones where they overshoot.

    Raises
    ------
    FitFailed
        There was no end of the steps.
    """
    here = bend_at(start)
    for _ in range(NEWTON):
        precision = precision_at(here)
        direction = precision.solve(here.gradient)
        gain = float(here.gradient @ direction)
        if gain < 1e-6:
            return here.beta, precision
        length = 1.0
        there = bend_at(here.beta + direction)
        while not there.height >= here.height + 1e-4 * length * gain and length > 1e-8:
            length /= 2
            there = bend_at(here.beta + length * direction)
        here = there
    raise FitFailed("The mode of the fixed effects was not found: use fewer terms.")
