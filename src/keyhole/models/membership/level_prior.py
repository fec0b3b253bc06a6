r"""What profiles are like before any record is seen: the law of the levels of each key.

.. math:: \theta_{jk} \sim \mathrm{Dirichlet}(\nu_j\, b_j)

``uniform`` fixes :math:`\nu_j` to the number of levels and :math:`b_j` to equal shares, the flat prior of the
papers. ``marginal`` learns both, :math:`\nu_j \sim \mathrm{Gamma}(1, 1)` and
:math:`b_j \sim \mathrm{Dirichlet}(1, \ldots, 1)`: a level that is rare in all profiles is rare in a new one too.
Given the records by level and profile, with the profiles integrated out, each count sits down in a Chinese
restaurant with concentration :math:`\nu_j b_{jx}`. With
:math:`t_{jx}` tables, :math:`c_{jk}` records of profile k and :math:`\eta_{jk} \sim \mathrm{Beta}(\nu_j, c_{jk})`,

.. math:: b_j \sim \mathrm{Dirichlet}(1 + t_j), \qquad
    \nu_j \sim \mathrm{Gamma}\Bigl(1 + \sum_x t_{jx},\; 1 - \sum_k \log\eta_{jk}\Bigr).
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.models.membership import _kernels as kernels

Prior = Literal["marginal", "uniform"]
PRIORS = get_args(Prior)


@dataclass(frozen=True, eq=False)
class Rows:
    """The levels of all keys numbered through: row ``start[j] + x`` is level x of key j."""

    levels: tuple[int, ...]

    @cached_property
    def start(self) -> IntVector:
        """Where each key starts, and last where they end."""
        return np.array([0, *accumulate(self.levels)], dtype=np.int64)

    @property
    def keys(self) -> int:
        return len(self.levels)

    @property
    def total(self) -> int:
        return int(self.start[-1])

    def summed(self, values: Vector | IntVector) -> Vector:
        """Sums of values (R, ...) by key."""
        return np.add.reduceat(values.astype(np.float64), self.start[:-1], axis=0)

    def spread(self, values: Vector) -> Vector:
        """Values (J, ...) of the keys, for each row."""
        return np.repeat(values, self.levels, axis=0)

    def dirichlet(self, shape: Vector, rng: Generator) -> Vector:
        """Dirichlet draws, one for each key and column of shape (R, ...)."""
        logs = log_gamma_draws(shape, rng)
        draws = np.exp(logs - self.spread(np.maximum.reduceat(logs, self.start[:-1], axis=0)))
        return np.asarray(draws / self.spread(self.summed(draws)))


def log_gamma_draws(shape: Vector, rng: Generator) -> Vector:
    """Logarithms of Gamma variables: with shape a + 1, times U^(1/a), so that tiny shapes do not underflow."""
    uniform = 1.0 - rng.random(np.shape(shape))
    return np.asarray(np.log(rng.standard_gamma(np.asarray(shape) + 1.0)) + np.log(uniform) / shape)


@dataclass(frozen=True, eq=False)
class LevelPrior:
    """The prior of the profiles, and how its own parameters are drawn."""

    rows: Rows
    kind: Prior

    def draw(self, rng: Generator) -> tuple[Vector, Vector]:
        """Masses (J,) and bases (R,) from their own prior."""
        if self.kind == "uniform":
            return self.flat()
        base = self.rows.dirichlet(np.ones(self.rows.total), rng)
        return rng.standard_gamma(1.0, self.rows.keys), _positive(base)

    def flat(self) -> tuple[Vector, Vector]:
        """One count for each level."""
        levels = np.array(self.rows.levels, dtype=np.float64)
        return levels, self.rows.spread(1.0 / levels)

    def update(self, mass: Vector, base: Vector, counts: IntVector, rng: Generator) -> tuple[Vector, Vector]:
        """Masses and bases given counts (R, K), the profiles integrated out."""
        if self.kind == "uniform":
            return mass, base
        mass, base = mass.copy(), base.copy()
        kernels.draw_level_prior(counts, mass, base, self.rows.start, rng)
        return mass, base

    def profiles(self, mass: Vector, base: Vector, counts: IntVector, rng: Generator) -> Vector:
        """Profiles (R, K) given counts."""
        theta = np.empty(counts.shape)
        kernels.draw_profiles(theta, mass, base, self.rows.start, counts, rng)
        return theta


def _positive(base: Vector) -> Vector:
    """Shares that are not zero by underflow, since they divide."""
    return np.maximum(base, 1e-12)
