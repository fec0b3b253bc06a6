"""tau1 and tau2 when the whole population is known."""

from dataclasses import dataclass

from keyhole.arrays import IntVector
from keyhole.errors import InvalidPopulation
from keyhole.table.contingency import ContingencyTable


@dataclass(frozen=True, slots=True)
class Truth:
    """The true risk of a sample, and the population count of each of its unique cells."""

    tau1: float
    tau2: float
    population_counts: IntVector


def known_truth(sample: ContingencyTable, population: ContingencyTable) -> Truth:
    """The true tau1 and tau2 of a sample drawn from a population tabulated by the same keys.

    Examples
    --------
    >>> import numpy as np
    >>> from keyhole.keys.variable import KeyVariable
    >>> keys = (KeyVariable("SEX", ("f", "m")), KeyVariable("AGE", ("young", "old")))
    >>> population = ContingencyTable.from_codes(keys, np.array([[0, 0], [0, 0], [1, 0], [1, 1], [1, 1]]))
    >>> sample = ContingencyTable.from_codes(keys, np.array([[0, 0], [1, 0], [1, 1], [1, 1]]))
    >>> truth = known_truth(sample, population)
    >>> truth.tau1, truth.tau2, truth.population_counts.tolist()
    (1.0, 1.5, [2, 1])
    """
    if sample.keys != population.keys:
        raise InvalidPopulation("The sample and the population are not tabulated by the same keys and levels.")
    place = population.find(sample.cells)
    absent = int((place < 0).sum())
    if absent or (population.counts[place] < sample.counts).any():
        raise InvalidPopulation("The sample was not drawn from this population: it has more people in some cells.")
    unique = population.counts[place[sample.uniques]]
    return Truth(float((unique == 1).sum()), float((1.0 / unique).sum()), unique)
