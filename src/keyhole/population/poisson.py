"""Unsampled counts that are independent Poisson variables: the law of log-linear models."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy import special

from keyhole.arrays import IntVector, Vector


@dataclass(frozen=True, slots=True)
class PoissonUnsampled:
    r"""U is Poisson with mean mu in each cell, independently.

    .. math:: r_1 = e^{-\mu}, \qquad r_2 = (1 - e^{-\mu})/\mu

    Attributes
    ----------
    mean
        :math:`\mu = (1 - \pi)\lambda` with :math:`\lambda` the cell's mean in the POPULATION. A model fitted to
        sample counts gives :math:`\pi\lambda`: divide by the sampling fraction first.

    Examples
    --------
    >>> PoissonUnsampled(np.array([0.0])).mean_match().tolist()
    [1.0]
    """

    mean: Vector

    def prob_none(self) -> Vector:
        return np.exp(-self.mean)

    def mean_match(self) -> Vector:
        return np.asarray(special.exprel(-self.mean))

    def draw(self, rng: Generator) -> IntVector:
        return rng.poisson(self.mean)
