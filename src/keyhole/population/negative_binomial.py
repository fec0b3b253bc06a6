"""Unsampled counts that are independent negative binomial variables."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy import special

from keyhole.arrays import IntVector, Vector


@dataclass(frozen=True, slots=True)
class NegativeBinomialUnsampled:
    r"""U counts the failures before the ``shape``-th success, independently by cell.

    .. math:: r_1 = p^\alpha, \qquad r_2 = \frac{p\,(1 - p^{\alpha - 1})}{(1 - p)(\alpha - 1)}

    and :math:`r_2 = -p \log p / (1 - p)` at :math:`\alpha = 1`, where U is geometric.

    Attributes
    ----------
    shape
        :math:`\alpha`, a number or one per cell.
    probability
        p of each cell; 1 means that nobody else can be there, 0 that infinitely many are.
    """

    shape: Vector
    probability: Vector

    def prob_none(self) -> Vector:
        return np.asarray(self.probability**self.shape)

    def mean_match(self) -> Vector:
        some = (self.probability > 0) & (self.probability < 1)
        p = np.where(some, self.probability, 0.5)
        log = np.log(p)
        value = p * -log / (1.0 - p) * special.exprel((self.shape - 1.0) * log)
        return np.asarray(np.where(some, value, np.where(self.probability > 0, 1.0, 0.0)))

    def draw(self, rng: Generator) -> IntVector:
        some = np.clip(self.probability, 1e-300, 1.0)
        rate = rng.standard_gamma(np.broadcast_to(self.shape, some.shape)) * (1.0 - some) / some
        # Beyond this NumPy cannot draw; 1 / (1 + U) is zero to every digit that matters.
        return rng.poisson(np.minimum(rate, 1e18))
