"""Unsampled counts of cells that hold one person for certain and a negative binomial number more."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector, alike


@dataclass(frozen=True, slots=True)
class SlideUnsampled:
    r"""U given f = 1 when F - 1 is negative binomial.

    Either the certain person was sampled and nobody of the others, or one of the others was and the certain
    person is still out. With :math:`\beta` the odds of the negative binomial law of those others not sampled,

    .. math::

        r_2 = \frac{1}{1 + \alpha\beta}, \qquad r_1 = r_2\,(1 + \beta)^{-\alpha},

    and U is negative binomial with shape :math:`\alpha` with probability :math:`r_2`, else one more than a
    negative binomial with shape :math:`\alpha + 1`.

    Attributes
    ----------
    cells
        The number of sample-unique cells.
    shape, odds
        :math:`\alpha` and :math:`\beta`; the mean of a negative binomial is their product.
    """

    cells: int
    shape: float
    odds: float

    def prob_none(self) -> Vector:
        return alike(self.cells, self._match * float(np.exp(-self.shape * np.log1p(self.odds))))

    def mean_match(self) -> Vector:
        return alike(self.cells, self._match)

    @property
    def _match(self) -> float:
        return 1.0 / (1.0 + self.shape * self.odds)

    def draw(self, rng: Generator) -> IntVector:
        out = (rng.random(self.cells) >= self._match).astype(np.int64)
        rate = rng.standard_gamma(self.shape + out) * self.odds
        return out + rng.poisson(np.minimum(rate, 1e18))
