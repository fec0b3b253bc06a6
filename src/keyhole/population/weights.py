r"""What survey weights mean for a model: who counts how much, and who was likely to be drawn.

A record of weight w stands for w people, so a person of its cell is in the sample with probability 1/w. Unequal
weights cost precision: the sample is worth :math:`n_e = (\sum w)^2 / \sum w^2` records (Kish).
"""

import numpy as np

from keyhole.arrays import Vector
from keyhole.population.sample import Sample


def design_effect(sample: Sample) -> float:
    """n times the sum of squared weights over the square of their sum; 1 without weights or with equal ones.

    Where the squares are not known, records of one cell are taken to weigh alike.
    """
    weights, squares, counts = sample.table.weights, sample.table.squared_weights, sample.table.counts
    if weights is None:
        return 1.0
    if squares is None:
        squares = weights**2 / counts
    return float(counts.sum() * squares.sum() / weights.sum() ** 2)


def pseudo_counts(sample: Sample) -> Vector:
    """What each occupied cell counts in a likelihood: its records, or its share of the effective sample size.

    With weights the pseudo-likelihood estimates the law of the population, each cell in proportion to its weights.
    """
    table = sample.table
    if table.weights is None:
        return table.counts.astype(np.float64)
    return np.asarray(table.weights * (sample.sample_size / design_effect(sample) / table.weights.sum()))


def inclusion(sample: Sample) -> Vector:
    """For each sample unique, the chance that a person of its cell is in the sample: n/N, or 1/w with weights.

    Weights are scaled to add up to the population; one below 1 stands for nobody but the record itself.
    """
    table, people = sample.table, sample.population_size
    if table.weights is None or not sample.unsampled_size:
        return np.full(sample.uniques, sample.sample_size / people)
    scaled = table.weights[table.uniques] * (people / table.weights.sum())
    return np.asarray(1.0 / np.maximum(scaled, 1.0))
