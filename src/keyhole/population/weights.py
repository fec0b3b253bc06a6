r"""What survey weights mean for a model: who counts how much, and who was likely to be drawn.

A record of weight w stands for w people. Models know people by their keys, so what they need of the weights is
their mean given the keys, :math:`\tilde w(x) = E(w \mid x, \text{sampled})`: the sum of :math:`\tilde w` over the
records of a cell estimates its people without the noise of weights that differ between alike records, and, because
records are drawn with probability 1/w,

.. math:: E(1/w \mid x) = 1 \big/ E(w \mid x, \text{sampled}) = 1/\tilde w(x)

is the chance that a person of the cell is in the sample. Unequal weights cost precision: the sample is worth
:math:`n_e = (\sum \tilde w)^2 / \sum \tilde w^2` records (Kish).
"""

from collections.abc import Sequence

import numpy as np

from keyhole.arrays import Codes, Vector
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable

PASSES, TOLERANCE = 200, 1e-9


def mean_weights(table: ContingencyTable) -> Vector | None:
    """The mean weight of a record of each occupied cell given its keys; None without weights.

    Weights that are the same for all records of a cell are a function of the keys and stay as they are. Others
    are smoothed: a product of one factor per key that has, for every level, the sum of weights of its records.
    """
    if table.weights is None:
        return None
    if not weights_differ_within_cells(table):
        return table.weights / table.counts
    codes, _ = table.dense()
    return product_of(weight_factors(table), codes.T)


def weight_factors(table: ContingencyTable) -> tuple[Vector, ...]:
    """Factors of the levels that occur, key by key, whose product has each level's sum of weights.

    They say what a record would weigh in any cell, those that nobody is in included.
    """
    assert table.weights is not None
    codes, levels = table.dense()
    factors = [np.ones(len(found)) for found in levels]
    weight = np.ones(table.occupied)
    wanted = [np.bincount(code, table.weights) for code in codes.T]
    for _ in range(PASSES):
        before = weight
        for key, (code, sums) in enumerate(zip(codes.T, wanted, strict=True)):
            step = sums / np.bincount(code, weight * table.counts)
            factors[key] = factors[key] * step
            weight = weight * step[code]
        if np.abs(weight / before - 1.0).max(initial=0.0) < TOLERANCE:
            break
    return tuple(factors)


def product_of(factors: Sequence[Vector], codes: Codes) -> Vector:
    """The product of the factors of some cells, whose codes are given one row per key."""
    found = np.ones(len(codes[0]))
    for factor, code in zip(factors, codes, strict=True):
        found *= factor[code]
    return found


def weights_differ_within_cells(table: ContingencyTable) -> bool:
    """Whether records of the same cell weigh differently; no where the table does not tell."""
    if table.weights is None or table.squared_weights is None:
        return False
    return bool((table.squared_weights * table.counts > table.weights**2 * (1.0 + 1e-6)).any())


def design_effect(sample: Sample) -> float:
    """n times the sum of squared weights over the square of their sum; 1 without weights or with equal ones."""
    weights, counts = mean_weights(sample.table), sample.table.counts
    if weights is None:
        return 1.0
    return float(counts.sum() * (counts * weights**2).sum() / (counts * weights).sum() ** 2)


def weights_differ(sample: Sample) -> bool:
    """Whether some records stand for more people than others, beyond rounding."""
    return design_effect(sample) > 1.0 + 1e-9


def pseudo_counts(sample: Sample) -> Vector:
    """What each occupied cell counts in a likelihood: its records, or its share of the effective sample size.

    With weights the pseudo-likelihood estimates the law of the population, each cell in proportion to its weights.
    """
    weights, counts = mean_weights(sample.table), sample.table.counts
    if weights is None:
        return counts.astype(np.float64)
    return np.asarray(counts * weights * (sample.sample_size / design_effect(sample) / (counts @ weights)))


def inclusion(sample: Sample) -> Vector:
    """For each sample unique, the chance that a person of its cell is in the sample."""
    return inclusion_by_cell(sample)[sample.table.uniques]


def inclusion_by_cell(sample: Sample) -> Vector:
    """For each occupied cell, the chance that a person of it is in the sample: n/N, or 1/w with weights.

    Weights are scaled to add up to the population; one below 1 stands for nobody but the record itself.
    """
    table, people = sample.table, sample.population_size
    weights = mean_weights(table)
    if weights is None or not sample.unsampled_size:
        return np.full(table.occupied, sample.sample_size / people)
    return np.asarray(1.0 / np.maximum(weights * (people / (table.counts @ weights)), 1.0))
