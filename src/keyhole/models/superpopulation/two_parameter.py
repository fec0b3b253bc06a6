r"""The two-parameter partition law behind the Ewens, Pitman and Poisson-gamma superpopulations.

People arrive one by one. When n of them hold k cells, the next one joins a cell that holds j of them
with probability (j - sigma) / (theta + n) and opens a new one with probability (theta + k sigma) / (theta + n).
A sample of n is the first n arrivals, so the same law with the same parameters describes the sample and the
population: the sampling fraction enters only through n and N.

* sigma = 0: Ewens. 0 < sigma < 1: Pitman.
* sigma = -theta / K: K equally likely cells with Dirichlet weights of mass theta, which is what Poisson counts
  with gamma rates become once their total is known.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.numerics.log_gamma import log_rising, log_rising_ratio
from keyhole.population.polya import PolyaUnsampled
from keyhole.population.sample import Sample
from keyhole.table.size_index import SizeIndex

_NO_DISCOUNT = 1e-10
"""Below this a discount changes no digit of the likelihood."""


def log_partition(index: SizeIndex, theta: ArrayLike, sigma: ArrayLike, cells: float = np.inf) -> Vector:
    r"""Log-probability of a size index, at each pair of parameters.

    .. math::

        P(f_1, f_2, \ldots) = \frac{n!}{\prod_j f_j!\, (j!)^{f_j}}\;
        \frac{\prod_{i=1}^{k-1} (\theta + i\sigma)}{(\theta + 1)_{n-1}} \prod_j \big((1 - \sigma)_{j-1}\big)^{f_j}

    Parameters
    ----------
    cells
        K, where sigma is -theta / K; the product is then written so that K = 1e30 loses nothing.

    References
    ----------
    Pitman (1995), Exchangeable and partially exchangeable random partitions, Probability Theory and Related
    Fields 102.
    """
    theta, sigma = np.broadcast_arrays(np.asarray(theta, dtype=float), np.asarray(sigma, dtype=float))
    records, occupied = index.records, index.occupied
    sizes = index.sizes.astype(float)
    ways = special.gammaln(records + 1.0) - float(
        (index.cells * special.gammaln(sizes + 1.0) + special.gammaln(index.cells + 1.0)).sum()
    )
    shared = log_rising(1.0 - sigma[..., None], sizes - 1.0) @ index.cells.astype(float)
    opened = _log_opened(theta, sigma, occupied, cells)
    return np.asarray(ways + opened + shared - log_rising(theta + 1.0, records - 1.0))


def _log_opened(theta: Vector, sigma: Vector, occupied: int, cells: float) -> Vector:
    """Sum of log(theta + i sigma) for i from 1 to k - 1."""
    steps = occupied - 1.0
    if np.isfinite(cells):
        free = float(log_rising(cells - occupied + 1.0, steps)) - steps * np.log(cells)
        return np.asarray(steps * np.log(theta) + free)
    discount = np.maximum(sigma, _NO_DISCOUNT)
    discounted = steps * np.log(discount) + log_rising(np.maximum(theta / discount + 1.0, 0.0), steps)
    plain = steps * np.log(np.maximum(theta, np.finfo(float).tiny))
    return np.asarray(np.where(sigma > _NO_DISCOUNT, discounted, plain))


@dataclass(frozen=True)
class TwoParameter:
    """The partition law at one pair of parameters, and what it says of a sample."""

    theta: float
    sigma: float

    def unsampled(self, sample: Sample) -> PolyaUnsampled:
        """The urn goes on for N - n steps."""
        return PolyaUnsampled(
            sample.uniques, 1.0 - self.sigma, self.theta + sample.sample_size, sample.unsampled_size
        )

    def expected_size_index(self, sizes: IntVector, records: int) -> Vector:
        r"""Expected number of cells that hold j of n records.

        .. math:: E f_j = \binom{n}{j} \frac{(1 - \sigma)_{j-1} (\theta + \sigma)_{n-j}}{(\theta + 1)_{n-1}}
        """
        opening = self.theta + self.sigma
        if opening <= 0:  # one cell is all there is
            return np.where(sizes == records, 1.0, 0.0)
        size = np.minimum(sizes, records).astype(float)
        logs = (
            # n! / (n - j)! against the last j steps of (theta + sigma)_n, so that neither is ever large.
            log_rising_ratio(records - size + 1.0, opening - 1.0, size)
            + log_rising(opening, records)
            - log_rising(self.theta + 1.0, records - 1.0)
            + log_rising(1.0 - self.sigma, size - 1.0)
            - special.gammaln(size + 1.0)
        )
        return np.asarray(np.where(sizes <= records, np.exp(logs), 0.0))

    def population_uniques(self, sample: Sample) -> float:
        r"""Expected number of population uniques given the sample: old ones left alone, and new ones.

        .. math:: u\,r_1 + m\,\frac{\theta + k\sigma}{\theta + n}\,
                  \frac{(\theta + n + \sigma)_{m-1}}{(\theta + n + 1)_{m-1}}
        """
        law = self.unsampled(sample)
        alone = float(law.prob_none().sum())
        unsampled, records = sample.unsampled_size, sample.sample_size
        if unsampled == 0:
            return alone
        opens = max(self.theta + sample.table.occupied * self.sigma, 0.0) / (self.theta + records)
        stays = float(np.exp(log_rising_ratio(self.theta + records + self.sigma, 1 - self.sigma, unsampled - 1.0)))
        return alone + unsampled * opens * stays

    def log_unsampled(self, sample: Sample, count: int, unsampled: Vector) -> Vector:
        """log P(U = u | f) of a cell that holds ``count`` records: beta-binomial."""
        own, people = count - self.sigma, float(sample.unsampled_size)
        rest = self.theta + sample.sample_size - own
        return (
            log_rising_ratio(own, 1.0 - own, unsampled)
            + log_rising_ratio(people - unsampled + 1.0, rest - 1.0, unsampled)
            + log_rising_ratio(rest, own, people)
        )
