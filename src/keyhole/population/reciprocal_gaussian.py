"""Unsampled counts that are Poisson with a reciprocal inverse Gaussian rate."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.random import Generator
from scipy import special

from keyhole.arrays import IntVector, Vector, alike


@dataclass(frozen=True, slots=True)
class ReciprocalGaussianUnsampled:
    r"""A Poisson mixture by its Laplace transform.

    The rate of a cell with one sampled person is generalised inverse Gaussian of order 1/2, the sum of an
    inverse Gaussian and a gamma variable of shape 1/2, with

    .. math:: E e^{-t X} = (1 + 2 s t)^{-1/2} \exp\{-z (\sqrt{1 + 2 s t} - 1)\}

    so that, with :math:`d = \sqrt{1 + 2s} - 1`,

    .. math:: r_1 = \frac{e^{-z d}}{1 + d}, \qquad r_2 = \int_0^1 E e^{-tX}\,dt = \frac{1 - e^{-zd}}{s z}

    Attributes
    ----------
    cells
        The number of sample-unique cells.
    scale, tilt
        s and z; s = 0 is a census.
    """

    cells: int
    scale: float
    tilt: float

    @property
    def _reach(self) -> float:
        return 2.0 * self.scale / (1.0 + sqrt(1.0 + 2.0 * self.scale))

    def prob_none(self) -> Vector:
        return alike(self.cells, np.exp(-self.tilt * self._reach) / (1.0 + self._reach))

    def mean_match(self) -> Vector:
        # d / s = 2 / (2 + d), so that neither s = 0 nor z = 0 divides by zero.
        return alike(self.cells, 2.0 / (2.0 + self._reach) * float(special.exprel(-self.tilt * self._reach)))

    def draw(self, rng: Generator) -> IntVector:
        rate = self.scale * rng.chisquare(1.0, self.cells)
        mean, spread = self.tilt * self.scale, self.tilt**2 * self.scale
        if mean > 1e-100 and spread > 1e-100:
            rate = rate + rng.wald(mean, spread, self.cells)
        return rng.poisson(np.minimum(rate, 1e18))
