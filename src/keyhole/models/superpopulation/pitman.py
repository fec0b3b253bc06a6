"""Pitman's superpopulation: a second parameter lets new combinations keep turning up."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keyhole.arrays import Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.models.superpopulation.edges import caution, untrusted
from keyhole.models.superpopulation.likelihood_fit import Family
from keyhole.models.superpopulation.size_index_model import LikelihoodModel
from keyhole.models.superpopulation.two_parameter import TwoParameter, log_partition
from keyhole.numerics.posterior import Peak, Points
from keyhole.population.sample import Sample
from keyhole.table.size_index import SizeIndex


@dataclass(frozen=True)
class Pitman(LikelihoodModel):
    r"""Pitman's sampling formula as a superpopulation.

    With m = N - n unsampled people U is beta-binomial :math:`(m;\ 1 - \sigma,\ \theta + n - 1 + \sigma)`. All
    forms are exact at finite N; nothing relies on the growth :math:`N^\sigma`.

    References
    ----------
    Pitman (1995), Exchangeable and partially exchangeable random partitions, Probability Theory and Related
    Fields 102.
    Hoshino (2001), Applying Pitman's sampling formula to microdata disclosure risk assessment, Journal of
    Official Statistics 17.
    """

    name: ClassVar[str] = "pitman"
    record: ClassVar[TrackRecord] = TrackRecord(23, 676, covered=2, samples=18)

    def family(self, sample: Sample) -> Family:
        return PitmanFamily(sample.size_index, sample.population_size)


@dataclass(frozen=True)
class PitmanFamily:
    """Working scale: log(theta + sigma), which is free, and sigma itself, whose limit 0 is Ewens' law."""

    index: SizeIndex
    population_size: int

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("theta", "sigma")

    @property
    def lower(self) -> Vector:
        return np.array([np.log(1e-4), 0.0])

    @property
    def upper(self) -> Vector:
        return np.array([np.log(10.0 * self.population_size * self.index.records), 1.0 - 1e-9])

    def log_likelihood(self, working: Points) -> Vector:
        sigma = working[:, 1]
        return log_partition(self.index, np.exp(working[:, 0]) - sigma, sigma)

    def log_prior(self, working: Points) -> Vector:
        """Flat in log(theta + sigma) and sigma; flat in 1 / (theta + sigma) raised tau by half its error."""
        return np.zeros(len(working))

    def natural(self, working: Vector) -> Vector:
        return np.array([np.exp(working[0]) - working[1], working[1]])

    def law(self, working: Vector) -> TwoParameter:
        return TwoParameter(float(np.exp(working[0]) - working[1]), float(working[1]))

    def edge(self, peak: Peak) -> Diagnostic | None:
        index = self.index
        if peak.at_upper[0] or peak.at_upper[1]:
            return untrusted(index, "new combinations never stop turning up and everyone looks unique")
        if index.occupied == 1:
            return untrusted(index, "theta and sigma fall to their limits and everyone looks alike")
        if peak.at_lower[1]:
            return caution("sigma is zero, which is Ewens' model")
        if peak.at_lower[0]:
            return caution("theta is as low as sigma allows")
        return None
