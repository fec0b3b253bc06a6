"""Unsampled counts that are Poisson with an estimated mean: plug-in forms, draws with the estimation error."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy import special

from keyhole.arrays import IntVector, Vector


@dataclass(frozen=True)
class PerturbedPoissonUnsampled:
    r"""U is Poisson with mean mu in closed form; a draw moves all means together first.

    .. math:: r_1 = e^{-\mu}, \qquad r_2 = (1 - e^{-\mu})/\mu, \qquad
              U_k \sim \mathrm{Poisson}\Bigl(\mu_k\, e^{\epsilon_{sk}} \big/ \overline{e^{\epsilon_k}}\Bigr)

    with s one row of the noise, drawn anew each time, so that cells whose estimates err together move together.
    The factors are divided by their mean over the rows: under a flat prior on the effects of a log-linear model
    the posterior mean of its margins is exactly the observed, that is the fitted one (Diaconis & Ylvisaker 1979,
    *Annals of Statistics* 7), and normal noise on the log scale alone would raise it by half the variance.

    Attributes
    ----------
    mean
        The estimated mean, as in `PoissonUnsampled`.
    noise
        Draws of the error of log mean, one row per draw and one column per cell.

    Examples
    --------
    >>> law = PerturbedPoissonUnsampled(np.array([0.0, 2.0]), np.array([[0.1, -1.0], [-0.1, 1.0]]))
    >>> law.mean_match().round(4).tolist()
    [1.0, 0.4323]
    >>> np.mean([law.factors(0), law.factors(1)], axis=0).round(12).tolist()
    [1.0, 1.0]
    """

    mean: Vector
    noise: Vector

    def __post_init__(self) -> None:
        if self.noise.ndim != 2 or not len(self.noise) or self.noise.shape[1] != len(self.mean):
            raise ValueError(
                f"Noise of shape {self.noise.shape} does not have a column for each of {len(self.mean)} cells."
            )

    @cached_property
    def _level(self) -> Vector:
        """The logarithm of the mean of exp(noise) in each cell."""
        return np.asarray(special.logsumexp(self.noise, axis=0) - np.log(len(self.noise)))

    def factors(self, row: int) -> Vector:
        """What one row of the noise multiplies the means with; over the rows their mean is one."""
        return np.asarray(np.exp(self.noise[row] - self._level))

    def prob_none(self) -> Vector:
        return np.exp(-self.mean)

    def mean_match(self) -> Vector:
        return np.asarray(special.exprel(-self.mean))

    def draw(self, rng: Generator) -> IntVector:
        return rng.poisson(self.mean * self.factors(int(rng.integers(len(self.noise)))))
