r"""The posterior of the cells' probabilities: orders pooled, one law of log p per cell, joint draws.

A cell's probability is a product of conditionals. To second order the posterior of each has the mean
:math:`\log\hat p_j + g_j'\delta - \tfrac12 \mathrm{tr}(F S)` and, at its mode, the curvature
:math:`1/v_j = (g_j'H_j^{-1}g_j)^{-1}`. Were its likelihood :math:`p_j^a e^{-b p_j}`, the curvature at the mode of
:math:`\log p_j` would be exactly a: each conditional is therefore the logarithm of a gamma variable of the shape
:math:`1/v_j`. Conditionals have coefficients of their own and are independent, so that cumulants add up,

.. math:: \mathrm{Var} \log p = \sum_j \psi'(1/v_j), \qquad \kappa_3 = \sum_j \psi''(1/v_j),

and the law of :math:`\log p` is taken as that of the logarithm of one gamma variable, moved and stretched to
these. Orders are pooled as densities, :math:`p = \mathrm{mean}_o\, e^{\mu_o}`, and share their errors, so the
pooled deviation is the mean of theirs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.models.sequential.joint import JointLaw, Moment
from keyhole.numerics.log_gamma_law import HIGHEST_SHAPE, log_deviation, log_quantiles, shape_of_skewness

SMALLEST_VARIANCE = 1.0 / HIGHEST_SHAPE

FURTHEST = 2.0
"""How far the second-order mean of log p may be from half of v below the mode; more means nothing."""

NODES = np.polynomial.hermite_e.hermegauss(31)
"""Normal scores and weights at which means over the posterior are taken: exact to three digits up to deviations of
2; those of real samples are mostly below 1.5."""


@dataclass(frozen=True, eq=False)
class CellPosterior:
    """The law of log p at given cells.

    Attributes
    ----------
    mean, deviation
        Of log p, by cell.
    shape
        Of the gamma variable whose logarithm is as skewed.
    """

    mean: Vector
    deviation: Vector
    shape: Vector

    @classmethod
    def pooled(cls, moments: Sequence[Vector]) -> "CellPosterior":
        """From the moments of each order, as `JointLaw.moments` gives them, at the same cells."""
        variance = np.maximum([found[:, Moment.VARIANCE] for found in moments], SMALLEST_VARIANCE)
        skewness = np.stack([found[:, Moment.SKEW] for found in moments]) / variance**1.5
        means = [
            found[:, Moment.LOG_P] + np.clip(found[:, Moment.BIAS], -half - FURTHEST, -half + FURTHEST)
            for found in moments
            for half in (found[:, Moment.CURVED] / 2,)
        ]
        density = special.logsumexp(np.stack(means), axis=0) - np.log(len(moments))
        deviation = np.sqrt(variance).mean(axis=0)
        return cls(np.minimum(density, 0.0), deviation, shape_of_skewness(skewness.mean(axis=0)))

    @classmethod
    def known(cls, log_p: Vector) -> "CellPosterior":
        """Probabilities without a doubt."""
        return cls(log_p, np.zeros(len(log_p)), np.full(len(log_p), HIGHEST_SHAPE))

    def tilted(self, log_ratio: Vector) -> "CellPosterior":
        """The law of p times known ratios."""
        return replace(self, mean=self.mean + log_ratio)

    def log_draw(self, scores: Vector) -> Vector:
        """log p at standard normal scores of the cells."""
        return np.minimum(log_quantiles(self.mean, self.deviation, self.shape, scores), -1e-12)

    def nodes(self) -> Iterator[tuple[float, Vector]]:
        """Weights that sum to one, and log p of every cell at each: means over the posterior are sums of these."""
        scores, weights = NODES
        for score, weight in zip(scores, weights / weights.sum(), strict=True):
            yield float(weight), self.log_draw(np.full(len(self.mean), score))

    def log_moment(self, power: float) -> Vector:
        r"""log E p^power: with c = deviation / sd(log G) times the power, that of G^c."""
        stretch = power * self.deviation / log_deviation(self.shape)
        gained = special.gammaln(self.shape + stretch) - special.gammaln(self.shape)
        return np.asarray(power * self.mean + gained - stretch * special.digamma(self.shape))


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
