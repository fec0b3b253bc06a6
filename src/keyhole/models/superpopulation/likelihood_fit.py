"""A superpopulation fitted by maximum likelihood: parameter draws, their laws and what they imply."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.errors import FitFailed
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.models.superpopulation.admissions import admissions
from keyhole.numerics.mean_reciprocal import mean_reciprocal
from keyhole.numerics.posterior import Peak, Points, draw_parameters, find_peak
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts

LEAVES_OUT = "the possibility that the size index follows another law than this model's"

_LAWS_FOR_EVERY_RECORD = 20
"""Parameter draws averaged for E(1/F | f) of records that are not unique."""


class Superpopulation(Protocol):
    """The law at one value of the parameters."""

    def unsampled(self, sample: Sample) -> UnsampledCounts: ...

    def expected_size_index(self, sizes: IntVector, records: int) -> Vector: ...

    def population_uniques(self, sample: Sample) -> float: ...

    def log_unsampled(self, sample: Sample, count: int, unsampled: Vector) -> Vector: ...


class Family(Protocol):
    """A family of superpopulations on a working scale where its likelihood is well behaved.

    Attributes
    ----------
    parameters
        Names of the natural parameters.
    lower, upper
        The box of the working scale.
    """

    @property
    def parameters(self) -> tuple[str, ...]: ...

    @property
    def lower(self) -> Vector: ...

    @property
    def upper(self) -> Vector: ...

    def log_likelihood(self, working: Points) -> Vector: ...

    def log_prior(self, working: Points) -> Vector:
        """Log-density, on the working scale, that the draws of the parameters start from."""

    def natural(self, working: Vector) -> Vector: ...

    def law(self, working: Vector) -> Superpopulation: ...

    def edge(self, peak: Peak) -> Diagnostic | None:
        """What it means that the likelihood has no inner maximum, in words; None if it has one."""


@dataclass(frozen=True)
class LikelihoodFit:
    """Maximum likelihood, and draws of the parameters from the likelihood times a weak prior."""

    sample: Sample
    family: Family
    peak: Peak
    working: Points
    efficiency: float
    proposals: int
    record: TrackRecord

    @property
    def interval_leaves_out(self) -> str:
        return LEAVES_OUT

    @property
    def effective_draws(self) -> float:
        """Resampling kept some of the proposals, which are themselves worth less than independent draws."""
        return 1.0 / (1.0 / (self.proposals * self.efficiency) + 1.0 / len(self.working))

    def unsampled(self) -> Iterator[UnsampledCounts]:
        for working in self.working:
            yield self.family.law(working).unsampled(self.sample)

    @property
    def parameters_fitted(self) -> int:
        return len(self.peak.working)

    def expected_size_index(self, sizes: IntVector) -> Vector:
        """Expected number of sample cells of each size at the maximum of the likelihood."""
        return self.family.law(self.peak.working).expected_size_index(sizes, self.sample.sample_size)

    @cached_property
    def population_uniques(self) -> float:
        """Expected number of population uniques given the sample, averaged over the draws."""
        return float(np.mean([self.family.law(point).population_uniques(self.sample) for point in self.working]))

    def mean_match_all(self) -> Vector:
        """E(1/F | f) of each occupied cell, once per distinct count."""
        stride = max(1, len(self.working) // _LAWS_FOR_EVERY_RECORD)
        laws = [self.family.law(point) for point in self.working[::stride]]
        sizes = self.sample.size_index.sizes
        match = np.zeros(len(sizes))
        for law in laws:
            for i, size in enumerate(sizes.tolist()):
                match[i] += self._mean_match(law, size)
        match /= len(laws)
        if self.sample.uniques:  # the laws of the uniques have it in closed form, at every draw
            match[0] = np.mean([law.mean_match()[0] for law in self.unsampled()])
        return np.asarray(match[np.searchsorted(sizes, self.sample.table.counts)])

    def _mean_match(self, law: Superpopulation, size: int) -> float:
        if self.sample.unsampled_size == 0:
            return 1.0 / size
        return mean_reciprocal(
            lambda unsampled: law.log_unsampled(self.sample, size, unsampled), size, self.sample.unsampled_size
        )

    @cached_property
    def standard_errors(self) -> Vector:
        """Standard errors of the natural parameters by the delta method; infinite where there is no peak."""
        if not self.peak.curved:
            return np.full(len(self.family.parameters), np.inf)
        step = 1e-5
        at = self.peak.working
        jacobian = np.stack(
            [
                (self.family.natural(at + step * unit) - self.family.natural(at - step * unit)) / (2 * step)
                for unit in np.eye(len(at))
            ],
            axis=1,
        )
        covariance = jacobian @ np.linalg.inv(self.peak.information) @ jacobian.T
        return np.sqrt(np.maximum(np.diag(covariance), 0.0))

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        natural = self.family.natural(self.peak.working)
        lines = []
        for name, value, error in zip(self.family.parameters, natural, self.standard_errors, strict=True):
            lines.append(Diagnostic(name, float(value), "good", f"{name} is estimated as {value:.4g}."))
            lines.append(_standard_error(name, float(error)))
        lines.append(
            Diagnostic(
                "population_uniques",
                self.population_uniques,
                "good",
                f"About {self.population_uniques:,.0f} people are expected to be unique in the population.",
            )
        )
        edge = self.family.edge(self.peak)
        if edge is not None:
            lines.append(edge)
        elif not self.peak.curved:
            lines.append(
                Diagnostic(
                    "boundary",
                    "flat",
                    "untrusted",
                    "The sample does not determine the parameters: the likelihood is flat around its maximum.",
                )
            )
        elif self.efficiency < 0.05:
            words = "The likelihood is so skewed that few distinct parameter values carry the interval."
            lines.append(Diagnostic("proposal_efficiency", self.efficiency, "caution", words))
        return (*(self._weighed(line) for line in lines), *admissions(self.sample, self.record))

    def _weighed(self, line: Diagnostic) -> Diagnostic:
        """Where no unique or nobody unsampled is left, tau is known whatever the parameters are."""
        known = self.sample.uniques == 0 or self.sample.unsampled_size == 0
        return replace(line, verdict="caution") if known and line.verdict == "untrusted" else line


def fit_by_likelihood(
    family: Family, sample: Sample, name: str, draws: int, record: TrackRecord, rng: Generator
) -> LikelihoodFit:
    """Maximise the likelihood of the size index and draw the parameters around the maximum."""
    peak = find_peak(family.log_likelihood, family.lower, family.upper)
    if peak is None:
        raise FitFailed(
            f"The likelihood of the {name} model is nowhere finite for this sample of {sample.sample_size:,} "
            f"records in {sample.table.occupied:,} cells. Try another model."
        )

    def log_posterior(working: Points) -> Vector:
        return family.log_likelihood(working) + family.log_prior(working)

    drawn = draw_parameters(log_posterior, peak, family.lower, family.upper, draws, rng)
    return LikelihoodFit(sample, family, peak, drawn.working, drawn.efficiency, drawn.proposals, record)


def _standard_error(name: str, error: float) -> Diagnostic:
    words = (
        f"The standard error of {name} is {error:.2g}."
        if np.isfinite(error)
        else f"{name} has no standard error: the likelihood has no inner maximum."
    )
    return Diagnostic(f"{name}_se", error, "good", words)
