r"""The law of a record's own concentration: how much a person's memberships differ from the average.

With m tables of a record of J keys and a Gamma(a, b) prior it is

.. math:: p(\alpha \mid m) \propto \alpha^{a - 1 + m} e^{-b\alpha} \prod_{c < J} (\alpha + c)^{-1},

which depends on the number of tables only, so that J tabulated laws serve all records.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from keyhole.arrays import Vector
from keyhole.numerics.concentration import GammaPrior

KNOTS, GUIDES = 512, 2048
"""Of a tabulated law; with many guides most draws find their place at once."""

TAIL = 1e-10
"""Probability beyond the knots, at either end."""


@dataclass(frozen=True, eq=False)
class ConcentrationLaws:
    """Tabulated laws of a record's own concentration: row 0 is the prior, row m that given m tables.

    Attributes
    ----------
    knot
        Values: 0, then in geometric progression to the prior's mean, then evenly spaced.
    curve
        The distribution function of each law at the knots, and its density there.
    guide
        For u = 0, 1/G, 2/G ... the cell between knots in which the quantile of u is.
    """

    knot: Vector
    curve: Vector
    guide: NDArray[np.int32]

    @classmethod
    def of(cls, prior: GammaPrior, keys: int) -> "ConcentrationLaws":
        """Those of records with that many keys; the distribution is summed by Gauss-Legendre quadrature."""
        lowest = stats.gamma.ppf(TAIL, prior.shape) / prior.rate
        highest = stats.gamma.isf(TAIL, prior.shape + keys) / prior.rate
        middle = prior.shape / prior.rate
        low, high = np.geomspace(lowest, middle, KNOTS // 2), np.linspace(middle, highest, KNOTS // 2)
        knot = np.concatenate([[0.0], low, high[1:]])
        node, weight = np.polynomial.legendre.leggauss(7)
        inner = (knot[:-1, None] + knot[1:, None] + np.diff(knot)[:, None] * node) / 2
        height, below = np.zeros((2, keys + 1, KNOTS))
        for tables in range(keys + 1):
            shift = _log_density(knot[1:], prior, tables, keys).max()
            height[tables, 1:] = np.exp(_log_density(knot[1:], prior, tables, keys) - shift)
            height[tables, 0] = height[tables, 1]
            mass = np.exp(_log_density(inner, prior, tables, keys) - shift) @ weight * np.diff(knot) / 2
            below[tables, 1:] = np.cumsum(mass) / mass.sum()
        below[:, -1] = 1.0
        start = np.arange(GUIDES) / GUIDES
        guide = np.stack([np.searchsorted(row, start, side="right") - 1 for row in below])
        return cls(knot, np.stack([below, height], axis=-1), guide.astype(np.int32))

    @property
    def arrays(self) -> tuple[Vector, Vector, NDArray[np.int32]]:
        """As the kernels take them."""
        return self.knot, self.curve, self.guide


def _log_density(alpha: Vector, prior: GammaPrior, tables: int, keys: int) -> Vector:
    value = (prior.shape - 1.0) * np.log(alpha) - prior.rate * alpha
    if tables:
        value = value + tables * np.log(alpha)
        for c in range(keys):
            value = value - np.log(alpha + c)
    return np.asarray(value)
