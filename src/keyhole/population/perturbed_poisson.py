"""Unsampled counts that are Poisson with an estimated mean: plug-in forms, draws with the estimation error."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy import special

from keyhole.arrays import IntVector, Vector

STEPS = 8
"""Newton steps to the level of each cell."""

LARGEST = 15.0
"""Errors of log mean beyond this are taken as this: a factor of three million either way."""


@dataclass(frozen=True)
class PerturbedPoissonUnsampled:
    r"""U is Poisson with mean mu in closed form; a draw moves all means together first.

    .. math:: r_1 = e^{-\mu}, \qquad r_2 = (1 - e^{-\mu})/\mu, \qquad
              U_k \sim \mathrm{Poisson}\bigl(\mu_k\, e^{\epsilon_{sk} - b_k}\bigr)

    with s one row of the noise, drawn anew each time, so that cells whose estimates err together move together.
    Risk is convex in log mu, so that noise around zero alone would raise it: the draws would be about another
    number than the estimate. Each cell's level b is therefore set so that :math:`r_1 + r_2` has the plug-in value
    as its mean over the rows, and an interval from the draws is one around the estimate.

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
    """

    mean: Vector
    noise: Vector

    def __post_init__(self) -> None:
        if self.noise.ndim != 2 or not len(self.noise) or self.noise.shape[1] != len(self.mean):
            raise ValueError(
                f"Noise of shape {self.noise.shape} does not have a column for each of {len(self.mean)} cells."
            )

    @cached_property
    def level(self) -> Vector:
        """What is taken off the noise of each cell."""
        wanted = self.prob_none() + self.mean_match()
        level = np.zeros(len(self.mean))
        for _ in range(STEPS):
            total, slope = np.zeros((2, len(self.mean)))
            for row in self.noise:
                x = self.mean * np.exp(np.clip(row, -LARGEST, LARGEST) - level)
                none, match = np.exp(-x), special.exprel(-x)
                total += none + match
                slope += x * none + match - none
            step = np.divide(
                total / len(self.noise) - wanted,
                slope / len(self.noise),
                where=slope > 0,
                out=np.zeros_like(slope),
            )
            level = level - np.clip(step, -1.0, 1.0)
        return level

    def factors(self, row: int) -> Vector:
        """What one row of the noise multiplies the means with."""
        return np.asarray(np.exp(np.clip(self.noise[row], -LARGEST, LARGEST) - self.level))

    def prob_none(self) -> Vector:
        return np.exp(-self.mean)

    def mean_match(self) -> Vector:
        return np.asarray(special.exprel(-self.mean))

    def draw(self, rng: Generator) -> IntVector:
        return rng.poisson(self.mean * self.factors(int(rng.integers(len(self.noise)))))
