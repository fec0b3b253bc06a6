r"""How cells scatter around the law: what no term of the model explains.

The true probability of a cell is the law's times :math:`\theta_k \sim \mathrm{Gamma}(\alpha_k, \alpha_k)` of
mean one over all cells and of a variance that rises as cells get rare,

.. math:: 1/\alpha_k = \sqrt{p_1 / p_k}.

In a cell with f records :math:`\theta_k \sim \mathrm{Gamma}(\alpha_k + f, \alpha_k + n p_k)`: a rare cell that was
seen is a crowded one more often than not. The unsampled count is then negative binomial.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.models.sequential.cell_posterior import CellPosterior
from keyhole.numerics.log_gamma_law import HIGHEST_SHAPE
from keyhole.population.negative_binomial import NegativeBinomialUnsampled

UNIT = 5e-8
"""p_1: between what tables by drawn keys want and what declared ones do, on two populations (study in
``docs/explanation/sequential-logit.md``)."""

UNIT_DEVIATION = 0.8
"""Of the logarithm of the unit between tables: some want 2e-8, some 2e-7 and more."""

LOWEST = 300.0
"""Log probabilities below minus this are taken as this: nobody, to every digit."""


SMALLEST_RATIO = 1e-9
"""Variance that the scatter adds to a count, over its mean, below which it adds nothing."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """The law of the factors.

    Attributes
    ----------
    unit
        The probability p_1 at which the variance of the factor is one.
    """

    unit: float = UNIT

    def shape(self, log_p: Vector) -> Vector:
        """alpha at given log probabilities.

        Examples
        --------
        >>> Scatter(1e-8).shape(np.log([1e-8, 1e-6, 1e-4])).round(9).tolist()
        [1.0, 10.0, 100.0]
        """
        if self.unit == 0.0:
            return np.full(len(log_p), HIGHEST_SHAPE)
        return np.asarray(np.exp(np.clip((log_p - np.log(self.unit)) / 2, -LOWEST, np.log(HIGHEST_SHAPE))))

    def unsampled(self, log_p: Vector, sampled: Vector | int, trials: Vector | int) -> NegativeBinomialUnsampled:
        """The law of the unsampled counts of cells with one record, their probability in the law being known.

        Parameters
        ----------
        sampled, trials
            People in and outside of the sample, as they count for each cell.
        """
        p = np.exp(np.clip(log_p, -LOWEST, 0.0))
        rate = self.shape(log_p) + sampled * p
        return NegativeBinomialUnsampled(self.shape(log_p) + 1.0, rate / (rate + trials * p))

    def crowds(self, log_p: Vector, records: int, rng: Generator) -> IntVector:
        """How many records each of those drawn from the law becomes where cells scatter, of so many in all.

        A Poisson number of crowds of logarithmic size is a negative binomial count: one mean as before, and the
        variance of the factor.
        """
        ratio = np.maximum(records * np.exp(log_p) / self.shape(log_p), SMALLEST_RATIO)
        kept = rng.random(len(ratio)) * ratio < np.log1p(ratio)
        return np.where(kept, rng.logseries(ratio / (1.0 + ratio)), 0)

    def risks(
        self, cells: CellPosterior, sampled: Vector | int, trials: Vector | int, shift: float = 0.0
    ) -> tuple[Vector, Vector]:
        """r1 and r2 of cells with one record, averaged over the posterior of their probabilities.

        The shift is added to every log p.
        """
        alone, match = np.zeros((2, len(cells.mean)))
        for weight, log_p in cells.nodes():
            law = self.unsampled(log_p + shift, sampled, trials)
            alone += weight * law.prob_none()
            match += weight * law.mean_match()
        # Weights sum to one but for rounding; nobody is surer than alone.
        return np.minimum(alone, 1.0), np.minimum(match, 1.0)

    def around(self, cells: CellPosterior, sampled: Vector, records: IntVector) -> tuple[Vector, Vector]:
        """The log mean and the shape of gamma laws of scattered probabilities, in cells with so many records.

        They have the first two moments of the posterior; relative variances add up.
        """
        log_mean = np.minimum(cells.log_moment(1.0), 0.0)
        doubt = np.expm1(cells.log_moment(2.0) - 2.0 * log_mean)
        shape = self.shape(log_mean)
        log_factor = np.log((shape + records) / (shape + sampled * np.exp(log_mean)))
        return log_mean + log_factor, 1.0 / (doubt + 1.0 / (shape + records))
