"""Bethlehem's Poisson-gamma superpopulation: every admissible cell has a gamma rate of its own."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keyhole.arrays import Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.models.superpopulation.edges import caution, untrusted
from keyhole.models.superpopulation.likelihood_fit import Family
from keyhole.models.superpopulation.size_index_model import LikelihoodModel, countable
from keyhole.models.superpopulation.two_parameter import TwoParameter, log_partition
from keyhole.numerics.posterior import Peak, Points
from keyhole.population.sample import Sample
from keyhole.table.size_index import SizeIndex


@dataclass(frozen=True)
class PoissonGamma(LikelihoodModel):
    r"""Poisson counts with gamma rates over the K admissible cells.

    The rates have shape :math:`\alpha` and mean N/K, so counts are negative binomial. N and n are known, and
    given their total, gamma-Poisson counts are Dirichlet-multinomial: that conditional law is used, which makes
    the forms exact at finite N. It is the two-parameter law with :math:`\sigma = -\alpha`,
    :math:`\theta = K\alpha`, and U is beta-binomial :math:`(m;\ \alpha + 1,\ K\alpha + n - 1 - \alpha)`. As K
    grows with :math:`\theta` fixed it becomes Ewens' model.

    References
    ----------
    Bethlehem, Keller & Pannekoek (1990), Disclosure control of microdata, Journal of the American Statistical
    Association 85.
    """

    name: ClassVar[str] = "poisson-gamma"
    record: ClassVar[TrackRecord] = TrackRecord(-96, -65, covered=0, samples=18)

    def family(self, sample: Sample) -> Family:
        return PoissonGammaFamily(sample.size_index, sample.population_size, countable(sample.admissible_cells))


@dataclass(frozen=True)
class PoissonGammaFamily:
    """Working scale: log theta = log(K alpha), which stays finite however many cells there are."""

    index: SizeIndex
    population_size: int
    cells: float

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("theta", "alpha")

    @property
    def lower(self) -> Vector:
        return np.array([np.log(1e-4)])

    @property
    def upper(self) -> Vector:
        # Far beyond: nobody meets anybody by likeness, and the cells' rates are all equal.
        largest = max(10.0 * self.population_size * self.index.records, 1e4 * min(self.cells, 1e12))
        return np.array([np.log(largest)])

    def log_likelihood(self, working: Points) -> Vector:
        theta = np.exp(working[:, 0])
        return log_partition(self.index, theta, -theta / self.cells, self.cells)

    def log_prior(self, working: Points) -> Vector:
        r"""Density :math:`\theta^{-3/2} (1 + \theta / K)` of log theta, which matters only with few ties.

        Where theta is small against K this is the density of Ewens' model. Where it is large the rates are nearly
        equal, with a spread of :math:`\sqrt{K/\theta}`, and the density is flat in that spread.
        """
        return -1.5 * working[:, 0] + np.log1p(np.exp(working[:, 0]) / self.cells)

    def natural(self, working: Vector) -> Vector:
        theta = float(np.exp(working[0]))
        return np.array([theta, theta / self.cells])

    def law(self, working: Vector) -> TwoParameter:
        theta = float(np.exp(working[0]))
        return TwoParameter(theta, -theta / self.cells)

    def edge(self, peak: Peak) -> Diagnostic | None:
        index = self.index
        if index.occupied == 1 or peak.at_lower[0]:
            return untrusted(index, "one cell takes all and everyone looks alike")
        if peak.at_upper[0]:
            return caution("all cells have the same rate, so the counts look like purely random ones")
        return None
