r"""The probability that a new person falls into a cell.

.. math:: p(c) = E \prod_j \sum_k g_k\, \theta_{jk}[c_j], \qquad g \sim \mathrm{Dirichlet}(\alpha g_0)

with :math:`\alpha` from its prior where every person has one: the new person was not seen. The expectation is a
mean over memberships spread evenly (a shifted Sobol sequence through the sticks of the Dirichlet process), the
same for all cells, so that :math:`\sum_k g_{tk}\theta_{jk}[x]` is tabulated once for each level.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from scipy.stats import qmc

from keyhole.arrays import Codes, Vector
from keyhole.models.membership import _kernels as kernels
from keyhole.models.membership.concentration import ConcentrationLaws
from keyhole.models.membership.level_prior import Rows
from keyhole.models.membership.state import Memberships
from keyhole.table.decision_diagram import DecisionDiagram

STICKS = 16
"""Sticks of each membership that come from the Sobol sequence: two dimensions each."""

BROKEN = 1e-5
"""What is left unbroken of the weights of profiles that nobody had yet."""

BLOCK = 512
"""Memberships at a time, so that what a cell needs stays in the processor's cache."""


@lru_cache(maxsize=8)
def _sobol(number: int) -> Vector:
    points = qmc.Sobol(1 + 2 * STICKS, scramble=True, rng=np.random.default_rng(0)).random(number)
    points.flags.writeable = False
    return np.asarray(points)


@dataclass(frozen=True, eq=False)
class CellProbability:
    """How cells are weighed.

    Attributes
    ----------
    each
        Whether every person has an alpha, or all share one.
    diagram
        The admissible cells, if not all are.
    number
        Memberships in the mean, a power of two.
    """

    rows: Rows
    laws: ConcentrationLaws
    each: bool
    diagram: DecisionDiagram | None
    number: int

    def of(self, state: Memberships, cells: Codes, rng: Generator) -> Vector:
        """p of each cell, among the admissible ones."""
        mixed = self.mixed(state, rng)
        found = np.empty(len(cells))
        kernels.mean_products(np.ascontiguousarray(cells, dtype=np.int32), self.rows.start, mixed, BLOCK, found)
        return found if self.diagram is None else found / self._admissible(mixed, self.diagram)

    def mixed(self, state: Memberships, rng: Generator) -> Vector:
        """The probability of each level (R, T) under each of T memberships."""
        theta, share = self._completed(state, rng)
        points = _sobol(self.number) + rng.random(1 + 2 * STICKS)
        points -= np.floor(points)
        g = np.empty((self.number, len(share)))
        alpha = 0.0 if self.each else float(state.alpha[0])
        kernels.draw_memberships(points, alpha, self.each, share, *self.laws.arrays, g, rng)
        return np.ascontiguousarray(theta @ g.T)

    def _completed(self, state: Memberships, rng: Generator) -> tuple[Vector, Vector]:
        """Profiles and weights that add up to one: new profiles from the prior, and last the prior's mean."""
        if not state.left > 0:
            return state.theta, state.g0
        weights, left = [], state.left
        while left > BROKEN:
            weights.append(-left * np.expm1(np.log1p(-rng.random()) / state.alpha0))
            left -= weights[-1]
        shape = (self.rows.spread(state.mass) * state.base)[:, None].repeat(len(weights), axis=1)
        theta = np.hstack([state.theta, self.rows.dirichlet(shape, rng), state.base[:, None]])
        return theta, np.concatenate([state.g0, weights, [max(left, 0.0)]])

    def _admissible(self, mixed: Vector, diagram: DecisionDiagram) -> float:
        """The probability of an admissible cell."""
        start = self.rows.start
        marginals = [mixed[start[j] : start[j + 1]].T for j in range(self.rows.keys)]
        return float(diagram.mass(marginals).mean())
