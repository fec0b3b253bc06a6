"""Samples from a population that is known in full."""

import numpy as np
from numpy.random import Generator

from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable


def simple_random_sample(population: ContingencyTable, size: int, *, rng: Generator) -> Sample:
    """A simple random sample without replacement, drawn cell by cell.

    The counts of such a sample are multivariate hypergeometric given the population's, so people need not be
    listed one by one.

    Examples
    --------
    >>> from keyhole.keys.variable import KeyVariable
    >>> people = ContingencyTable.from_codes((KeyVariable("SEX", ("f", "m")),), np.array([[0], [0], [1], [1]]))
    >>> drawn = simple_random_sample(people, 3, rng=np.random.default_rng(1))
    >>> drawn.sample_size, drawn.population_size
    (3, 4)
    """
    counts = rng.multivariate_hypergeometric(population.counts, size, method="marginals")
    drawn = np.flatnonzero(counts)
    table = ContingencyTable(population.keys, population.cells[drawn], counts[drawn].astype(np.int64))
    return Sample(table, population.records)
