"""What can go wrong with a sequential logit, in words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.arrays import Vector
from keyhole.inference.dependence import Dependence
from keyhole.inference.fit import Diagnostic, Verdict
from keyhole.inference.track_record import TrackRecord
from keyhole.keys.variable import MISSING
from keyhole.models.sequential.conditional import Conditional
from keyhole.models.sequential.joint import JointLaw
from keyhole.models.sequential.shift import FEWEST_KEYS, LEAST_WORTH, MOST_CHECKED_KEYS, Shift
from keyhole.population.sample import Sample
from keyhole.population.weights import design_effect, weights_differ_within_cells

SMALL_RECORD = TrackRecord(-26, 269, covered=343, samples=350)
LARGE_RECORD = TrackRecord(-13, 21, covered=891, samples=900)
"""tau1 on all samples of ``docs/reference/real-populations.md`` with 1,000 records, and with 5,000 and more. The
highest error of small ones is 18 people for 5."""

LARGE_SAMPLE = 3000
"""Records from which a sample is like those of 5,000 rather than of 1,000."""

WEIGHTED = TrackRecord(-10, 8, covered=20, samples=20)
"""Likewise where one key decides how likely people are drawn; ``scripts/weights_on_real_tables.py``."""

FEWEST_RECORDS = 500
"""Below this no sample of a real population was ever tried."""

CHECKED_EFFECT = 1.05
"""Design effects below this are those of a sample without weights."""

LEVEL_SHARE = "level_share"
"""Name of the diagnostic that looks for such keys."""

LARGEST_POPULATION = 20_000_000
"""Beyond ten times the largest real population that was tried."""

MANY_LEVELS, TOO_MANY_LEVELS = 0.15, 0.5
"""Levels of a key over the records that have one: no key that was tried had more than the first (an age in years
in 1,000 records has 0.1); beyond the second the file does not tell how often levels repeat in the population."""

DISAGREEMENT, GRAVE_DISAGREEMENT = 0.10, 0.30
"""Half the range of tau over the orders, as a share of their mean, that deserves a word; and that is too much."""


def diagnose(
    sample: Sample,
    laws: Sequence[JointLaw],
    shift: Shift,
    dependence: Dependence,
    log_score: float,
    by_order: "ByOrder",
) -> tuple[Diagnostic, ...]:
    """Every check of a fit, good or bad."""
    names = [key.name for key in sample.table.keys]
    found = [_convergence(laws), _penalties(laws), _separation(laws, names), _shift(shift, sample)]
    if shift.nested is not None:
        found.append(_nested(shift.nested, shift))
    if len(by_order.tau1) != 1:
        found.append(_orders(by_order))
    if sample.uniques and sample.unsampled_size:
        found += [_size(sample), _population(sample), _levels(sample)]
    if sample.table.weights is not None:
        found.append(_weights(sample))
    found.append(Diagnostic("log_score", log_score, "good", _score_words(log_score)))
    found.append(Diagnostic("dependence", len(dependence.triples), "good", dependence.in_words()))
    return tuple(found)


def _convergence(laws: Sequence[JointLaw]) -> Diagnostic:
    failed = sum(not fit.converged for law in laws for fit in law.factors)
    worst = max((fit.decrement for law in laws for fit in law.factors), default=0.0)
    if failed:
        words = f"{failed} of the logits did not reach their maximum (worst decrement {worst:.2g})."
        return Diagnostic("converged", worst, "untrusted", words)
    return Diagnostic("converged", worst, "good", "Every logit reached its maximum.")


def _penalties(laws: Sequence[JointLaw]) -> Diagnostic:
    tied = sum(fit.penalties_at_bound for law in laws for fit in law.factors)
    if tied:
        words = f"{tied} blocks of coefficients ended at the bound of their penalty."
        return Diagnostic("penalties_at_bound", tied, "caution", words)
    return Diagnostic("penalties_at_bound", 0, "good", "No penalty ended at its bound.")


def _separation(laws: Sequence[JointLaw], names: Sequence[str]) -> Diagnostic:
    """Keys whose level another key decides: only the ridge keeps the coefficients of such a logit finite."""
    decided = {(fit.data.key, other) for law in laws for fit in law.factors for other in deciding(fit.data)}
    if decided:
        pairs = sorted({(names[other], names[key]) for key, other in decided})
        shown = ", ".join(f"{one} decides {two}" for one, two in pairs[:5])
        words = f"Of some keys another tells all (separation): {shown}. Drop the one that adds nothing."
        return Diagnostic("separation", len(decided), "caution", words)
    return Diagnostic("separation", 0, "good", "No key is a function of another.")


def record_at(records: int) -> TrackRecord:
    """The record on samples of about this size."""
    return LARGE_RECORD if records >= LARGE_SAMPLE else SMALL_RECORD


def deciding(data: Conditional) -> list[int]:
    """The earlier keys each level of which is always followed by the same level."""
    found = []
    for other in data.earlier:
        followed = np.unique(data.contexts[data.context, other] * data.levels + data.level)
        if len(followed) == len(np.unique(followed // data.levels)):
            found.append(other)
    return found


def _size(sample: Sample) -> Diagnostic:
    size = sample.sample_size
    if size < FEWEST_RECORDS:
        words = f"The sample has {size:,} records; below {FEWEST_RECORDS} this model was never checked."
        return Diagnostic("sample_size", size, "untrusted", words)
    return Diagnostic("sample_size", size, "good", f"The sample has {size:,} records.")


def _population(sample: Sample) -> Diagnostic:
    people = sample.population_size
    if people > LARGEST_POPULATION:
        words = (
            f"The population has {people:,} people; beyond {LARGEST_POPULATION:,} this model was never checked, "
            "and how far very rare combinations scatter is an extrapolation."
        )
        return Diagnostic("population_size", people, "caution", words)
    return Diagnostic("population_size", people, "good", f"The population has {people:,} people.")


def _levels(sample: Sample) -> Diagnostic:
    """Whether a key names people or households: how often its levels repeat is then the risk."""
    shares = {}
    for key, codes in zip(sample.table.keys, sample.table.cells.T, strict=True):
        known = np.array([label != MISSING for label in key.levels])[codes]
        records = int(sample.table.counts[known].sum())
        shares[key.name] = len(np.unique(codes[known])) / records if records else 0.0
    most = max(shares.values(), default=0.0)
    if most <= MANY_LEVELS:
        return Diagnostic(LEVEL_SHARE, most, "good", "Every key has several records for each of its levels.")
    names = " and ".join(name for name, share in shares.items() if share > MANY_LEVELS)
    words = (
        f"The file has few records for each level of {names}, as if they named people, households or days: how "
        "often such levels repeat in the population cannot be told from it. Drop or coarsen such keys."
    )
    return Diagnostic(LEVEL_SHARE, most, "untrusted" if most > TOO_MANY_LEVELS else "caution", words)


def _levels_seen(sample: Sample) -> list[int]:
    """How many levels of each key the file has."""
    return [len(np.unique(levels)) for levels in sample.table.cells.T]


@dataclass(frozen=True, eq=False)
class ByOrder:
    """tau1 and tau2 of each order alone, and the standard deviations of their predictions."""

    tau1: Vector
    tau2: Vector
    deviation1: Vector
    deviation2: Vector

    @property
    def spread(self) -> float:
        """Half the range over the orders, as a share of their mean."""
        return max(_half_range(tau) for tau in (self.tau1, self.tau2))

    @property
    def apart(self) -> bool:
        """Whether the 95% intervals of two orders have nothing in common."""
        pairs = ((self.tau1, self.deviation1), (self.tau2, self.deviation2))
        return any(
            bool(len(tau)) and float((tau - 1.96 * sd).max()) > float((tau + 1.96 * sd).min()) for tau, sd in pairs
        )


def _orders(by_order: ByOrder) -> Diagnostic:
    spread = by_order.spread
    verdict: Verdict = "good"
    words = f"The {len(by_order.tau1)} orders of the keys differ by up to {100 * spread:.0f}% from their middle."
    if spread > GRAVE_DISAGREEMENT:
        verdict = "untrusted"
        words += " The number depends on an arbitrary choice."
    elif spread > DISAGREEMENT or by_order.apart:
        verdict = "caution"
        words += " The intervals of single orders have nothing in common." if by_order.apart else ""
        words += " The interval does not hold this."
    return Diagnostic("order_spread", spread, verdict, words)


def _half_range(values: Vector) -> float:
    middle = float(np.mean(values)) if len(values) else 0.0
    return float(np.ptp(values)) / 2 / middle if middle >= 1.0 else 0.0


def _shift(shift: Shift, sample: Sample) -> Diagnostic:
    """By how much all probabilities are moved, and whether that is more than a rule carried further."""
    words = "Seen combinations are taken to hold as many people as the fit says"
    if shift.mean:
        effect = "lowers" if shift.mean > 0 else "raises"
        words = (
            f"Seen combinations are taken to hold {100 * np.expm1(shift.mean):+.1f}% people against the fit, "
            f"which {effect} the risk"
        )
    if shift.extrapolated:
        words += (
            f": carried over from samples of real populations with {LEAST_WORTH:,} records and more and "
            f"{FEWEST_KEYS} to {MOST_CHECKED_KEYS} keys; this file has {sample.sample_size:,} and "
            f"{sum(levels > 1 for levels in _levels_seen(sample))}."
        )
        return Diagnostic("shift", shift.mean, "caution", words)
    words += ": what samples of real populations of about this size, by about as many keys, make likely."
    return Diagnostic("shift", shift.mean, "good", words)


def _nested(nested: float, shift: Shift) -> Diagnostic:
    words = (
        f"In subsamples of {shift.subsample:,} records, the sample as their population, seen combinations held "
        f"{100 * np.expm1(nested):+.0f}% people against the fit; that is a check, and moves nothing."
    )
    if abs(shift.surprise) > 3:
        words += " It contradicts what was seen on other populations: this file is of another kind."
        return Diagnostic("nested_shift", nested, "caution", words)
    return Diagnostic("nested_shift", nested, "good", words)


def _weights(sample: Sample) -> Diagnostic:
    effect, smoothed = design_effect(sample), weights_differ_within_cells(sample.table)
    words = (
        f"Survey weights tell how many people each combination has beside those in the sample (design effect "
        f"{effect:.2f}). Clustering is not accounted for."
    )
    if effect >= CHECKED_EFFECT:
        words += " Of the samples behind the model's record none had weights."
        if smoothed:
            words += " Alike records weigh differently: weights are smoothed over the keys, which was not checked."
        else:
            words += (
                f" On {WEIGHTED.samples} others, with weights by a key, {WEIGHTED.covered} of its intervals held."
            )
    elif smoothed:
        words += " Alike records weigh differently: weights are smoothed over the keys."
    doubt = smoothed and effect >= CHECKED_EFFECT
    return Diagnostic("design_effect", effect, "caution" if doubt else "good", words)


def _score_words(score: float) -> str:
    return f"A record is given log probability {score:.2f} by a fit without one like it, on average."
