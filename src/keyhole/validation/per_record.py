"""How well the risks of single records do: ranking, calibration, and errors of classifying by them."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from keyhole.arrays import Mask, Vector

BINS = 10
"""Intervals of equal width that risks are grouped into."""

KAPPAS = np.linspace(0.0, 1.0, 51)
"""Thresholds of r1 at which errors are counted."""

Bin = tuple[int, float, float]
"""Records of an interval of risk, their summed risk, and the sum of what was true of them."""

Bins = tuple[Bin, ...]


def rank_auc(r1: Vector, alone: Mask) -> float | None:
    """Chance that a population unique has a higher r1 than another sample unique, ties counting half.

    None when the uniques are all of one kind.

    Examples
    --------
    >>> rank_auc(np.array([0.9, 0.2, 0.2]), np.array([True, True, False]))
    0.75
    """
    ones, others = int(alone.sum()), int((~alone).sum())
    if not ones or not others:
        return None
    return float((rankdata(r1)[alone].sum() - ones * (ones + 1) / 2) / (ones * others))


def calibration_bins(risk: Vector, true: Vector | Mask) -> Bins:
    """Records, summed risk and summed truth by tenths of the risk, [0, 0.1) to [0.9, 1].

    For r1 the truth is whether F = 1, for r2 it is 1/F. Means of a tenth against each other are one point of the
    published curves.

    References
    ----------
    Carota, Filippone, Leombruni & Polettini (2015), figures 3 and 4.
    """
    tenth = np.minimum((risk * BINS).astype(np.int64), BINS - 1)
    columns = (np.bincount(tenth, weight, BINS).tolist() for weight in (None, risk, np.asarray(true, np.float64)))
    return tuple((int(size), float(risks), float(truths)) for size, risks, truths in zip(*columns, strict=True))


def false_positives(r1: Vector, alone: Mask) -> tuple[int, ...]:
    """Sample uniques that are not population-unique and have r1 > kappa, for each kappa."""
    others = np.sort(r1[~alone])
    return tuple((len(others) - np.searchsorted(others, KAPPAS, side="right")).tolist())


def false_negatives(r1: Vector, alone: Mask) -> tuple[int, ...]:
    """Population uniques that have r1 < kappa, for each kappa."""
    return tuple(np.searchsorted(np.sort(r1[alone]), KAPPAS, side="left").tolist())


def missed_at(r1: Vector, alone: Mask, rates: Sequence[float] = tuple(KAPPAS)) -> tuple[float, ...]:
    """Share of population uniques missed where the threshold gives each share of false positives.

    With one threshold for both decisions every record is classified. Between two thresholds the curve is a
    straight line, as it is when some of the records with the same r1 are classified at random.

    Examples
    --------
    >>> missed_at(np.array([0.9, 0.5, 0.1]), np.array([True, False, False]), (0.0, 0.5))
    (0.0, 0.0)
    >>> missed_at(np.array([0.3, 0.3]), np.array([True, False]), (0.0, 0.5, 1.0))
    (1.0, 0.5, 0.0)

    References
    ----------
    Manrique-Vallier & Reiter (2012), figure 3.
    """
    ones, others = int(alone.sum()), int((~alone).sum())
    if not ones or not others:
        return ()
    # From the highest threshold down: what is classified as unique so far, at each distinct r1.
    order = np.argsort(-r1, kind="stable")
    last = np.append(np.flatnonzero(np.diff(r1[order])), len(r1) - 1)
    wrong = np.concatenate([[0], np.cumsum(~alone[order])[last]]) / others
    missed = 1.0 - np.concatenate([[0], np.cumsum(alone[order])[last]]) / ones
    # Of thresholds with the same false positives interp takes the last, which misses fewest.
    return tuple(np.interp(rates, wrong, missed).round(6).tolist())
