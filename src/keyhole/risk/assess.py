"""The one entry point: fit a model to a sample and turn its laws into risk."""

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Vector, distinct
from keyhole.errors import FitFailed, NotConverged
from keyhole.inference.dependence import FindsDependence
from keyhole.inference.elapsed import Elapsed
from keyhole.inference.fit import Diagnostic, Fit, KeepsDraws, MatchesEveryRecord, Pools, RiskModel
from keyhole.inference.model_path import ChosenOnPath
from keyhole.inference.threads import own_threads_only
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts
from keyhole.progress import Progress, silent
from keyhole.randomness import DEFAULT_SEED, stream
from keyhole.risk.estimate import RecordRisk, RiskAssessment, RiskEstimate
from keyhole.risk.size_index_check import check_size_index

PLUG_IN_DRAWS = 2000
"""Draws of the unsampled counts behind the interval of a plug-in fit."""

FEWEST_DRAWS, DRAWN_COUNTS = 100, 50_000_000
"""Joint draws behind an interval: fewer when there are very many uniques, never fewer than the first number."""

FEWEST_KEPT, KEPT_VALUES = 50, 20_000_000
"""How many laws' r1, and how many values of r1 at 4 bytes each, are kept for the per-record intervals."""


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
    started = Elapsed.now()
    with own_threads_only():
        try:
            fit = model.fit(sample, rng=stream(seed, model.name), progress=progress)
        except FitFailed as failure:
            return _failed(model, sample, seed, str(failure), started.since())
        found = assess_fit(model, fit, started.since(), seed=seed, level=level, every_record=every_record)
    if found.status == "not-converged":
        warnings.warn(f"{model.name}: {found.verdict}", NotConverged, stacklevel=2)
    return found


def assess_fit(
    model: RiskModel,
    fit: Fit,
    fitting: Elapsed,
    *,
    seed: int = DEFAULT_SEED,
    level: float = 0.95,
    every_record: bool = False,
) -> RiskAssessment:
    """The risk that a fit tells, which took so long; of a pool also that of each of its members.

    The risk has a stream of its own, so that a member of a pool says to the digit what it says alone.
    """
    started = Elapsed.now()
    members = tuple(
        assess_fit(one.model, one.fit, one.elapsed, seed=seed, level=level)
        for one in (fit.members if isinstance(fit, Pools) else ())
    )
    sole = _sole(fit, members)
    if sole is not None and sole.tau1 is not None and sole.tau2 is not None and sole.records is not None:
        tau1, tau2, records, size_index = sole.tau1, sole.tau2, sole.records, sole.size_index
    else:
        rng = stream(seed, f"{model.name} risk")
        tau1, tau2, records = risk_of_laws(fit.unsampled(), level=level, effective=fit.effective_draws, rng=rng)
        size_index = check_size_index(fit, rng=stream(seed, f"{model.name} other samples"))
    if every_record and (whole := _every_cell(fit)) is not None:
        records = RecordRisk(records.r1, records.r2, records.r1_low, records.r1_high, whole)
    untrusted = any(diagnostic.verdict == "untrusted" for diagnostic in fit.diagnostics)
    return RiskAssessment(
        model=model.name,
        sample=fit.sample,
        status="not-converged" if untrusted else "ok",
        verdict=verdict_in_words(fit.diagnostics, fit.interval_leaves_out),
        leaves_out=fit.interval_leaves_out,
        tau1=tau1,
        tau2=tau2,
        records=records,
        diagnostics=fit.diagnostics,
        size_index=size_index,
        seed=seed,
        settings=dict(model.settings),
        seconds_fit=fitting.clock,
        seconds_risk=(risk := started.since()).clock,
        processor_seconds=fitting.processor + risk.processor,
        dependence=fit.dependence if isinstance(fit, FindsDependence) else None,
        path=fit.path if isinstance(fit, ChosenOnPath) else None,
        draws=fit.draws() if isinstance(fit, KeepsDraws) else None,
        members=members,
    )


def _sole(fit: Fit, members: Sequence[RiskAssessment]) -> RiskAssessment | None:
    """The one member that a pool consists of, if it is one: the pool then says what it says, to the digit."""
    shares = [member.share for member in fit.members] if isinstance(fit, Pools) else []
    return members[shares.index(1.0)] if 1.0 in shares else None


def risk_of_laws(
    laws: Iterable[UnsampledCounts], *, level: float = 0.95, effective: float | None = None, rng: Generator
) -> tuple[RiskEstimate, RiskEstimate, RecordRisk]:
    r"""tau1, tau2 and the records' risk from one law of the unsampled counts per parameter draw.

    Estimates average the closed forms over all laws. Intervals are quantiles of joint draws of the unsampled
    counts, one per law, so they hold the randomness of the population as well as that of the parameters; with
    very many uniques only some of the laws are drawn from, evenly spread. The laws are streamed. The draws of a
    single law are scaled so that their mean is its closed form.

    Parameters
    ----------
    effective
        How many independent parameter draws the laws are worth; their number, by default.
    """
    sums = _Sums(level, effective)
    first = None
    for law in laws:
        first = law if first is None else first
        sums.add(law, rng)
    if first is not None and sums.laws == 1:
        for _ in range(sums.most_draws(PLUG_IN_DRAWS) - 1):
            sums.add_draw(first, rng)
    return sums.tau1(), sums.tau2(), sums.records()


