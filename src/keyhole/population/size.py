"""How many people the sample stands for: told, or worked out from a sampling fraction or from weights."""

from keyhole.errors import InvalidPopulation
from keyhole.table.contingency import ContingencyTable

LARGEST = 10**12
"""More people than have ever lived."""

SCALED_TO_SAMPLE = 0.001
"""Weights that differ and add up to the sample size, within this relative distance, have been rescaled."""


def population_size(table: ContingencyTable, *, size: int | None = None, fraction: float | None = None) -> int:
    """N, from exactly one of: its size, the sampling fraction n/N, or the weights of the table.

    Examples
    --------
    >>> import numpy as np
    >>> from keyhole.keys.variable import KeyVariable
    >>> table = ContingencyTable.from_codes((KeyVariable("SEX", ("f", "m")),), np.array([[0], [1], [1]]))
    >>> population_size(table, fraction=0.05)
    60
    """
    told = (("a population size", size), ("a sampling fraction", fraction))
    given = [name for name, value in told if value is not None]
    if table.weights is not None:
        given.append("weights")
    if len(given) != 1:
        raise InvalidPopulation(
            "Give exactly one of the population size (--population-size), the sampling fraction "
            f"(--sampling-fraction) and the weights (--weights); found {' and '.join(given) or 'none of them'}."
        )
    if size is not None:
        return at_least_the_sample(_countable(size), table.records)
    if fraction is not None:
        if not 0 < fraction <= 1:
            raise InvalidPopulation(f"The sampling fraction must be above 0 and at most 1; found {fraction:g}.")
        return _countable(table.records / fraction)
    assert table.weights is not None
    total = float(table.weights.sum())
    census = bool((table.weights == table.counts).all())
    if total < table.records * (1 + SCALED_TO_SAMPLE) and not census:
        raise InvalidPopulation(
            f"The weights add up to {total:,.0f} for {table.records:,} records. A weight is the number of people "
            "a record stands for, itself included; weights scaled to add up to the sample size cannot be used."
        )
    return _countable(total)


def _countable(people: float) -> int:
    if not people <= LARGEST:
        raise InvalidPopulation(f"A population of more than {LARGEST:,} people cannot be right.")
    return round(people)


def at_least_the_sample(size: int, records: int) -> int:
    """``size``, unless it is smaller than the number of sampled records."""
    if size < records:
        raise InvalidPopulation(
            f"The population ({size:,} people) is smaller than the sample ({records:,} records). "
            "Give the size of the population that the sample was drawn from."
        )
    return size
