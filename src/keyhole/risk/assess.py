"""The one entry point: fit a model to a sample and turn its laws into risk."""

import time
import warnings
from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.errors import FitFailed, NotConverged
from keyhole.inference.fit import Diagnostic, Fit, MatchesEveryRecord, RiskModel
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts
from keyhole.progress import Progress, silent
from keyhole.randomness import DEFAULT_SEED, stream
from keyhole.risk.estimate import RecordRisk, RiskAssessment, RiskEstimate
from keyhole.risk.size_index_check import size_index_misfit

PLUG_IN_DRAWS = 2000
"""Draws of the unsampled counts behind the interval of a plug-in fit."""

KEPT_VALUES = 20_000_000
"""How many values of r1 are kept, at 4 bytes each, for the per-record intervals."""


def assess_risk(
    model: RiskModel,
    sample: Sample,
    *,
    seed: int = DEFAULT_SEED,
    level: float = 0.95,
    every_record: bool = False,
    progress: Progress = silent,
) -> RiskAssessment:
    """Fit ``model`` to ``sample`` and estimate r1, r2, tau1 and tau2 with their uncertainty.

    A fit that fails gives an assessment with status ``failed``; one that should not be trusted gives
    status ``not-converged`` and a `NotConverged` warning.

    Parameters
    ----------
    seed
        The result depends on the data, the model and this number only.
    level
        Probability of the intervals.
    every_record
        Also give E(1/F | f) of the records that are not sample-unique, where the model can.
    """
    rng = stream(seed, model.name)
    started = time.perf_counter()
    try:
        fit = model.fit(sample, rng=rng, progress=progress)
    except FitFailed as failure:
        return _failed(model, sample, seed, str(failure), time.perf_counter() - started)
    fitted = time.perf_counter()
    tau1, tau2, records = risk_of_laws(fit.unsampled(), level=level, rng=rng)
    if every_record and (whole := _every_cell(fit)) is not None:
        records = RecordRisk(records.r1, records.r2, records.r1_low, records.r1_high, whole)
    untrusted = any(diagnostic.verdict == "untrusted" for diagnostic in fit.diagnostics)
    verdict = _verdict(fit.diagnostics, fit.interval_leaves_out)
    if untrusted:
        warnings.warn(f"{model.name}: {verdict}", NotConverged, stacklevel=2)
    return RiskAssessment(
        model=model.name,
        sample=sample,
        status="not-converged" if untrusted else "ok",
        verdict=verdict,
        tau1=tau1,
        tau2=tau2,
        records=records,
        diagnostics=fit.diagnostics,
        size_index_misfit=size_index_misfit(fit),
        seed=seed,
        settings=dict(model.settings),
        seconds_fit=fitted - started,
        seconds_risk=time.perf_counter() - fitted,
    )


def risk_of_laws(
    laws: Iterator[UnsampledCounts], *, level: float = 0.95, rng: Generator
) -> tuple[RiskEstimate, RiskEstimate, RecordRisk]:
    r"""tau1, tau2 and the records' risk from one law of the unsampled counts per parameter draw.

    Estimates average the closed forms over the laws. Intervals are quantiles of one joint draw of the
    unsampled counts per law, so they hold the randomness of the population as well as that of the parameters.
    The laws are streamed: only their sums, and a thinned set of r1 for the records' intervals, are kept.
    """
    sums = _Sums(level)
    first, second = next(laws), next(laws, None)
    sums.add(first)
    if second is None:
        for _ in range(PLUG_IN_DRAWS):
            sums.add_draw(first, rng)
    else:
        sums.add_draw(first, rng)
        for law in chain((second,), laws):
            sums.add(law)
            sums.add_draw(law, rng)
    return sums.tau1(), sums.tau2(), sums.records()


class _Sums:
    """Running sums over the laws, and the draws of tau."""

    def __init__(self, level: float) -> None:
        self._level = level
        self._laws = 0
        self._r1 = self._r2 = np.zeros(0)
        self._expected1: list[float] = []
        self._expected2: list[float] = []
        self._drawn1: list[float] = []
        self._drawn2: list[float] = []
        self._kept: list[np.ndarray[tuple[int], np.dtype[np.float32]]] = []
        self._stride = 1

    def add(self, law: UnsampledCounts) -> None:
        r1, r2 = law.prob_none(), law.mean_match()
        self._r1 = self._r1 + r1 if self._laws else r1
        self._r2 = self._r2 + r2 if self._laws else r2
        if self._laws % self._stride == 0:
            self._kept.append(r1.astype(np.float32))
            if len(self._kept) * len(r1) > KEPT_VALUES and len(self._kept) > 100:
                self._kept, self._stride = self._kept[::2], self._stride * 2
        self._laws += 1
        self._expected1.append(float(r1.sum()))
        self._expected2.append(float(r2.sum()))

    def add_draw(self, law: UnsampledCounts, rng: Generator) -> None:
        unsampled = law.draw(rng)
        self._drawn1.append(float(np.count_nonzero(unsampled == 0)))
        self._drawn2.append(float((1.0 / (1.0 + unsampled)).sum()))

    def tau1(self) -> RiskEstimate:
        return self._estimate(self._expected1, self._drawn1)

    def tau2(self) -> RiskEstimate:
        return self._estimate(self._expected2, self._drawn2)

    def records(self) -> RecordRisk:
        r1, r2 = self._r1 / self._laws, self._r2 / self._laws
        if self._laws == 1:
            return RecordRisk(r1, r2, None, None)
        low, high = np.quantile(np.stack(self._kept), self._tails(), axis=0).astype(np.float64)
        return RecordRisk(r1, r2, low, high)

    def _tails(self) -> tuple[float, float]:
        return (1 - self._level) / 2, (1 + self._level) / 2

    def _estimate(self, expected: list[float], drawn: list[float]) -> RiskEstimate:
        # Quantiles of the draws themselves: an interval for a count ends at counts.
        low, high = np.quantile(drawn, self._tails(), method="inverted_cdf")
        spread = float(np.std(expected, ddof=1)) if len(expected) > 1 else None
        return RiskEstimate(
            estimate=float(np.mean(expected)),
            low=float(low),
            high=float(high),
            level=self._level,
            mcse=0.0 if spread is None else spread / np.sqrt(len(expected)),
            expected_sd=spread,
        )


def _every_cell(fit: Fit) -> Vector | None:
    return fit.mean_match_all() if isinstance(fit, MatchesEveryRecord) else None


def _verdict(diagnostics: tuple[Diagnostic, ...], leaves_out: str) -> str:
    worries = [diagnostic.words for diagnostic in diagnostics if diagnostic.verdict != "good"]
    if leaves_out:
        worries.append(f"The interval leaves out {leaves_out}.")
    return " ".join(worries) or "No check raised a concern."


def _failed(model: RiskModel, sample: Sample, seed: int, reason: str, seconds: float) -> RiskAssessment:
    return RiskAssessment(
        model=model.name,
        sample=sample,
        status="failed",
        verdict=reason,
        tau1=None,
        tau2=None,
        records=None,
        diagnostics=(),
        size_index_misfit=None,
        seed=seed,
        settings=dict(model.settings),
        seconds_fit=seconds,
        seconds_risk=0.0,
    )
