"""Ewens' superpopulation: one parameter, the propensity of a new person to be different from all others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keyhole.arrays import Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.models.superpopulation.edges import untrusted
from keyhole.models.superpopulation.likelihood_fit import Family
from keyhole.models.superpopulation.size_index_model import LikelihoodModel
from keyhole.models.superpopulation.two_parameter import TwoParameter, log_partition
from keyhole.numerics.posterior import Peak, Points
from keyhole.population.sample import Sample
from keyhole.table.size_index import SizeIndex


@dataclass(frozen=True)
class Ewens(LikelihoodModel):
    r"""The Ewens sampling formula as a superpopulation.

    The number of occupied cells is sufficient for theta; with m = N - n unsampled people U is beta-binomial
    (m; 1, theta + n - 1), so :math:`r_1 = (\theta + n - 1)/(\theta + N - 1)`.

    References
    ----------
    Ewens (1972), The sampling theory of selectively neutral alleles, Theoretical Population Biology 3.
    Samuels (1998), A Bayesian, species-sampling-inspired approach to the uniques problem in microdata
    disclosure risk assessment, Journal of Official Statistics 14.
    """

    name: ClassVar[str] = "ewens"
    record: ClassVar[TrackRecord] = TrackRecord(-96, -65, covered=0, samples=18)

    def family(self, sample: Sample) -> Family:
        return EwensFamily(sample.size_index, sample.population_size)


@dataclass(frozen=True)
class EwensFamily:
    """Working scale: log theta, the natural parameter of the exponential family of the number of cells."""

    index: SizeIndex
    population_size: int

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("theta",)

    @property
    def lower(self) -> Vector:
        return np.array([np.log(1e-4)])

    @property
    def upper(self) -> Vector:
        # Beyond N times n nobody meets anybody, in the sample or outside it.
        return np.array([np.log(10.0 * self.population_size * self.index.records)])

    def log_likelihood(self, working: Points) -> Vector:
        return log_partition(self.index, np.exp(working[:, 0]), 0.0)

    def log_prior(self, working: Points) -> Vector:
        r"""Density :math:`\theta^{-3/2}` of log theta, which matters only when the sample has few ties.

        The number of ties is nearly Poisson with mean n^2 / (2 theta). A power of -2 would make E(theta) unbiased,
        -1/2 would match the coverage of theta; r1 is concave in theta, so that its own power lies between.
        """
        return -1.5 * working[:, 0]

    def natural(self, working: Vector) -> Vector:
        return np.exp(working)

    def law(self, working: Vector) -> TwoParameter:
        return TwoParameter(float(np.exp(working[0])), 0.0)

    def edge(self, peak: Peak) -> Diagnostic | None:
        if peak.at_upper[0] or self.index.at(1) == self.index.records:
            return untrusted(self.index, "theta grows without bound and everyone looks unique")
        if peak.at_lower[0]:
            return untrusted(self.index, "theta falls to zero and everyone looks alike")
        return None
