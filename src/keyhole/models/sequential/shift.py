r"""A common shift of log p: what the sample says of itself when it plays the population.

Nested subsampling takes the sample as a population whose truth is known, fits subsamples of it and measures the
shift of log p that would have made their risk right. With the scatter of cells in the law that shift is near zero
on every real table of the study, whatever the sampling fraction; its prior says so, and subsamples move it a
little. They see cells of one in thousands, not those of one in millions on which the risk of the sample depends,
so they are a check more than a correction.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq

from keyhole.models.sequential.cell_posterior import CellPosterior
from keyhole.models.sequential.joint import fit_joint
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import key_orders
from keyhole.models.sequential.scatter import Scatter
from keyhole.population.sample import Sample
from keyhole.progress import Progress

PRIOR_DEVIATION, UNSEEN_VARIANCE = 0.015, 1.7
"""Of the shift between populations, and its variance times n: small samples show little of how keys depend."""

SAMPLE_VARIANCE = 1.6
"""Divided by n, the shift's variance between samples of one population: penalties and terms are estimated too."""

NESTED_DEVIATION = 0.04
"""How far nested subsampling is from the shift beyond the spread of its replicates: it sees one sample."""

FEWEST_RECORDS = 2000
"""Below this a subsample has too few uniques to say anything."""

FEWEST_UNIQUES = 50
"""Uniques in all subsamples together, below which they say nothing."""

SMALLEST, LARGEST = 500, 2000
"""The size of a subsample: a tenth of the sample, within these bounds."""

FURTHEST = 2.0
"""The shift is looked for within plus and minus this."""


@dataclass(frozen=True, slots=True)
class Shift:
    """The shift's mean and deviation, and what nested subsampling found, if it ran."""

    mean: float
    deviation: float
    nested: float | None = None
    nested_deviation: float | None = None
    subsample: int | None = None

    @property
    def surprise(self) -> float:
        """How many deviations the sample's own measure is from what other populations showed."""
        if self.nested is None or self.nested_deviation is None:
            return 0.0
        return float(self.nested / np.hypot(self.nested_deviation, PRIOR_DEVIATION))


def shift_of(
    sample: Sample,
    observed: Observed,
    replicates: int,
    orders: int,
    *,
    most_pairs: int,
    rng: Generator,
    progress: Progress,
) -> Shift:
    """The prior, updated by nested subsampling where the sample is large enough for it."""
    worth = float(observed.records.sum())
    chance = SAMPLE_VARIANCE / worth
    prior = PRIOR_DEVIATION**2 + UNSEEN_VARIANCE / worth
    unasked = Shift(0.0, float(np.sqrt(prior + chance)))
    alone = sum(size > 1 for size in observed.sizes) < 2
    if replicates < 2 or alone or not sample.uniques or worth < FEWEST_RECORDS:
        return unasked
    size = int(np.clip(sample.sample_size // 10, SMALLEST, LARGEST))
    runs = []
    for turn in range(replicates):
        progress("nested subsamples", turn, replicates)
        runs.append(_subsample(sample, observed, size, turn % orders, orders, most_pairs, rng))
    progress("nested subsamples", replicates, replicates)
    if sum(len(run.posterior.shape) for run in runs) < FEWEST_UNIQUES:
        return unasked
    unsampled = sample.sample_size - size
    found = _solve(runs, unsampled)
    # The jackknife: leave out one replicate at a time.
    without = [_solve(runs[:turn] + runs[turn + 1 :], unsampled) for turn in range(replicates)]
    jackknife = np.sqrt((replicates - 1) * np.var(without))
    deviation = float(np.hypot(jackknife, NESTED_DEVIATION))
    weight = prior / (prior + deviation**2)
    left = float(np.sqrt(prior * (1 - weight) + chance))
    return Shift(weight * found, left, found, deviation, size)


@dataclass(frozen=True, eq=False)
class _Run:
    """A subsample's posterior at its uniques, and the true tau1 + tau2 in the sample it came from."""

    posterior: CellPosterior
    truth: float


def _subsample(
    sample: Sample, observed: Observed, size: int, which: int, orders: int, most_pairs: int, rng: Generator
) -> _Run:
    counts = sample.table.counts
    taken = rng.multivariate_hypergeometric(counts, size, method="marginals")
    part = observed.subset(taken)
    order = key_orders(part, orders)
    law = fit_joint(part, order[which % len(order)], sample.zeros, most_pairs=most_pairs, rng=rng)
    unique = taken[taken > 0] == 1
    population = counts[taken > 0][unique]
    truth = float((population == 1).sum() + (1.0 / population).sum())
    return _Run(Scatter().around(CellPosterior.pooled([law.moments[unique]]), size), truth)


def _solve(runs: Sequence[_Run], unsampled: int) -> float:
    """The shift under which expected tau1 + tau2 of all subsamples equal the truth, or the nearest bound."""
    truth = sum(run.truth for run in runs)

    def excess(shift: float) -> float:
        total = 0.0
        for run in runs:
            law = run.posterior.unsampled(unsampled, shift)
            total += float(law.prob_none().sum() + law.mean_match().sum())
        return total - truth

    if excess(-FURTHEST) <= 0:
        return -FURTHEST
    if excess(FURTHEST) >= 0:
        return FURTHEST
    return float(brentq(excess, -FURTHEST, FURTHEST, xtol=1e-4))
