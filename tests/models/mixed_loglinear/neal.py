"""Neal's (2000) algorithm 3, which the paper uses: one cell after the other, effects integrated out."""

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln

from keyhole.arrays import IntVector, Vector
from keyhole.numerics.concentration import GammaPrior


class Algorithm3:
    """Clusters of cells with Poisson counts f of mean x omega and a gamma base (a, b)."""

    def __init__(self, counts: IntVector, x: Vector, a: float, b: float, prior: GammaPrior) -> None:
        self.counts, self.x, self.a, self.b, self.prior = counts, x, a, b, prior
        self.z = np.zeros(len(counts), dtype=np.int64)
        self.mass = 1.0
        self.log_effect = np.zeros(len(counts))

    @property
    def clusters(self) -> int:
        return len(np.unique(self.z))

    def sweep(self, rng: Generator) -> None:
        for k in range(len(self.z)):
            self._reseat(k, rng)
        self.z = np.unique(self.z, return_inverse=True)[1]
        self._draw_mass(rng)
        held, exposed = np.bincount(self.z, self.counts), np.bincount(self.z, self.x)
        self.log_effect = np.log(rng.standard_gamma(self.a + held) / (self.b + exposed))[self.z]

    def _reseat(self, k: int, rng: Generator) -> None:
        others = np.delete(np.arange(len(self.z)), k)
        labels, z = np.unique(self.z[others], return_inverse=True)
        size = np.bincount(z)
        shape = np.append(self.a + np.bincount(z, self.counts[others]), self.a)
        rate = np.append(self.b + np.bincount(z, self.x[others]), self.b)
        f, x = self.counts[k], self.x[k]
        # The negative binomial law of the count, but for what all clusters share.
        log = gammaln(shape + f) - gammaln(shape) + shape * np.log(rate) - (shape + f) * np.log(rate + x)
        log += np.log(np.append(size, self.mass))
        weight = np.exp(log - log.max())
        chosen = int(rng.choice(len(weight), p=weight / weight.sum()))
        self.z[k] = labels[chosen] if chosen < len(labels) else self.z.max() + 1

    def _draw_mass(self, rng: Generator) -> None:
        """Escobar & West (1995)."""
        cells, clusters = len(self.z), self.clusters
        rate = self.prior.rate - np.log(rng.beta(self.mass + 1.0, cells))
        odds = (self.prior.shape + clusters - 1.0) / (cells * rate)
        more = rng.random() < odds / (1.0 + odds)
        self.mass = float(rng.gamma(self.prior.shape + clusters - (not more), 1.0 / rate))
