"""The slide negative binomial superpopulation: every occupied cell has one person and perhaps more."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.models.superpopulation.edges import caution, untrusted
from keyhole.models.superpopulation.likelihood_fit import Family
from keyhole.models.superpopulation.size_index_model import LikelihoodModel
from keyhole.numerics.log_gamma import log_rising, log_rising_ratio
from keyhole.numerics.posterior import Peak, Points, flat_in_spread
from keyhole.population.sample import Sample
from keyhole.population.slide import SlideUnsampled
from keyhole.table.size_index import SizeIndex


@dataclass(frozen=True)
class SlideNegativeBinomial(LikelihoodModel):
    r"""F - 1 is negative binomial over the occupied cells of the population, whose number is unknown.

    With shape :math:`\alpha` and odds :math:`\omega` (mean :math:`\alpha\omega`), a sample count is a
    Bernoulli(:math:`\pi`) variable plus a negative binomial one of odds :math:`\pi\omega`; what was seen is that
    law without its zero. Of the others those not sampled have odds
    :math:`\beta = (1-\pi)\omega/(1 + \pi\omega)`, and :math:`r_2 = 1/(1 + \alpha\beta)`,
    :math:`r_1 = r_2 (1+\beta)^{-\alpha}`.

    References
    ----------
    Chen & Keller-McNulty (1998), Estimation of identification disclosure risk in microdata, Journal of
    Official Statistics 14.
    """

    name: ClassVar[str] = "slide-negative-binomial"
    record: ClassVar[TrackRecord] = TrackRecord(157, 2471, covered=1, samples=18)

    def family(self, sample: Sample) -> Family:
        return SlideFamily(sample.size_index, sample.population_size)


@dataclass(frozen=True)
class SlideFamily:
    """Working scale: log of the mean of F - 1, and log of the odds, which say how unequal the cells are."""

    index: SizeIndex
    population_size: int

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("alpha", "mean")

    @property
    def lower(self) -> Vector:
        return np.array([np.log(1e-4), np.log(1e-3)])

    @property
    def upper(self) -> Vector:
        return np.array([np.log(10.0 * self.population_size), np.log(100.0 * self.population_size)])

    @property
    def fraction(self) -> float:
        return self.index.records / self.population_size

    def log_likelihood(self, working: Points) -> Vector:
        odds = np.exp(working[:, 1])[:, None]
        shape = np.exp(working[:, 0])[:, None] / odds
        logs = log_slide(self.index.sizes.astype(float), shape, odds, self.fraction)
        seen = np.log(-np.expm1(log_slide(np.zeros(1), shape, odds, self.fraction)[:, 0]))
        ways = float(special.gammaln(self.index.occupied + 1.0) - special.gammaln(self.index.cells + 1.0).sum())
        return np.asarray(ways + logs @ self.index.cells - self.index.occupied * seen)

    def log_prior(self, working: Points) -> Vector:
        """Flat in the spread of cells' sizes where they are nearly equal, flat in log odds where far apart."""
        return flat_in_spread(working[:, 1])

    def natural(self, working: Vector) -> Vector:
        return np.array([np.exp(working[0] - working[1]), np.exp(working[0])])

    def law(self, working: Vector) -> "Slide":
        return Slide(
            float(np.exp(working[0] - working[1])), float(np.exp(working[1])), self.fraction, self.index.occupied
        )

    def edge(self, peak: Peak) -> Diagnostic | None:
        index = self.index
        if peak.at_lower[0]:
            return untrusted(index, "nobody seems to share a combination with anybody")
        if peak.at_upper[0]:
            return untrusted(index, "cells seem to hold more people than there are")
        if peak.at_lower[1]:
            return caution("all cells have the same expected size")
        if peak.at_upper[1]:
            return caution("cells differ in size as much as they can")
        return None


@dataclass(frozen=True)
class Slide:
    """The law at one value of the parameters, for samples of a given fraction with k occupied cells."""

    shape: float
    odds: float
    fraction: float
    occupied: int

    @property
    def unseen_odds(self) -> float:
        return (1.0 - self.fraction) * self.odds / (1.0 + self.fraction * self.odds)

    @property
    def seen(self) -> float:
        """The chance that an occupied cell of the population is in the sample."""
        return float(-np.expm1(log_slide(np.zeros(1), self.shape, self.odds, self.fraction)[0]))

    def unsampled(self, sample: Sample) -> SlideUnsampled:
        return SlideUnsampled(sample.uniques, self.shape, self.unseen_odds)

    def expected_size_index(self, sizes: IntVector, records: int) -> Vector:
        """The occupied cells times the law of a count without its zero."""
        logs = log_slide(sizes.astype(float), self.shape, self.odds, self.fraction)
        return np.asarray(np.where(sizes <= records, self.occupied / self.seen * np.exp(logs), 0.0))

    def population_uniques(self, sample: Sample) -> float:
        """Those seen, and k / P(seen) cells' share of those of size one that were missed."""
        alone = float(self.unsampled(sample).prob_none().sum())
        single = np.exp(-self.shape * np.log1p(self.odds))
        return alone + self.occupied / self.seen * float(single) * (1.0 - self.fraction)

    def log_unsampled(self, sample: Sample, count: int, unsampled: Vector) -> Vector:
        """log P(U = u | f) up to a constant: P(F = f + u) times the chance to sample f of them."""
        mass = self.shape + count - 1.0
        slope = np.log(self.unseen_odds) - np.log1p(self.unseen_odds)
        return np.asarray(
            log_rising_ratio(mass, 1.0 - mass, unsampled) + np.log(count + unsampled) + unsampled * slope
        )


def log_slide(sizes: Vector, shape: Vector | float, odds: Vector | float, fraction: float) -> Vector:
    r"""log P(f = j) of one occupied cell of the population.

    .. math:: P(f = j) = (1 - \pi)\,t_j + \pi\,t_{j-1}, \qquad
              t_j = \frac{(\alpha)_j}{j!}\,\frac{(\pi\omega)^j}{(1 + \pi\omega)^{\alpha + j}}
    """
    thinned = fraction * np.asarray(odds, dtype=float)
    # t_(j-1) / t_j, so that one negative binomial probability serves both ways of being seen j times.
    before = np.where(sizes > 0, sizes * (1.0 + thinned) / (thinned * (shape + np.maximum(sizes, 1.0) - 1.0)), 0.0)
    logs = (
        log_rising(shape, sizes)
        - special.gammaln(sizes + 1.0)
        + sizes * (np.log(thinned) - np.log1p(thinned))
        - shape * np.log1p(thinned)
    )
    with np.errstate(divide="ignore"):
        return np.asarray(logs + np.log((1.0 - fraction) + fraction * before))
