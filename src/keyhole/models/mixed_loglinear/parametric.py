r"""The sampler with an independent effect for every cell, integrated out while fixed effects are drawn.

.. math:: f_k \sim \mathrm{Poisson}(\pi\,\xi_k\,\omega_k), \quad \omega_k \sim G_0, \quad \beta \sim N(0, 10)

The law of the effects is fixed, so that the level of all cells together needs an overall effect beside the others.
Fixed effects move by Langevin steps. Where they are many, these have everywhere the metric of the normal law with
the mode and the curvature of the posterior (Laplace's approximation). Where they are too many to factorise it,
they are drawn from that law itself, which knows nothing of how skewed the posterior is.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.models.mixed_loglinear.base_measure import BaseMeasure
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects, Margins
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.models.mixed_loglinear.langevin import Point, Walk
from keyhole.models.mixed_loglinear.laplace import Bend, Precision, mode_of
from keyhole.models.mixed_loglinear.predictive import Predictive
from keyhole.models.mixed_loglinear.starts import PRIOR_VARIANCE, rough_effects

STEPS = 2
"""Of the fixed effects in a sweep."""


@dataclass(frozen=True, eq=False)
class ParametricSampler:
    """Prior and transitions.

    Attributes
    ----------
    table
        The cells and their counts.
    people
        Of the population.
    laplace
        Whether fixed effects are drawn from the normal approximation of their posterior.
    guided
        Whether their steps have the metric of that approximation everywhere, rather than that of each place.
    adapts
        Whether steps of beta find their own length.
    """

    table: FullTable
    people: int
    base: BaseMeasure
    fixed: FixedEffects
    laplace: bool = False
    guided: bool = False
    variance: float = PRIOR_VARIANCE
    adapts: bool = True

    @property
    def state_type(self) -> type[Walk]:
        return Walk

    @cached_property
    def occupied(self) -> IntVector:
        return np.flatnonzero(self.table.counts)

    @cached_property
    def predictive(self) -> Predictive:
        return Predictive(self.base)

    def log_x(self, beta: Vector) -> Vector:
        """The log mean of every cell's count where its effect is 1."""
        if not len(beta):
            return np.full(len(self.table), np.log(self.table.fraction))
        return np.asarray(self.table.gathered(self.fixed.predictor(beta)) + np.log(self.table.fraction))

    def draw_prior(self, size: int, rng: Generator) -> Walk:
        return Walk(rng.normal(0.0, np.sqrt(self.variance), self.fixed.number))

    def redraw(self, state: Walk, rng: Generator) -> FullTable:
        """New counts of all cells."""
        effect = self.base.draw(len(self.table), rng)
        return self.table.with_counts(rng.poisson(np.exp(self.log_x(state.beta) + effect)))

    def start(self, records: FullTable, rng: Generator, *, crowded: bool) -> Walk:
        if self.guided:
            mode, precision = self.normal
            return Walk(mode + (1.5 if crowded else 0.5) * precision.draw(rng))
        beta = rough_effects(self.fixed, records)
        return Walk(beta + rng.normal(0.0, 0.5 if crowded else 0.1, len(beta)))

    def sweep(self, state: Walk, records: FullTable, rng: Generator) -> Walk:
        if not self.fixed.number:
            return state
        if self.laplace:
            mode, precision = self.normal
            state.beta = mode + precision.draw(rng)
            return state
        state.go(lambda beta: self.point(beta, records), STEPS, adapts=self.adapts, rng=rng)
        return state

    def probabilities(self, state: Walk, cells: Codes, rng: Generator) -> Vector:
        """The mean of each occupied cell in the population, as a share of the people."""
        log_x = self.log_x(state.beta)[self.occupied]
        effect = self.base.given(self.table.counts[self.occupied], np.exp(log_x), rng)
        return np.asarray(np.exp(log_x + effect) / (self.table.fraction * self.people))

    def trace(self, state: Walk) -> dict[str, float]:
        return {
            "spread": float(np.sqrt(np.mean(state.beta**2))) if len(state.beta) else 0.0,
            "step": float(np.exp(state.log_step)),
            "acceptance": state.chance,
        }

    def bend(self, beta: Vector, records: FullTable) -> Bend:
        """The posterior of the fixed effects at one place."""
        log_q, slope, curvature = self.predictive.at(records.counts, self.log_x(beta))
        height = float(log_q.sum() - 0.5 * beta @ beta / self.variance)
        gradient = self.fixed.projected(Margins(records.spread(slope))) - beta / self.variance
        # Counts beyond what the base expects may bend the wrong way; a metric must not.
        return Bend(beta, height, gradient, np.maximum(curvature, 0.0))

    def point(self, beta: Vector, records: FullTable) -> Point:
        """The same with the metric."""
        found = self.bend(beta, records)
        if self.guided:
            _, precision = self.normal
            return Point(beta, found.height, found.gradient, precision.matrix, precision.factor)
        return Point(beta, found.height, found.gradient, self._precision(found, records).matrix)

    def _precision(self, bend: Bend, records: FullTable) -> Precision:
        return Precision(self.fixed, records, bend.curvature, self.variance)

    @cached_property
    def normal(self) -> tuple[Vector, Precision]:
        """Mode of the posterior of the fixed effects, and its precision there."""
        return mode_of(
            rough_effects(self.fixed, self.table),
            lambda beta: self.bend(beta, self.table),
            lambda found: self._precision(found, self.table),
        )
