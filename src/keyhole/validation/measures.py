"""How a model did over replicates: bias, error, coverage, calibration, errors of classification, time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.arrays import Vector
from keyhole.validation.per_record import Bins
from keyhole.validation.replicate import Interval, Replicate, Trial

ERRORS_AT = (0.025, 0.25, 0.5, 0.75, 0.975)
"""Shares of the replicates at which relative errors are told."""


@dataclass(frozen=True, slots=True)
class TauMeasures:
    """Estimates of tau1 or tau2 against the truth, over replicates.

    Attributes
    ----------
    relative_bias
        Mean estimate over mean truth, minus 1; infinite where nobody was at risk in any sample.
    median_abs_relative_error
        Of |estimate - truth| / truth.
    rmse
        Root of the mean of (estimate - truth)^2.
    coverage
        Share of intervals that hold the truth.
    mean_width
        Of the intervals.
    median_relative_width
        Of the width over the truth; infinite where nobody was at risk.
    errors
        Relative errors at 2.5, 25, 50, 75 and 97.5% of the replicates.
    extremes
        The lowest and the highest relative error.
    """

    mean_truth: float
    median_truth: float
    mean_estimate: float
    relative_bias: float
    median_abs_relative_error: float
    rmse: float
    coverage: float
    mean_width: float
    median_relative_width: float
    errors: tuple[float, ...]
    extremes: tuple[float, float]

    @classmethod
    def of(cls, taus: Sequence[Interval]) -> "TauMeasures":
        """The measures of at least one replicate.

        Examples
        --------
        >>> found = TauMeasures.of([Interval(9.0, 5.0, 12.0, 10.0), Interval(11.0, 11.0, 14.0, 10.0)])
        >>> found.relative_bias, found.rmse, found.coverage, found.mean_width
        (0.0, 1.0, 0.5, 5.0)
        """
        truth, estimate = (np.array([getattr(tau, name) for tau in taus]) for name in ("truth", "estimate"))
        errors = np.array([tau.relative_error for tau in taus])
        return cls(
            float(truth.mean()),
            float(np.median(truth)),
            float(estimate.mean()),
            Interval(float(estimate.mean()), 0.0, 0.0, float(truth.mean())).relative_error,
            float(np.median(np.abs(errors))),
            float(np.sqrt(np.square(estimate - truth).mean())),
            float(np.mean([tau.covers for tau in taus])),
            float(np.mean([tau.width for tau in taus])),
            float(np.median([tau.width / tau.truth if tau.truth else np.inf for tau in taus])),
            _quantiles(errors, ERRORS_AT),
            (float(errors.min()), float(errors.max())),
        )


@dataclass(frozen=True, slots=True)
class Measures:
    """One model on samples of one size; all from ``tau1`` on is None, or empty, when every replicate failed.

    Attributes
    ----------
    replicates
        How many were run, failed ones included.
    failed, not_converged
        How many gave no estimate, and one that should not be trusted; the latter are in all measures.
    faults
        What failed replicates said, and how often.
    doubt
        What the first one said that should not be trusted; empty where all should.
    auc_r1
        The mean over replicates with both kinds of uniques.
    calibration_r1, calibration_r2
        By tenths of the risk, over all replicates: sample uniques, summed risk, summed truth.
    false_positives, false_negatives
        Shares at each of `KAPPAS`: over replicates, wrong ones among the uniques that are not population-unique,
        and among those that are.
    missed
        Mean share of population uniques missed, at shares of false positives given by `KAPPAS`.
    seconds_per_fit, processor_seconds_per_fit
        Medians, by the clock and of the processors; the latter hardly depends on what else the machine does.
    """

    population: str
    model: str
    size: int
    replicates: int
    failed: int
    not_converged: int
    faults: Mapping[str, int]
    doubt: str
    tau1: TauMeasures | None
    tau2: TauMeasures | None
    auc_r1: float | None
    calibration_r1: Bins
    calibration_r2: Bins
    false_positives: tuple[float, ...]
    false_negatives: tuple[float, ...]
    missed: tuple[float, ...]
    seconds_per_fit: float | None
    processor_seconds_per_fit: float | None
    total_seconds: float


def measure(results: Mapping[Trial, Replicate]) -> tuple[Measures, ...]:
    """Measures of each population, size and model, in the order in which these first come."""
    groups: dict[tuple[str, int, str], list[Replicate]] = {}
    for trial, replicate in results.items():
        groups.setdefault((trial.population, trial.size, trial.model), []).append(replicate)
    return tuple(
        _measure(population, model, size, replicates) for (population, size, model), replicates in groups.items()
    )


def _measure(population: str, model: str, size: int, replicates: Sequence[Replicate]) -> Measures:
    fitted = [one for one in replicates if one.tau1 is not None]
    faults: dict[str, int] = {}
    for one in replicates:
        if one.tau1 is None:
            faults[one.verdict] = faults.get(one.verdict, 0) + 1
    aucs = [one.auc_r1 for one in fitted if one.auc_r1 is not None]
    alone = sum(one.population_uniques for one in fitted)
    others = sum(one.uniques for one in fitted) - alone
    return Measures(
        population=population,
        model=model,
        size=size,
        replicates=len(replicates),
        failed=len(replicates) - len(fitted),
        not_converged=sum(one.status == "not-converged" for one in fitted),
        faults=faults,
        doubt=next((one.verdict for one in fitted if one.status == "not-converged"), ""),
        tau1=TauMeasures.of([one.tau1 for one in fitted if one.tau1 is not None]) if fitted else None,
        tau2=TauMeasures.of([one.tau2 for one in fitted if one.tau2 is not None]) if fitted else None,
        auc_r1=float(np.mean(aucs)) if aucs else None,
        calibration_r1=_together(one.calibration_r1 for one in fitted),
        calibration_r2=_together(one.calibration_r2 for one in fitted),
        false_positives=_shares([one.false_positives for one in fitted], others),
        false_negatives=_shares([one.false_negatives for one in fitted], alone),
        missed=_mean([one.missed for one in fitted if one.missed]),
        seconds_per_fit=float(np.median([one.seconds for one in fitted])) if fitted else None,
        processor_seconds_per_fit=float(np.median([one.processor_seconds for one in fitted])) if fitted else None,
        total_seconds=math.fsum(one.seconds for one in replicates),
    )


def _quantiles(values: Vector, shares: Sequence[float]) -> tuple[float, ...]:
    """Quantiles on straight lines between the ordered values; beside an infinite one there are none between.

    Examples
    --------
    >>> _quantiles(np.array([3.0, 1.0, 2.0, 4.0]), (0.25, 0.5))
    (1.75, 2.5)
    >>> _quantiles(np.array([0.0, np.inf, np.inf]), (0.0, 0.25, 0.75))
    (0.0, inf, inf)
    """
    ordered = np.sort(values)
    at = np.asarray(shares) * (len(ordered) - 1)
    low, high = ordered[np.floor(at).astype(int)], ordered[np.ceil(at).astype(int)]
    beyond = np.isinf(high)
    step = np.where(beyond, 0.0, high) - np.where(beyond, 0.0, low)
    found = np.where(beyond & (at > np.floor(at)), high, low + (at - np.floor(at)) * step)
    return tuple(found.tolist())


def _together(bins: Iterable[Bins]) -> Bins:
    every = list(bins)
    if not every:
        return ()
    return tuple((int(size), risk, true) for size, risk, true in np.sum(every, axis=0).tolist())


def _shares(counts: Sequence[Sequence[int]], of: int) -> tuple[float, ...]:
    return tuple((np.sum(counts, axis=0) / of).tolist()) if counts and of else ()


def _mean(curves: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(np.mean(curves, axis=0).tolist()) if curves else ()


def standard_error_of_share(share: float, number: int) -> float:
    """Of a coverage over so many replicates.

    Examples
    --------
    >>> round(standard_error_of_share(0.95, 100), 3)
    0.022
    """
    return math.sqrt(share * (1.0 - share) / number)


def calibration_points(bins: Bins) -> tuple[tuple[float, float, int], ...]:
    """Mean risk, mean truth and records of each tenth that has records: the points of a calibration curve."""
    return tuple((risk / size, true / size, size) for size, risk, true in bins if size)


def calibration_error(bins: Bins) -> float:
    """The mean over the sample uniques of |mean risk - mean truth| of their tenth; nan without any."""
    size, risk, true = _columns(bins)
    return float(np.abs(risk - true).sum() / size.sum()) if size.sum() else math.nan


def calibration_by_chance(bins: Bins) -> float:
    """The calibration error of r1 were it exact: the mean of |normal| with each tenth's deviation."""
    size, risk, _ = _columns(bins)
    mean = np.divide(risk, size, out=np.zeros_like(size), where=size > 0)
    return float(np.sqrt(2 / np.pi * size * mean * (1 - mean)).sum() / size.sum()) if size.sum() else math.nan


def _columns(bins: Bins) -> tuple[Vector, Vector, Vector]:
    size, risk, true = np.array(bins, dtype=np.float64).reshape(-1, 3).T
    return size, risk, true
