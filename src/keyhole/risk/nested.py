r"""Nested subsampling: the sample plays the population, whose truth is known, and subsamples play the sample.

A model that is right about how cells fill up should be right here too. Subsamples are small and their share of the
"population" is not that of the sample, so errors are measured at several shares and extrapolated, no further than
a factor of ten, by a line in the logarithm of the share. This is a check that needs nothing but the file; it is no
proof: cells of one person in a million are not seen in it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.errors import FitFailed
from keyhole.inference.fit import Diagnostic, RiskModel
from keyhole.population.draw import simple_random_sample
from keyhole.population.sample import Sample
from keyhole.population.weights import weights_differ
from keyhole.progress import Progress, silent
from keyhole.risk.assess import risk_of_laws
from keyhole.risk.truth import known_truth

NESTED_ERROR = "nested_error"
"""Name of the diagnostic that carries the check."""

SHARES = (0.1, 0.2, 0.4)
"""Of the sample, that subsamples hold."""

FEWEST_RECORDS, FEWEST_UNIQUES = 250, 20
"""Of a subsample; true population uniques of all subsamples of a share, below which they say nothing."""

FURTHEST = 10.0
"""The line is followed to shares so many times smaller than the smallest, and no further."""

LARGE, CLEAR = 0.25, 2.0
"""Errors from which the check is a caution, and how many standard errors they must be from zero."""

NORMAL_95 = 1.96
"""Standard errors to each side that hold 95% of a normal law."""

LIGHT = {"draws": 40, "nested": 0, "orders": 1}
"""Options of models that take time and hardly change what is estimated here."""


@dataclass(frozen=True, slots=True)
class NestedPoint:
    """Subsamples of one share together: summed estimates and truths of tau1 and tau2."""

    share: float
    estimate: tuple[float, float]
    truth: tuple[float, float]

    def log_error(self, tau: int) -> float:
        """log(estimate/truth) of tau1 (0) or tau2 (1)."""
        return float(np.log(max(self.estimate[tau], 0.1) / self.truth[tau]))


@dataclass(frozen=True, slots=True)
class NestedCheck:
    """What subsamples say of a model, at shares from small to large."""

    points: tuple[NestedPoint, ...]
    share: float

    def extrapolated(self, tau: int = 0) -> tuple[float, float]:
        """The log error at the sample's own share of its population, and its standard error.

        Weighted least squares on the logarithm of the share; a sum of uniques varies about like a Poisson number.
        """
        at = np.log(max(self.share, self.points[0].share / FURTHEST))
        errors = np.array([point.log_error(tau) for point in self.points])
        precision = np.array([point.truth[tau] for point in self.points])
        if len(self.points) < 2:
            return float(errors[0]), float(precision[0] ** -0.5)
        design = np.stack([np.ones(len(errors)), np.log([point.share for point in self.points]) - at], axis=1)
        covariance = np.linalg.inv(design.T @ (precision[:, None] * design))
        level, _ = covariance @ design.T @ (precision * errors)
        return float(level), float(np.sqrt(covariance[0, 0]))

    def diagnostic(self) -> Diagnostic:
        """The check in words."""
        error, deviation = self.extrapolated()
        value = float(np.expm1(error))
        shown = ", ".join(f"{np.expm1(point.log_error(0)):+.0%} in {point.share:.0%}" for point in self.points)
        words = f"With the sample as the population, tau1 of subsamples was off by {shown} of it; "
        if len(self.points) > 1:
            low, high = np.expm1([error - NORMAL_95 * deviation, error + NORMAL_95 * deviation])
            words += f"extrapolated to this sample {value:+.0%} (95% interval: {low:+.0%} to {high:+.0%})."
        else:
            words += "smaller ones have too few uniques, so that nothing could be extrapolated."
        grave = abs(value) > LARGE and abs(error) > CLEAR * deviation
        return Diagnostic(NESTED_ERROR, value, "caution" if grave else "good", words)


def nested_check(
    model: RiskModel, sample: Sample, *, replicates: int = 2, rng: Generator, progress: Progress = silent
) -> NestedCheck | None:
    """Fit the model to subsamples of the sample; None where these are too small or weights differ."""
    if weights_differ(sample):
        return None
    points = []
    for share in SHARES:
        size = round(share * sample.sample_size)
        if size < FEWEST_RECORDS:
            continue
        found = _point(_lightened(model), sample, size, replicates, rng, progress)
        if found is not None and found.truth[0] >= FEWEST_UNIQUES:
            points.append(found)
    return NestedCheck(tuple(points), sample.sampling_fraction) if points else None


def _point(
    model: RiskModel, sample: Sample, size: int, replicates: int, rng: Generator, progress: Progress
) -> NestedPoint | None:
    estimates, truths = np.zeros(2), np.zeros(2)
    for turn in range(replicates):
        progress(f"subsamples for {model.name}", turn, replicates)
        drawn = replace(simple_random_sample(sample.table, size, rng=rng), zeros=sample.zeros)
        truth = known_truth(drawn.table, sample.table)
        try:
            tau1, tau2, _ = risk_of_laws(model.fit(drawn, rng=rng).unsampled(), rng=rng)
        except FitFailed:
            return None
        estimates += (tau1.estimate, tau2.estimate)
        truths += (truth.tau1, truth.tau2)
    return NestedPoint(size / sample.sample_size, _pair(estimates), _pair(truths))


def _pair(values: Vector) -> tuple[float, float]:
    first, second = values.tolist()
    return first, second


def _lightened(model: Any) -> RiskModel:
    """The model with as little work as the estimate itself needs."""
    options = {name: min(getattr(model, name), value) for name, value in LIGHT.items() if hasattr(model, name)}
    lightened: RiskModel = replace(model, **options) if options else model
    return lightened
