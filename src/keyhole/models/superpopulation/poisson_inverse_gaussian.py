"""Carlson's Poisson-inverse-Gaussian superpopulation: rates with a heavier tail than gamma ones."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.models.superpopulation.edges import caution, untrusted
from keyhole.models.superpopulation.likelihood_fit import Family
from keyhole.models.superpopulation.size_index_model import LikelihoodModel, countable
from keyhole.numerics.bessel_polynomial import log_bessel_polynomial
from keyhole.numerics.log_gamma import log_rising
from keyhole.numerics.posterior import Peak, Points, flat_in_spread
from keyhole.population.reciprocal_gaussian import ReciprocalGaussianUnsampled
from keyhole.population.sample import Sample
from keyhole.table.size_index import SizeIndex


@dataclass(frozen=True)
class PoissonInverseGaussian(LikelihoodModel):
    r"""Poisson counts with inverse Gaussian rates of mean N/K over the K admissible cells.

    With b twice the ratio of the rate's variance to its mean, on the scale of the sample,

    .. math:: L(s) = E e^{-s\lambda} = \exp\Big\{\frac{2n}{K b}\big(1 - \sqrt{1 + b s}\big)\Big\}

    The rate of a cell with f = 1 is generalised inverse Gaussian of order 1/2, and r1, r2 are closed forms of
    its Laplace transform. The number of cells enters through n/K only, so K = 1e30 does no harm.

    References
    ----------
    Carlson (2002), Assessing microdata disclosure risk using the Poisson-inverse Gaussian distribution,
    Statistics in Transition 5.
    """

    name: ClassVar[str] = "poisson-inverse-gaussian"
    record: ClassVar[TrackRecord] = TrackRecord(-55, 49, covered=5, samples=18)

    def family(self, sample: Sample) -> Family:
        return InverseGaussianFamily(sample.size_index, sample.population_size, countable(sample.admissible_cells))


@dataclass(frozen=True)
class InverseGaussianFamily:
    """Working scale: log of the dispersion b on the scale of the sample."""

    index: SizeIndex
    population_size: int
    cells: float

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("dispersion",)

    @property
    def lower(self) -> Vector:
        return np.array([np.log(1e-8)])

    @property
    def upper(self) -> Vector:
        return np.array([np.log(1e4 * self.index.records)])

    def log_likelihood(self, working: Points) -> Vector:
        index = self.index
        logs = log_cells(index.sizes.astype(float), np.exp(working[:, 0])[:, None], index.records, self.cells)
        empty = -2.0 * index.records / (1.0 + np.sqrt(1.0 + np.exp(working[:, 0])))
        free = float(log_rising(self.cells - index.occupied + 1.0, index.occupied)) - index.occupied * np.log(
            self.cells
        )
        ways = free - float(special.gammaln(index.cells + 1.0).sum())
        return np.asarray(ways + empty + logs @ index.cells)

    def log_prior(self, working: Points) -> Vector:
        """Flat in the spread of the rates where they are nearly equal, flat in log b where they are far apart."""
        return flat_in_spread(working[:, 0])

    def natural(self, working: Vector) -> Vector:
        return np.exp(working)

    def law(self, working: Vector) -> "InverseGaussian":
        return InverseGaussian(float(np.exp(working[0])), self.index.records, self.population_size, self.cells)

    def edge(self, peak: Peak) -> Diagnostic | None:
        index = self.index
        if index.occupied == 1 or peak.at_upper[0]:
            return untrusted(index, "one cell takes all and everyone looks alike")
        if peak.at_lower[0]:
            return caution("all cells have the same rate, so the counts look like purely random ones")
        return None


@dataclass(frozen=True)
class InverseGaussian:
    """The law at one dispersion; on the scale of the population the dispersion is N/n times as large."""

    dispersion: float
    records: int
    population_size: int
    cells: float

    @property
    def population_dispersion(self) -> float:
        return self.dispersion * self.population_size / self.records

    def unsampled(self, sample: Sample) -> ReciprocalGaussianUnsampled:
        b = self.dispersion
        odds = sample.unsampled_size / self.records
        return ReciprocalGaussianUnsampled(
            sample.uniques, odds * b / (2.0 * (1.0 + b)), float(_tilt(b, self.records, self.cells))
        )

    def expected_size_index(self, sizes: IntVector, records: int) -> Vector:
        logs = log_cells(sizes.astype(float), self.dispersion, records, self.cells)
        empty = -2.0 * records / self.cells / (1.0 + np.sqrt(1.0 + self.dispersion))
        return np.asarray(np.where(sizes <= records, np.exp(logs + empty), 0.0))

    def population_uniques(self, sample: Sample) -> float:
        """Those seen, and the unseen cells' chance to hold one person."""
        alone = float(self.unsampled(sample).prob_none().sum())
        single = log_cells(np.ones(1), self.population_dispersion, self.population_size, self.cells)[0]
        whole = -2.0 * self.population_size / self.cells / (1.0 + np.sqrt(1.0 + self.population_dispersion))
        unseen = -2.0 * self.records / self.cells / (1.0 + np.sqrt(1.0 + self.dispersion))
        missed = (1.0 - sample.table.occupied / self.cells) * (1.0 - sample.sampling_fraction)
        return alone + missed * float(np.exp(single + whole - unseen))

    def log_unsampled(self, sample: Sample, count: int, unsampled: Vector) -> Vector:
        """log P(U = u | f) up to a constant: P(F = f + u) times the chance to sample f of them."""
        b = self.population_dispersion
        order = count + unsampled - 1.0
        tilt = float(_tilt(b, self.population_size, self.cells))
        slope = np.log(b) - np.log(2.0 * (1.0 + b)) + np.log1p(-sample.sampling_fraction)
        return np.asarray(
            log_bessel_polynomial(order, tilt) + unsampled * slope - special.gammaln(unsampled + 1.0)
        )


def log_cells(sizes: Vector, dispersion: ArrayLike, records: int, cells: float) -> Vector:
    r"""log of K P(f = j) / P(f = 0), with theta the reverse Bessel polynomials.

    .. math:: K\,\frac{P(f = j)}{P(f = 0)} = \frac{n}{j!\,\sqrt{1 + b}}
              \Big(\frac{b}{2(1 + b)}\Big)^{j-1} \theta_{j-1}(z), \qquad z = \frac{2n}{K b}\sqrt{1 + b}
    """
    b = np.asarray(dispersion, dtype=float)
    return np.asarray(
        np.log(float(records))
        - 0.5 * np.log1p(b)
        + (sizes - 1.0) * (np.log(b) - np.log(2.0) - np.log1p(b))
        + log_bessel_polynomial(sizes - 1.0, _tilt(b, records, cells))
        - special.gammaln(sizes + 1.0)
    )


def _tilt(dispersion: ArrayLike, records: int, cells: float) -> Vector:
    b = np.asarray(dispersion, dtype=float)
    return np.asarray(2.0 * (records / cells) / b * np.sqrt(1.0 + b))
