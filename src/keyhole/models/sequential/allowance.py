r"""How much the model misses: people fall into seen cells more often than a smooth law says.

Terms beyond the three-way ones are left out, and records are seen where they are, so the cells of the sample
hold more people than the fit expects: on average their true probability is :math:`e^s` times the posterior's,
the same for samples of 500 and of 10,000 records (``docs/explanation/sequential-logit.md`` shows the study).
The allowance s has a prior from that study. Nested subsampling measures it on the sample at hand, with the
sample as a population whose truth is known, and the two are combined.
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
from keyhole.population.sample import Sample
from keyhole.progress import Progress

PRIOR_MEAN, PRIOR_DEVIATION = 0.08, 0.02
"""Of s, over the real populations of the study."""

SAMPLE_VARIANCE = 5.6
"""Divided by n, the variance of s between samples of one population: which terms a sample shows is chance."""

EXTRAPOLATION = 0.03
"""How much smaller s is in a subsample of a sample than in the sample of its population, on average."""

NESTED_DEVIATION = 0.08
"""How far nested subsampling is from s beyond the spread of its replicates: one sample is one population."""

FEWEST_RECORDS = 2000
"""Below this a subsample has too few uniques to say anything."""

FEWEST_UNIQUES = 50
"""Uniques in all subsamples together, below which they say nothing."""

SMALLEST, LARGEST = 500, 2000
"""The size of a subsample: a tenth of the sample, within these bounds."""

FURTHEST = 2.0
"""The allowance is looked for within plus and minus this."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The allowance's mean and deviation, and what nested subsampling found, if it ran."""

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
        spread = np.hypot(self.nested_deviation, PRIOR_DEVIATION)
        return float((self.nested + EXTRAPOLATION - PRIOR_MEAN) / spread)


def allowance_of(
    sample: Sample,
    observed: Observed,
    replicates: int,
    orders: int,
    *,
    most_pairs: int,
    rng: Generator,
    progress: Progress,
) -> Allowance:
    """The prior, updated by nested subsampling where the sample is large enough for it."""
    chance = SAMPLE_VARIANCE / sample.sample_size
    unasked = Allowance(PRIOR_MEAN, float(np.sqrt(PRIOR_DEVIATION**2 + chance)))
    alone = sum(size > 1 for size in observed.sizes) < 2
    if replicates == 0 or alone or not sample.uniques or sample.sample_size < FEWEST_RECORDS:
        return unasked
    size = int(np.clip(sample.sample_size // 10, SMALLEST, LARGEST))
    runs = []
    for turn in range(replicates):
        progress("nested subsamples", turn, replicates)
        runs.append(_subsample(sample, observed, size, turn % orders, orders, most_pairs, rng))
    progress("nested subsamples", replicates, replicates)
    if sum(len(run.posterior.mean) for run in runs) < FEWEST_UNIQUES:
        return unasked
    unsampled = sample.sample_size - size
    found = _solve(runs, unsampled)
    # The jackknife: leave out one replicate at a time.
    without = [_solve(runs[:turn] + runs[turn + 1 :], unsampled) for turn in range(replicates)]
    jackknife = np.sqrt((replicates - 1) * np.var(without)) if replicates > 1 else 0.0
    deviation = float(np.hypot(jackknife, NESTED_DEVIATION))
    weight = PRIOR_DEVIATION**2 / (PRIOR_DEVIATION**2 + deviation**2)
    mean = PRIOR_MEAN + weight * (found + EXTRAPOLATION - PRIOR_MEAN)
    return Allowance(mean, float(np.sqrt(PRIOR_DEVIATION**2 * (1 - weight) + chance)), found, deviation, size)


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
    return _Run(CellPosterior.pooled([law.moments[unique]]), truth)


def _solve(runs: Sequence[_Run], unsampled: int) -> float:
    """The allowance under which expected tau1 + tau2 of all subsamples equal the truth, or the nearest bound."""
    truth = sum(run.truth for run in runs)

    def excess(allowance: float) -> float:
        total = 0.0
        for run in runs:
            law = run.posterior.unsampled(unsampled, allowance)
            total += float(law.prob_none().sum() + law.mean_match().sum())
        return total - truth

    if excess(-FURTHEST) <= 0:
        return -FURTHEST
    if excess(FURTHEST) >= 0:
        return FURTHEST
    return float(brentq(excess, -FURTHEST, FURTHEST, xtol=1e-4))
