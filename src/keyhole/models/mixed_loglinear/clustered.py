r"""The Gibbs sampler with Dirichlet-process effects, over all cells.

.. math:: f_k \sim \mathrm{Poisson}(\pi\,\xi_k\,\omega_k), \quad \log\omega_k \sim G, \quad G \sim DP(m, G_0),
    \quad \beta \sim N(0, 10), \quad m \sim \mathrm{Gamma}(1, 0.1)

Cells with the same effect are a cluster. A state holds the clusters that exist with their weights, and the weight
of all others; which cell is in which is drawn anew at the beginning of each sweep and not kept.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.models.mixed_loglinear import _kernels as kernels
from keyhole.models.mixed_loglinear._split_kernels import split_and_merge
from keyhole.models.mixed_loglinear.base_measure import BaseMeasure
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects, Margins
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.models.mixed_loglinear.langevin import Point, Walk
from keyhole.models.mixed_loglinear.mixture_predictive import MixturePredictive
from keyhole.models.mixed_loglinear.starts import PRIOR_VARIANCE, rough_effects
from keyhole.models.mixed_loglinear.summed_cells import SummedCells
from keyhole.numerics.concentration import GammaPrior, draw_above

STEPS = 2
"""Of the fixed effects in a sweep."""

LOOSE = 0.01
"""The least curvature that the metric of the level has: where nobody is, nothing else may hold it."""

TRIES = 10
"""Splits and merges of clusters that a sweep proposes."""

COMMON = 50.0
"""Cells that a cluster has on average, by its weight, from which its cells are summed over where that helps."""

CROWDED = 40
"""Clusters of a start with many."""


@dataclass
class Clusters(Walk):
    """Where a chain is.

    Attributes
    ----------
    effect, weight
        Of each cluster: log omega, and the probability that a cell has it.
    left
        The probability of an effect that no cell has yet.
    mass
        Of the Dirichlet process.
    own
        log omega of each occupied cell, when clusters were last drawn.
    """

    effect: Vector = field(repr=False)
    weight: Vector = field(repr=False)
    left: float
    mass: float
    own: Vector = field(repr=False)


@dataclass(frozen=True, eq=False)
class ClusteredSampler:
    """Prior and transitions.

    Attributes
    ----------
    table
        The cells; their counts are those that chains start from.
    people
        Of the population.
    fixed
        The effects that are learned; those without terms where there are none.
    known
        log xi of every cell if it is not learned.
    adapts
        Whether steps of beta find their own length.
    common
        Cells that a cluster must have on average to be summed over when fixed effects or pairs of clusters move.
    """

    table: FullTable
    people: int
    base: BaseMeasure
    fixed: FixedEffects
    known: Vector | None = None
    mass_prior: GammaPrior = field(default=GammaPrior(1.0, 0.1))
    variance: float = PRIOR_VARIANCE
    adapts: bool = True
    common: float = COMMON

    @property
    def state_type(self) -> type[Clusters]:
        return Clusters

    @cached_property
    def occupied(self) -> IntVector:
        return np.flatnonzero(self.table.counts)

    def log_xi(self, beta: Vector) -> Vector:
        """Of every cell."""
        if self.known is not None:
            return self.known
        if not len(beta):
            return np.zeros(len(self.table))
        return self.table.gathered(self.fixed.predictor(beta))

    def draw_prior(self, size: int, rng: Generator) -> Clusters:
        beta = rng.normal(0.0, np.sqrt(self.variance), self.fixed.number)
        nobody = np.empty(0)
        return Clusters(beta, nobody, nobody.copy(), 1.0, self.mass_prior.draw(rng), np.zeros(size))

    def redraw(self, state: Clusters, rng: Generator) -> FullTable:
        """New counts of all cells; clusters that they are the first to have join the state."""
        x = np.exp(self.log_xi(state.beta)) * self.table.fraction
        z, drawn = self._allocated(state, np.zeros(len(x), dtype=np.int64), np.zeros(len(x)), rng)
        state.effect, state.weight, state.left = drawn.effect, drawn.weight, drawn.left
        state.own = state.effect[z[self.occupied]]
        return self.table.with_counts(rng.poisson(x * np.exp(state.effect[z])))

    def start(self, records: FullTable, rng: Generator, *, crowded: bool) -> Clusters:
        beta = rough_effects(self.fixed, records) + rng.normal(0.0, 0.2 * crowded, self.fixed.number)
        x = np.exp(self.log_xi(beta)) * records.fraction
        level = np.log(max(records.counts.sum(), 1) / x.sum())
        number = CROWDED if crowded else 1
        effect = level + np.linspace(-4.0, 4.0, number) if crowded else np.array([level])
        left = 0.02
        weight = np.full(number, (1.0 - left) / number)
        own = np.full(len(self.occupied), level)
        return Clusters(beta, effect, weight, left, 1.0, own)

    def sweep(self, state: Clusters, records: FullTable, rng: Generator) -> Clusters:
        x = np.exp(self.log_xi(state.beta)) * records.fraction
        z, state = self._allocated(state, records.counts, x, rng)
        state = self._redrawn(state, z, records.counts, x, rng)
        if self.fixed.number and self.known is None:
            x = self._moved(state, z, x, records, rng)
        self._moved_in_pairs(state, z, records.counts, x, rng)
        state = self._split_and_merged(state, z, records.counts, x, rng)
        state.own = state.effect[z[self.occupied]]
        return state

    def probabilities(self, state: Clusters, cells: Codes, rng: Generator) -> Vector:
        """The mean of each occupied cell in the population, as a share of the people."""
        return np.asarray(np.exp(self.log_xi(state.beta)[self.occupied] + state.own) / self.people)

    def trace(self, state: Clusters) -> dict[str, float]:
        return {
            "clusters": float(len(state.effect)),
            "mass": state.mass,
            "largest_weight": float(state.weight.max(initial=0.0)),
            "mean_effect": float(state.weight @ np.exp(state.effect)),
            "step": float(np.exp(state.log_step)),
            "acceptance": state.chance,
        }

    def _allocated(
        self, state: Clusters, counts: IntVector, x: Vector, rng: Generator
    ) -> tuple[NDArray[np.int32], Clusters]:
        """The cluster of each cell; those that cells are the first to have join the state."""
        old = len(state.effect)
        room = max(2 * old, 8)
        effect, weight = np.zeros(room), np.zeros(room)
        effect[:old], weight[:old] = state.effect, state.weight
        z = np.empty(len(counts), dtype=np.int32)
        number, left, effect, weight = kernels.allocate(
            counts, x, old, effect, weight, state.left, state.mass, self.base.coefficients, z, rng
        )
        return z, replace(state, effect=effect[:number], weight=weight[:number], left=float(left))

    def _redrawn(
        self, state: Clusters, z: NDArray[np.int32], counts: IntVector, x: Vector, rng: Generator
    ) -> Clusters:
        """Effects, mass and weights given who is where; empty clusters are dropped, and z renumbered."""
        number = len(state.effect)
        cells, held, exposed = np.zeros(number, dtype=np.int64), np.zeros(number, dtype=np.int64), np.zeros(number)
        kernels.totals(z, counts, x, cells, held, exposed)
        used = np.flatnonzero(cells)
        if len(used) < number:
            label = np.zeros(number, dtype=np.int32)
            label[used] = np.arange(len(used))
            z[:] = label[z]
        effect = self.base.given(held[used], exposed[used], rng)
        mass = draw_above(self.mass_prior, len(used), len(z), rng)
        drawn = rng.standard_gamma(np.append(cells[used].astype(np.float64), mass))
        shares = drawn / drawn.sum()
        return replace(state, effect=effect, weight=shares[:-1], left=float(shares[-1]), mass=mass)

    def _split_and_merged(
        self, state: Clusters, z: NDArray[np.int32], counts: IntVector, x: Vector, rng: Generator
    ) -> Clusters:
        """Some clusters exchanged for two, and some pairs for one; z follows."""
        room = np.zeros(TRIES)
        effect, weight = np.append(state.effect, room), np.append(state.weight, room)
        number, _, _ = split_and_merge(
            TRIES,
            counts,
            x,
            len(state.effect),
            effect,
            weight,
            state.mass,
            self.base.coefficients,
            self.base.log_constant,
            z,
            rng,
        )
        return replace(state, effect=effect[:number], weight=weight[:number])

    def _moved(
        self, state: Clusters, z: NDArray[np.int32], x: Vector, records: FullTable, rng: Generator
    ) -> Vector:
        """Fixed effects with the cells of common clusters summed over, undone if one of these loses all its cells.

        Every cluster of the state has a cell, and must have one afterwards: summed over without that condition and
        refused where it fails, the step leaves the law of states as it is. Common are clusters by their weight,
        which does not move, so that the step back is of the same kind. Gives the new x.
        """
        common = self._common_first(state, z)
        beta, effect, dealt = state.beta.copy(), state.effect.copy(), z.copy()
        moved = self._move(state, common, z, records, rng)
        if common > 1 and not np.bincount(z, minlength=len(effect)).all():
            state.beta, state.effect = beta, effect
            z[:] = dealt
            return x
        return moved

    def _move(self, state: Clusters, old: int, z: NDArray[np.int32], records: FullTable, rng: Generator) -> Vector:
        """Fixed effects and a level, given which cells have one of the first ``old`` clusters, not which.

        The level is added to the effects of those clusters: otherwise it would hold the fixed effects, which say
        little about it together and much each by itself. Then the cells are dealt out among them again. Gives the
        new x.
        """
        fixed = self._with_level if old else self.fixed
        effect, weight = state.effect[:old].copy(), state.weight[:old]
        predictive = MixturePredictive(effect, weight, self._usual)
        log_fraction = np.log(records.fraction)

        def at(place: Vector) -> Point:
            level, beta = (place[0], place[1:]) if old else (0.0, place)
            log_x = self.table.gathered(fixed.predictor(place)) + log_fraction
            log_q, slope, curvature = predictive.at(records.counts, log_x, z, state.effect, level)
            prior = self.base.at(effect + level).sum(axis=1)
            height = float(log_q.sum() - 0.5 * beta @ beta / self.variance) + prior[0]
            pull = np.append(prior[1], -beta / self.variance)[-len(place) :]
            hold = np.append(max(prior[2], LOOSE), np.full(len(beta), 1.0 / self.variance))[-len(place) :]
            gradient = fixed.projected(Margins(records.spread(slope))) + pull
            metric = fixed.information(Margins(records.spread(curvature))) + np.diag(hold)
            return Point(place, height, gradient, metric)

        walk = Walk(np.append(np.zeros(int(old > 0)), state.beta), log_step=state.log_step, steps=state.steps)
        with np.errstate(over="ignore", invalid="ignore"):
            walk.go(at, STEPS, adapts=self.adapts, rng=rng)
        state.log_step, state.steps, state.chance = walk.log_step, walk.steps, walk.chance
        state.beta = walk.beta[-self.fixed.number :]
        if old:
            state.effect[:old] += walk.beta[0]
        x = np.exp(self.log_xi(state.beta)) * records.fraction
        if old > 1:
            z[:] = self._dealt(state, state.effect[:old], weight, z, records.counts, x, rng)
        return x

    def _moved_in_pairs(
        self, state: Clusters, z: NDArray[np.int32], counts: IntVector, x: Vector, rng: Generator
    ) -> None:
        """Effects and weights of common clusters, two at a time, with all cells of common clusters summed over.

        As where fixed effects move: then the cells are dealt out again, and all is undone if a cluster gets none.
        All weight of the common clusters stays, and each of them stays common.
        """
        common = self._common_first(state, z)
        if common < 2:
            return
        summed = SummedCells.of(counts, x, z, common)
        least = self.common / len(z)
        effect, weight = summed.moved(state.effect[:common], state.weight[:common], least, self.base, rng)
        dealt = self._dealt(state, effect, weight, z, counts, x, rng)
        if np.bincount(dealt, minlength=len(state.effect)).all():
            state.effect[:common], state.weight[:common] = effect, weight
            z[:] = dealt

    def _common_first(self, state: Clusters, z: NDArray[np.int32]) -> int:
        """Numbers clusters by falling weight, and tells how many are common."""
        order = np.argsort(-state.weight, kind="stable")
        label = np.empty(len(order), dtype=np.int32)
        label[order] = np.arange(len(order))
        z[:] = label[z]
        state.effect, state.weight = state.effect[order], state.weight[order]
        return int(np.count_nonzero(state.weight * len(z) >= self.common))

    def _dealt(
        self,
        state: Clusters,
        effect: Vector,
        weight: Vector,
        z: NDArray[np.int32],
        counts: IntVector,
        x: Vector,
        rng: Generator,
    ) -> NDArray[np.int32]:
        """Cells of the first clusters dealt out among these, with such effects and weights; others stay."""
        again = replace(state, effect=effect, weight=weight, left=0.0)
        found, _ = self._allocated(again, counts, x, rng)
        return np.where(z < len(effect), found, z).astype(np.int32, copy=False)

    @cached_property
    def _with_level(self) -> FixedEffects:
        return FixedEffects(self.fixed.levels, ((), *self.fixed.terms))

    @cached_property
    def _usual(self) -> tuple[float, float]:
        """Where log x is, more or less: from main effects that look like the margins."""
        log_x = self.log_xi(rough_effects(self.fixed, self.table))
        level = np.log(max(self.table.counts.sum(), 1) / np.exp(log_x).sum())
        return float(log_x.min() + level - 6.0), float(log_x.max() + level + 6.0)
