r"""A common shift of log p: how far all cells are off together, and what the sample as a population says of it.

Small samples show little of how keys depend on each other, so that seen cells hold more people than the law says;
and the more keys there are, the more penalties and terms are chosen by the sample itself, which makes seen cells
look more likely than they are. On real tables by keys that nobody chose the two are in balance with ten keys, and
the rest of the shift falls with the size of the sample:

.. math:: E\,\text{shift} = 60\,(10 - J) / n

for J keys and n records, a line that was seen for 5 to 10 keys and goes on to 12. Nested subsampling takes the
sample as a population whose truth is known, fits subsamples of it and measures the shift of log p that would
have made their risk right. They see cells of one in thousands, not those of one in millions on which the risk of
the sample depends, and what they find hardly goes with what the sample needs: they are a check, and move
nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq

from keyhole.arrays import Vector
from keyhole.models.sequential.cell_posterior import CellPosterior
from keyhole.models.sequential.joint import fit_joint
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import key_orders
from keyhole.models.sequential.scatter import Scatter
from keyhole.population.sample import Sample
from keyhole.progress import Progress

BALANCED_KEYS, BY_KEY = 10, 60.0
"""The number of keys at which no shift is expected, and by how much over n it falls with each further key."""

FEWEST_KEYS, MOST_KEYS, LEAST_WORTH = 5, 12, 1000
"""Numbers of keys between which the line holds, and the smallest sample; beyond, the bound's shift is taken."""

MOST_CHECKED_KEYS = 13
"""The line was drawn through tables with 5 to 10 keys; estimates were checked on tables with up to so many."""

PRIOR_DEVIATION, UNSEEN_VARIANCE = 0.04, 8.4
"""Of the shift between tables, and its variance times n: small samples show little of how keys depend."""

SAMPLE_VARIANCE = 1.6
"""Divided by n, the shift's variance between samples of one population: penalties and terms are estimated too."""

NESTED_MEAN, NESTED_DEVIATION = 0.04, 0.13
"""What nested subsampling finds on real tables by drawn keys, from 2,000 records on, whatever their keys."""

FEWEST_RECORDS = 2000
"""Below this a subsample has too few uniques to say anything."""

FEWEST_UNIQUES = 50
"""Uniques in all subsamples together, below which they say nothing."""

SMALLEST, LARGEST = 500, 2000
"""The size of a subsample: a tenth of the sample, within these bounds."""

FURTHEST = 2.0
"""The shift is looked for within plus and minus this."""

STEP, TINY = 0.01, 1e-9
"""Over which slopes in the shift are taken, and the smallest."""


@dataclass(frozen=True, slots=True)
class Shift:
    """The shift's mean and deviation, and what nested subsampling found, if it ran, give or take its deviation.

    It is extrapolated where no sample with so few records, or so few or many keys, was checked.
    """

    mean: float
    deviation: float
    nested: float | None = None
    nested_deviation: float | None = None
    subsample: int | None = None
    extrapolated: bool = False

    @property
    def surprise(self) -> float:
        """How many deviations the sample's own measure is from what other populations showed."""
        if self.nested is None or self.nested_deviation is None:
            return 0.0
        return float((self.nested - NESTED_MEAN) / np.hypot(self.nested_deviation, NESTED_DEVIATION))


def expected_shift(keys: int, worth: float) -> float:
    """Of a sample with so many keys and records.

    Examples
    --------
    >>> expected_shift(8, 2000.0), expected_shift(10, 5000.0), round(expected_shift(30, 500.0), 3)
    (0.06, 0.0, -0.12)
    """
    return BY_KEY * (BALANCED_KEYS - min(max(keys, FEWEST_KEYS), MOST_KEYS)) / max(worth, LEAST_WORTH)


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
    """What other populations say of it, and nested subsampling as a check where the sample is large enough."""
    worth = float(observed.records.sum())
    deviation = float(np.sqrt(PRIOR_DEVIATION**2 + (UNSEEN_VARIANCE + SAMPLE_VARIANCE) / worth))
    keys = sum(size > 1 for size in observed.sizes)
    seen = FEWEST_KEYS <= keys <= MOST_CHECKED_KEYS and worth >= LEAST_WORTH
    unasked = Shift(expected_shift(keys, worth), deviation, extrapolated=not seen)
    if replicates < 2 or keys < 2 or not sample.uniques or worth < FEWEST_RECORDS:
        return unasked
    size = int(np.clip(sample.sample_size // 10, SMALLEST, LARGEST))
    runs = []
    for turn in range(replicates):
        progress("nested subsamples", turn, replicates)
        runs.append(_subsample(sample, observed, size, turn % orders, orders, most_pairs, rng))
    progress("nested subsamples", replicates, replicates)
    if sum(len(run.posterior.mean) for run in runs) < FEWEST_UNIQUES:
        return unasked
    found, without = _solve(runs, sample.sample_size)
    jackknife = float(np.sqrt((replicates - 1) * np.var(without)))
    return replace(unasked, nested=found, nested_deviation=jackknife, subsample=size)


@dataclass(frozen=True, eq=False)
class _Run:
    """A subsample's posterior at its uniques, its size, and the true tau1 + tau2 in the sample it came from."""

    posterior: CellPosterior
    size: int
    truth: float

    def excess(self, shift: float, people: int) -> float:
        """Expected tau1 + tau2 minus the truth."""
        alone, match = Scatter().risks(self.posterior, self.size, people - self.size, shift)
        return float(alone.sum() + match.sum()) - self.truth


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
    return _Run(CellPosterior.pooled([law.moments[unique]]), size, truth)


def _solve(runs: Sequence[_Run], people: int) -> tuple[float, Vector]:
    """The shift under which expected tau1 + tau2 of all subsamples equal the truth, or the nearest bound.

    And the same without each run in turn, one Newton step away.
    """

    def total(shift: float) -> float:
        return sum(run.excess(shift, people) for run in runs)

    if total(-FURTHEST) <= 0:
        found = -FURTHEST
    elif total(FURTHEST) >= 0:
        found = FURTHEST
    else:
        found = float(brentq(total, -FURTHEST, FURTHEST, xtol=1e-4))
    low, high = (np.array([run.excess(found + step, people) for run in runs]) for step in (-STEP, STEP))
    excess, slope = (low + high) / 2, (high - low) / (2 * STEP)
    left = found - (excess.sum() - excess) / np.minimum(slope.sum() - slope, -TINY)
    return found, np.clip(left, -FURTHEST, FURTHEST)
