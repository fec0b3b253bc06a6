"""One replicate: a sample of a known population, one model's fit to it, and what came of it beside the truth."""

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal

import numpy as np

import keyhole
from keyhole.errors import DisclosureRiskWarning
from keyhole.inference.elapsed import Elapsed
from keyhole.population.sample import Sample
from keyhole.risk.estimate import RiskAssessment, RiskEstimate
from keyhole.risk.truth import Truth
from keyhole.validation.assessor import assess, settings_of, source_digest
from keyhole.validation.designs import Design, SimpleRandom
from keyhole.validation.per_record import (
    Bins,
    calibration_bins,
    false_negatives,
    false_positives,
    missed_at,
    rank_auc,
)
from keyhole.validation.population import KnownPopulation

Status = Literal["ok", "not-converged", "failed", "fault"]
"""``failed``: the model could not be fitted. ``fault``: something nobody foresaw; running again tries again."""


@dataclass(frozen=True)
class Trial:
    """One sample and the model that looks at it.

    Attributes
    ----------
    population
        What the population is called.
    size, seed, design
        The sample: ``seed`` makes both the generator that draws it and those of the model.
    model, options
        The model, or auto, and the options that differ from its defaults.
    """

    population: str
    size: int
    seed: int
    model: str
    design: Design = field(default=SimpleRandom())
    options: tuple[tuple[str, Any], ...] = ()

    def key(self, population: KnownPopulation) -> str:
        """Everything that the result depends on; of the code, the version and the model's and shared files."""
        told = {
            "data": population.digest,
            "size": self.size,
            "seed": self.seed,
            **self.design.settings,
            "model": self.model,
            "settings": settings_of(self.model, dict(self.options)),
            "version": keyhole.__version__,
            "source": source_digest(self.model),
        }
        return json.dumps(told, sort_keys=True)

    def sampled(self, population: KnownPopulation) -> tuple[Sample, Truth]:
        """The sample of this trial and its true risk."""
        rng = np.random.default_rng(self.seed)
        return population.sample(*self.design.draw(population, self.size, rng=rng))


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate of tau, its interval and the truth."""

    estimate: float
    low: float
    high: float
    truth: float

    @classmethod
    def of(cls, tau: RiskEstimate, truth: float) -> "Interval":
        return cls(tau.estimate, tau.low, tau.high, truth)

    @property
    def covers(self) -> bool:
        return self.low <= self.truth <= self.high

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def relative_error(self) -> float:
        """(estimate - truth) / truth; where nobody is at risk, 0 for an estimate that says so, else infinite."""
        if self.truth:
            return self.estimate / self.truth - 1.0
        return math.inf if self.estimate else 0.0

    @property
    def log_error(self) -> float:
        return math.log(self.estimate / self.truth) if self.truth and self.estimate else math.nan


@dataclass(frozen=True, slots=True)
class Replicate:
    """What came of a trial; the fields from ``tau1`` on are None, or empty, when there is no estimate.

    Attributes
    ----------
    seconds, processor_seconds
        Time of the fit and of the risk, by the clock and of this process's processors.
    records, uniques, population_uniques
        Of the sample; the last is the true tau1.
    true_tau2
        The true tau2.
    chance
        Standard deviation of tau1 were r1 exactly right, sqrt(sum r1 (1 - r1)).
    auc_r1
        Chance that a population unique has a higher r1 than another sample unique; None with one kind only.
    calibration_r1, calibration_r2
        By tenths of the risk: sample uniques, their summed risk, and how many have F = 1 or their summed 1/F.
    false_positives, false_negatives
        At each of `KAPPAS`: uniques that are wrongly above it, and population uniques below it.
    missed
        Share of population uniques missed at shares of false positives given by `KAPPAS`.
    """

    status: Status
    verdict: str
    seconds: float
    processor_seconds: float
    records: int
    uniques: int
    population_uniques: int
    true_tau2: float
    tau1: Interval | None = None
    tau2: Interval | None = None
    chance: float | None = None
    auc_r1: float | None = None
    calibration_r1: Bins = ()
    calibration_r2: Bins = ()
    false_positives: tuple[int, ...] = ()
    false_negatives: tuple[int, ...] = ()
    missed: tuple[float, ...] = ()

    @classmethod
    def of(cls, found: RiskAssessment, truth: Truth) -> "Replicate":
        """What an assessment says, beside the truth."""
        counts = truth.population_counts
        start = (
            found.status,
            found.verdict,
            found.seconds_fit + found.seconds_risk,
            found.processor_seconds,
            found.sample.sample_size,
            len(counts),
            int(truth.tau1),
            truth.tau2,
        )
        if found.tau1 is None or found.tau2 is None or found.records is None:
            return cls(*start)
        r1, r2, alone = found.records.r1, found.records.r2, counts == 1
        return cls(
            *start,
            Interval.of(found.tau1, truth.tau1),
            Interval.of(found.tau2, truth.tau2),
            float(np.sqrt((r1 * (1 - r1)).sum())),
            rank_auc(r1, alone),
            calibration_bins(r1, alone),
            calibration_bins(r2, 1.0 / counts),
            false_positives(r1, alone),
            false_negatives(r1, alone),
            missed_at(r1, alone),
        )

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> "Replicate":
        """The replicate that was written with `asdict`, after a journey through JSON."""
        taus = {name: None if stored[name] is None else Interval(**stored[name]) for name in ("tau1", "tau2")}
        bins = {name: tuple(map(tuple, stored[name])) for name in ("calibration_r1", "calibration_r2")}
        lists = {name: tuple(stored[name]) for name in ("false_positives", "false_negatives", "missed")}
        return cls(**{**stored, **taus, **bins, **lists})

    def stored(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        return asdict(self)


def run_trial(trial: Trial, population: KnownPopulation, source: str | None = None) -> Replicate:
    """Draw the sample, fit the model and compare it with the truth.

    Parameters
    ----------
    source
        The digest of the model's files in the process that asked; a result of other files is a fault.
    """
    return _run(trial, population, source)[0]


def run_together(
    trials: Sequence[Trial], population: KnownPopulation, sources: Mapping[str, str]
) -> dict[Trial, Replicate]:
    """Run the first trial, and others on its sample: a member of a pool is not fitted again.

    Parameters
    ----------
    sources
        The digests of the models' files in the process that asked.
    """
    first, *others = trials
    replicate, found = _run(first, population, sources[first.model])
    answers = {first: replicate}
    for trial in others:
        settings = settings_of(trial.model, dict(trial.options))
        members = () if found is None else found.members
        same = [member for member in members if member.model == trial.model and member.settings == settings]
        if same:
            answers[trial] = Replicate.of(same[0], trial.sampled(population)[1])
        else:
            answers[trial] = run_trial(trial, population, sources[trial.model])
    return answers


def _run(trial: Trial, population: KnownPopulation, source: str | None) -> tuple[Replicate, RiskAssessment | None]:
    if source is not None and source_digest(trial.model) != source:
        # Or the result would be remembered as that of code which did not produce it.
        return Replicate("fault", "The files of the model changed. Run again.", 0.0, 0.0, 0, 0, 0, 0.0), None
    sample, truth = trial.sampled(population)
    nothing = (sample.sample_size, len(truth.population_counts), int(truth.tau1), truth.tau2)
    if not sample.sample_size:
        return Replicate("failed", "Nobody was drawn.", 0.0, 0.0, *nothing), None
    begun = Elapsed.now()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisclosureRiskWarning)
            found = assess(trial.model, dict(trial.options), sample, trial.seed)
        told = Replicate.of(found, truth)
    except Exception as error:
        # Its own words may quote a record; where it happened does not.
        place = extract_tb(error.__traceback__)[-1]
        words = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        return Replicate("fault", words, 0.0, begun.since().processor, *nothing), None
    if found.interrupted:
        raise KeyboardInterrupt
    return told, found
