"""Zayatz' estimator: the cells of the population have the sample's own distribution of sizes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.models.superpopulation.admissions import admissions
from keyhole.models.superpopulation.size_index_model import SizeIndexModel
from keyhole.numerics.log_gamma import log_rising, log_rising_ratio
from keyhole.population.discrete import DiscreteUnsampled
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent


@dataclass(frozen=True)
class Zayatz(SizeIndexModel):
    r"""The sample's shares of cell sizes, taken as those of the population.

    .. math:: P(F = j \mid f = 1) \propto f_j\, P(f = 1 \mid F = j), \qquad
              P(f = 1 \mid F = j) = j \binom{N - j}{n - 1} \Big/ \binom{N}{n}

    The interval resamples the size index: shares are Dirichlet with the observed numbers of cells.

    References
    ----------
    Zayatz (1991), Estimation of the percent of unique population elements on a microdata file using the
    sample, Statistical Research Division Report, US Bureau of the Census.
    """

    name: ClassVar[str] = "zayatz"
    record: ClassVar[TrackRecord] = TrackRecord(35, 2667, covered=0, samples=18)

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "ZayatzFit":
        self.check_ties(sample)
        cells = sample.size_index.cells.astype(float)
        mass = rng.standard_gamma(cells, (self.draws, len(cells)))
        return ZayatzFit(sample, mass / mass.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class ZayatzFit:
    """One set of shares of the observed sizes per row."""

    sample: Sample
    shares: NDArray[np.float64]

    @property
    def interval_leaves_out(self) -> str:
        return "that sampling changes the shares of cell sizes, which this estimator assumes away"

    @cached_property
    def seen_once(self) -> Vector:
        """P(f = 1 | F = j) relative to j = 1, for each observed size j."""
        sizes = self.sample.size_index.sizes.astype(float)
        left = self.sample.unsampled_size - sizes + 2.0
        logs = log_rising_ratio(np.maximum(left, 1.0), self.sample.sample_size - 1.0, sizes - 1.0)
        return np.where(left >= 1.0, sizes * np.exp(logs), 0.0)

    @property
    def effective_draws(self) -> None:
        return None

    def unsampled(self) -> Iterator[DiscreteUnsampled]:
        uniques, values = self.sample.uniques, self.sample.size_index.sizes - 1
        for shares in self.shares:
            weight = shares * self.seen_once
            # Without uniques nothing is asked, and with a census nothing but size one could be seen once.
            yield DiscreteUnsampled(uniques, values, weight / weight.sum() if uniques else weight)

    @property
    def parameters_fitted(self) -> int:
        """Each observed size has a share of its own; their sum is known."""
        return len(self.sample.size_index.sizes) - 1

    def expected_size_index(self, sizes: IntVector) -> Vector:
        """What a sample of n would show if the population had these shares: the check of the assumption."""
        index, sample = self.sample.size_index, self.sample
        cells = index.cells * (sample.population_size / sample.sample_size)
        return np.asarray(np.exp(_log_hypergeometric(sizes, index.sizes, sample)) @ cells)

    @cached_property
    def population_uniques(self) -> float:
        """The sample uniques that are unique in the population, over the sampling fraction."""
        weight = self.shares * self.seen_once
        alone = weight[:, self.sample.size_index.sizes == 1].sum(axis=1)
        share = float((alone / np.maximum(weight.sum(axis=1), np.finfo(float).tiny)).mean())
        return self.sample.uniques * share / self.sample.sampling_fraction

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        index, sample = self.sample.size_index, self.sample
        words = f"About {self.population_uniques:,.0f} people are expected to be unique in the population."
        lines = [Diagnostic("population_uniques", self.population_uniques, "good", words)]
        known = sample.uniques == 0 or sample.unsampled_size == 0
        if not known and int(index.sizes.max()) < 1.0 / sample.sampling_fraction:
            lines.append(
                Diagnostic(
                    "largest_cell",
                    int(index.sizes.max()),
                    "caution",
                    "No cell of the sample is as large as cells that would be seen once by chance, so the risk is "
                    "overstated.",
                )
            )
        return (*lines, *admissions(sample, Zayatz.record))


def _log_hypergeometric(seen: IntVector, size: IntVector, sample: Sample) -> NDArray[np.float64]:
    """log P(f = j | F = i), one row per j and one column per i."""
    j, i = seen.astype(float)[:, None], size.astype(float)[None, :]
    missed = i - j
    records, rest = float(sample.sample_size), float(sample.unsampled_size)
    possible = (missed >= 0) & (missed <= rest) & (j <= records)
    j, missed = np.where(possible, j, 0.0), np.where(possible, missed, 0.0)
    logs = (
        special.gammaln(j + missed + 1.0)
        - special.gammaln(j + 1.0)
        - special.gammaln(missed + 1.0)
        + log_rising(records - j + 1.0, j)
        + log_rising(rest - missed + 1.0, missed)
        - log_rising(records + rest - j - missed + 1.0, j + missed)
    )
    return np.asarray(np.where(possible, logs, -np.inf))
