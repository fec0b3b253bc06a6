"""The true risk against counting people one by one."""

from collections import Counter

import numpy as np
import pytest

from keyhole.errors import InvalidPopulation
from keyhole.population.draw import simple_random_sample
from keyhole.risk.truth import known_truth
from tests.risk.samples import random_sample


def test_truth_is_what_counting_people_gives() -> None:
    population = random_sample(records=3000, population_size=3000).table
    sample = simple_random_sample(population, 200, rng=np.random.default_rng(2)).table
    people = Counter(map(tuple, np.repeat(population.cells, population.counts, axis=0)))
    unique = [people[tuple(cell)] for cell in sample.cells[sample.counts == 1]]
    truth = known_truth(sample, population)
    assert truth.tau1 == sum(count == 1 for count in unique)
    assert truth.tau2 == pytest.approx(sum(1 / count for count in unique))


def test_a_census_knows_everyone() -> None:
    population = random_sample(records=3000, population_size=3000).table
    truth = known_truth(population, population)
    assert truth.tau1 == truth.tau2 == len(population.uniques)


def test_a_sample_of_another_population_is_refused() -> None:
    population, stranger = random_sample(100, 100, seed=1).table, random_sample(100, 100, seed=2).table
    with pytest.raises(InvalidPopulation, match="not drawn from this population"):
        known_truth(stranger, population)
