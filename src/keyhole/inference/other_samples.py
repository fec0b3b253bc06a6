"""What other samples from a fit would look like: how many of their cells hold one record, two, ..."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.inference.gibbs import GibbsSampler, State
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable

NEVER = 1e-12
"""Probabilities below this are not followed to larger counts."""

MOST_SAMPLES, FEWEST_SAMPLES, RECORDS = 10, 2, 2_000_000
"""Samples that are drawn: fewer where they are large, so that there are not many more records than these."""


def mean_cells(
    another: Callable[[Generator], IntVector], sizes: IntVector, records: int, rng: Generator
) -> Vector:
    """The mean number of cells with so many records each, over samples whose counts ``another`` gives.

    Examples
    --------
    >>> mean_cells(lambda rng: np.array([1, 1, 3]), np.array([1, 2, 3]), 5, np.random.default_rng(1)).tolist()
    [2.0, 0.0, 1.0]
    """
    samples = int(np.clip(RECORDS // max(records, 1), FEWEST_SAMPLES, MOST_SAMPLES))
    total = np.zeros(int(sizes.max()) + 1)
    for _ in range(samples):
        counts = another(rng)
        total += np.bincount(counts[counts < len(total)], minlength=len(total))
    return np.asarray(total[sizes] / samples)


def poisson_cells(means: Vector, largest: int, worth: Vector | None = None) -> Vector:
    """The expected number of cells with 1, 2, ..., ``largest`` records.

    Parameters
    ----------
    worth
        How many cells each stands for; 1 by default.

    Examples
    --------
    >>> poisson_cells(np.array([1.0, 1.0]), 2).round(4).tolist()
    [0.7358, 0.3679]
    >>> poisson_cells(np.array([1.0]), 2, np.array([2.0])).round(4).tolist()
    [0.7358, 0.3679]
    """
    there = means > 0
    mean, each = means[there], None if worth is None else worth[there]
    probability = mean * np.exp(-mean)
    expected = np.zeros(largest)
    for count in range(1, largest + 1):
        expected[count - 1] = probability.sum() if each is None else each @ probability
        # A cell may be too large to have few records, never too small to have one more than it could have had.
        alive = (probability > NEVER) | (mean > count)
        mean, probability = mean[alive], probability[alive] * mean[alive] / (count + 1)
        each = None if each is None else each[alive]
    return expected


def redrawn_counts(sampler: GibbsSampler[State], sample: Sample, state: State, rng: Generator) -> IntVector:
    """The counts of the cells of as many new records as the state has, by a sampler of records."""
    return ContingencyTable.from_codes(sample.table.keys, sampler.redraw(state, rng)).counts
