r"""The posterior of the cells' probabilities: orders pooled, one gamma law per cell, joint draws.

In each order the posterior of :math:`\log p_k` has, to second order, the mean
:math:`\mu_k = \log\hat p_k + g'\delta - \tfrac12 \mathrm{tr}(F S)` and the variance :math:`v_k = g'H^{-1}g`,
summed over the conditionals. Orders are pooled as densities, :math:`p_k = \mathrm{mean}_o\, e^{\mu_{k,o}}`, and
share their errors, so the pooled deviation is the mean of theirs.

The law of :math:`p_k` is a gamma law of the shape :math:`1/v_k`: if the likelihood of a cell is
:math:`p^a e^{-bp}`, the curvature at the mode of log p is exactly a. Its scale is set by :math:`E\log p_k`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.models.sequential.joint import JointLaw
from keyhole.numerics.log_gamma_law import HIGHEST_SHAPE, LOWEST_SHAPE, log_quantiles
from keyhole.population.negative_binomial import NegativeBinomialUnsampled

SMALLEST_VARIANCE = 1.0 / HIGHEST_SHAPE

FURTHEST = 2.0
"""How far the second-order mean of log p may be from that of a gamma law around the mode; more means nothing."""


@dataclass(frozen=True, eq=False)
class CellPosterior:
    """The law of log p at given cells.

    Attributes
    ----------
    log_mean
        The logarithm of the mean of p, by cell.
    shape
        Of the gamma law of p.
    """

    log_mean: Vector
    shape: Vector

    @classmethod
    def pooled(cls, moments: Sequence[Vector]) -> "CellPosterior":
        """From the moments of each order, as `JointLaw.moments` gives them, at the same cells."""
        deviation = np.mean([np.sqrt(np.maximum(found[:, 2], SMALLEST_VARIANCE)) for found in moments], axis=0)
        shape = np.maximum(deviation**-2.0, LOWEST_SHAPE)
        # What the mean of log p is below the log of the mean, in a gamma law.
        below = np.log(shape) - special.digamma(shape)
        mean_of_log = np.stack(
            [found[:, 0] + np.clip(found[:, 1], -below - FURTHEST, -below + FURTHEST) for found in moments]
        )
        density = special.logsumexp(mean_of_log, axis=0) - np.log(len(moments))
        return cls(np.minimum(density, 0.0) + below, shape)

    def tilted(self, log_ratio: Vector) -> "CellPosterior":
        """The law of p times known ratios."""
        return CellPosterior(self.log_mean + log_ratio, self.shape)

    def unsampled(self, trials: Vector | int, shift: float = 0.0) -> NegativeBinomialUnsampled:
        """The law of the unsampled counts of ``trials`` people, cell by cell, the probabilities integrated out.

        The shift is added to every log p.
        """
        log_rate = np.log(self.shape) - self.log_mean - shift
        return NegativeBinomialUnsampled(self.shape, special.expit(log_rate - np.log(np.maximum(trials, 1e-300))))

    def log_draw(self, scores: Vector) -> Vector:
        """log p at standard normal scores of the cells."""
        mean_of_log = self.log_mean + special.digamma(self.shape) - np.log(self.shape)
        return np.minimum(log_quantiles(mean_of_log, self.shape, scores), -1e-12)


def joint_scores(laws: Sequence[JointLaw], cells: IntVector, size: int, rng: Generator) -> NDArray[np.float32]:
    """Standard normal scores of log p (size, cells), correlated as in the orders' posteriors.

    Each order gives its share of the draws and each draw appears with both signs, so that odd moments
    vanish exactly.
    """
    shares = np.array_split(np.arange((size + 1) // 2), len(laws))
    found = []
    for law, share in zip(laws, shares, strict=True):
        if not len(share):
            continue
        moved, variance = law.directions(cells, len(share), rng)
        found.append((moved / np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))[:, None]).T)
    half = np.concatenate(found)
    return np.asarray(np.concatenate([half, -half])[:size], dtype=np.float32)
