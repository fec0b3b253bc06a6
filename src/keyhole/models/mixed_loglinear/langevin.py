r"""Steps of the simplified manifold Metropolis-adjusted Langevin algorithm (Girolami & Calderhead 2011).

.. math:: \beta' \sim N\bigl(\beta + \tfrac{\epsilon^2}{2} M^{-1} g,\; \epsilon^2 M^{-1}\bigr)

with g the gradient of the log density at :math:`\beta` and M the expected information plus the prior's precision,
both at the place where the step begins. The step length is adapted to the acceptance, ever less.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from keyhole.arrays import Vector

ACCEPTED = 0.65
"""What the adaptation aims at."""

LONGEST = 1.4
"""Steps beyond this overshoot even where the density is normal."""


@dataclass(frozen=True, eq=False)
class Point:
    """A place, the log density there, its gradient and the metric; its factor, if that is known."""

    beta: Vector
    height: float
    gradient: Vector = field(repr=False)
    metric: Vector = field(repr=False)
    factor: Vector | None = field(default=None, repr=False)

    @cached_property
    def _factor(self) -> Vector:
        return np.asarray(cho_factor(self.metric, lower=True)[0]) if self.factor is None else self.factor

    def drift(self, step: float) -> Vector:
        return self.beta + 0.5 * step**2 * np.asarray(cho_solve((self._factor, True), self.gradient))

    def propose(self, step: float, rng: Generator) -> Vector:
        noise = solve_triangular(self._factor, rng.standard_normal(len(self.beta)), lower=True, trans="T")
        return self.drift(step) + step * np.asarray(noise)

    def log_chance(self, to: Vector, step: float) -> float:
        """The log density of proposing that, up to a constant."""
        away = (to - self.drift(step)) @ np.tril(self._factor)
        return float(np.log(np.diagonal(self._factor)).sum() - 0.5 * away @ away / step**2)


@dataclass
class Walk:
    """Where the fixed effects are: beta, the length of the steps, how many there were, the last one's chance."""

    beta: Vector = field(repr=False)
    log_step: float = field(default=0.0, kw_only=True)
    steps: int = field(default=0, kw_only=True)
    chance: float = field(default=1.0, kw_only=True)

    def go(self, at: Callable[[Vector], Point], number: int, *, adapts: bool, rng: Generator) -> None:
        """So many steps."""
        here = at(self.beta)
        for _ in range(number):
            here, self.chance = langevin_step(here, at, float(np.exp(self.log_step)), rng)
            if adapts:
                longer = self.log_step + (self.chance - ACCEPTED) / np.sqrt(1.0 + self.steps)
                self.log_step = float(min(longer, np.log(LONGEST)))
            self.steps += 1
        self.beta = here.beta


def langevin_step(here: Point, at: Callable[[Vector], Point], step: float, rng: Generator) -> tuple[Point, float]:
    """Where the chain goes on, and the chance that the proposal had."""
    there = at(here.propose(step, rng))
    if not np.isfinite(there.height):
        return here, 0.0  # means that overflow; there is no metric to go back by
    gain = there.height - here.height
    gain += there.log_chance(here.beta, step) - here.log_chance(there.beta, step)
    chance = float(np.exp(min(gain, 0.0))) if np.isfinite(gain) else 0.0
    return (there if rng.random() < chance else here), chance
