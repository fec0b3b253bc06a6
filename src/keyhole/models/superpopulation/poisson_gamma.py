"""Bethlehem's Poisson-gamma superpopulation: every admissible cell has a gamma rate of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.inference.fit import Diagnostic
from keyhole.models.superpopulation.draws import DEFAULT_DRAWS, checked_draws
from keyhole.models.superpopulation.edges import caution, untrusted
from keyhole.models.superpopulation.likelihood_fit import LikelihoodFit, fit_by_likelihood
from keyhole.models.superpopulation.two_parameter import TwoParameter, log_partition
from keyhole.numerics.posterior import Peak, Points
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent
from keyhole.table.size_index import SizeIndex


@dataclass(frozen=True)
class PoissonGamma:
    r"""Poisson counts with gamma rates over the K admissible cells.

    The rates have shape :math:`\alpha` and mean N/K, so counts are negative binomial. N and n are known, and
    given their total, gamma-Poisson counts are Dirichlet-multinomial: that conditional law is used, which makes
    the forms exact at finite N. It is the two-parameter law with :math:`\sigma = -\alpha`,
    :math:`\theta = K\alpha`, and U is beta-binomial :math:`(m;\ \alpha + 1,\ K\alpha + n - 1 - \alpha)`. As K
    grows with :math:`\theta` fixed it becomes Ewens' model.

    Parameters
    ----------
    draws
        Parameter draws behind the interval.

    References
    ----------
    Bethlehem, Keller & Pannekoek (1990), Disclosure control of microdata, Journal of the American Statistical
    Association 85.
    """

    draws: int = DEFAULT_DRAWS

    def __post_init__(self) -> None:
        checked_draws(self.draws)

    @property
    def name(self) -> str:
        return "poisson-gamma"

    @property
    def settings(self) -> Mapping[str, object]:
        return {"draws": self.draws}

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> LikelihoodFit:
        family = PoissonGammaFamily(sample.size_index, sample.population_size, float(sample.admissible_cells))
        return fit_by_likelihood(family, sample, self.name, self.draws, rng)


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
        r"""Density :math:`\theta^{-3/2}` of log theta, which matters only when the sample has few ties.

        The number of ties is nearly Poisson with mean n^2 / (2 theta). A power of -2 would make E(theta) unbiased,
        -1/2 would match the coverage of theta; r1 is concave in theta, so that its own power lies between.
        """
        return -1.5 * working[:, 0]

    def natural(self, working: Vector) -> Vector:
        theta = float(np.exp(working[0]))
        return np.array([theta, theta / self.cells])

    def law(self, working: Vector) -> TwoParameter:
        theta = float(np.exp(working[0]))
        return TwoParameter(theta, -theta / self.cells)

    def edge(self, peak: Peak) -> Diagnostic | None:
        index = self.index
        if index.at(1) == index.records:
            return untrusted(index, "the rates look equal, and the number of cells alone decides the risk")
        if index.occupied == 1 or peak.at_lower[0]:
            return untrusted(index, "one cell takes all and everyone looks alike")
        if peak.at_upper[0]:
            return caution("all cells have the same rate, so the counts look like purely random ones")
        return None