class _Sums:
    """Running sums over the laws, and the draws of tau."""

    def __init__(self, level: float, effective: float | None) -> None:
        self._level = level
        self._effective = effective
        self.laws = 0
        self._cells = 0
        self._r1 = self._r2 = np.zeros(1)
        self._expected1: list[float] = []
        self._expected2: list[float] = []
        self._drawn1: list[float] = []
        self._drawn2: list[float] = []
        self._kept: list[np.ndarray[tuple[int], np.dtype[np.float32]]] = []
        self._kept_every = self._drawn_every = 1

    def most_draws(self, wanted: int) -> int:
        """How many joint draws the number of uniques allows."""
        return min(wanted, max(FEWEST_DRAWS, DRAWN_COUNTS // max(self._cells, 1)))

    def add(self, law: UnsampledCounts, rng: Generator) -> None:
        whole = law.prob_none()
        r1, r2 = distinct(whole), distinct(law.mean_match())
        if not self.laws:
            self._cells = len(whole)
        self._r1, self._r2 = self._r1 + r1, self._r2 + r2
        self._expected1.append(float(r1.mean()) * self._cells if self._cells else 0.0)
        self._expected2.append(float(r2.mean()) * self._cells if self._cells else 0.0)
        if self.laws % self._kept_every == 0:
            self._kept.append(r1.astype(np.float32))
            if len(self._kept) * len(r1) > KEPT_VALUES and len(self._kept) > FEWEST_KEPT:
                self._kept, self._kept_every = self._kept[::2], self._kept_every * 2
        if self.laws % self._drawn_every == 0:
            self.add_draw(law, rng)
            if self._drawn_every == 1 and self._cells > DRAWN_COUNTS // FEWEST_DRAWS:
                self.add_draw(law, rng)  # models keep few laws of very many uniques
            if len(self._drawn1) > 2 * self.most_draws(len(self._drawn1)):
                self._drawn1, self._drawn2 = self._drawn1[::2], self._drawn2[::2]
                self._drawn_every *= 2
        self.laws += 1

    def add_draw(self, law: UnsampledCounts, rng: Generator) -> None:
        unsampled = law.draw(rng)
        self._drawn1.append(float(np.count_nonzero(unsampled == 0)))
        self._drawn2.append(float((1.0 / (1.0 + unsampled)).sum()))

    def tau1(self) -> RiskEstimate:
        return self._estimate(self._expected1, self._drawn1, whole=True)

    def tau2(self) -> RiskEstimate:
        return self._estimate(self._expected2, self._drawn2, whole=False)

    def records(self) -> RecordRisk:
        r1, r2 = self._every_cell(self._r1 / self.laws), self._every_cell(self._r2 / self.laws)
        if self.laws == 1:
            return RecordRisk(r1, r2, None, None)
        low, high = np.quantile(np.stack(self._kept), self._tails(), axis=0).astype(np.float64)
        # The mean of a skewed posterior can lie beyond its quantiles; the interval shall hold its estimate.
        return RecordRisk(r1, r2, np.minimum(self._every_cell(low), r1), np.maximum(self._every_cell(high), r1))

    def _every_cell(self, values: Vector) -> Vector:
        return np.broadcast_to(values, self._cells).copy()

    def _tails(self) -> tuple[float, float]:
        return (1 - self._level) / 2, (1 + self._level) / 2

    def _estimate(self, expected: list[float], drawn: list[float], *, whole: bool) -> RiskEstimate:
        # Quantiles of the draws themselves: an interval for a count ends at counts.
        ends = np.quantile(drawn, (*self._tails(), 0.25, 0.75), method="inverted_cdf")
        if len(expected) == 1:
            ends = np.minimum(ends * _off_centre(expected[0], drawn), self._cells)
            if whole:
                ends = np.rint(ends)
        low, high, first, third = ends.tolist()
        # A chain may be worth more draws than laws were kept of it, whose mean the estimate is.
        worth = min(self._effective or len(expected), len(expected))
        spread = float(np.std(expected, ddof=1)) if len(expected) > 1 else None
        return RiskEstimate(
            estimate=float(np.mean(expected)),
            low=low,
            high=high,
            level=self._level,
            mcse=0.0 if spread is None else spread / float(np.sqrt(worth)),
            expected_sd=spread,
            quartiles=(first, third),
        )


def _off_centre(expected: float, drawn: list[float]) -> float:
    """The closed form of a plug-in law over the mean of its draws.

    The closed form says where tau is, and the draws how far the truth may be from there. With estimation error in
    them their mean is another: risk is curved in what is estimated.
    """
    mean = float(np.mean(drawn))
    return expected / mean if mean > 0 else 1.0


def _every_cell(fit: Fit) -> Vector | None:
    return fit.mean_match_all() if isinstance(fit, MatchesEveryRecord) else None


def verdict_in_words(diagnostics: tuple[Diagnostic, ...], leaves_out: str) -> str:
    """What worries in a fit, and what its interval leaves out."""
    worries = [diagnostic.words for diagnostic in diagnostics if diagnostic.verdict != "good"]
    if leaves_out:
        worries.append(f"The interval leaves out {leaves_out}.")
    return " ".join(worries) or "No check raised a concern."


def _failed(model: RiskModel, sample: Sample, seed: int, reason: str, fitting: Elapsed) -> RiskAssessment:
    return RiskAssessment(
        model=model.name,
        sample=sample,
        status="failed",
        verdict=reason,
        tau1=None,
        tau2=None,
        records=None,
        diagnostics=(),
        size_index=None,
        seed=seed,
        settings=dict(model.settings),
        seconds_fit=fitting.clock,
        seconds_risk=0.0,
        processor_seconds=fitting.processor,
    )
