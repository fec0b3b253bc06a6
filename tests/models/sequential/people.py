"""Made-up people whose keys depend on each other, and the conditionals of their joint law."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.keys.variable import KeyVariable
from keyhole.models.sequential.admission import Admission
from keyhole.models.sequential.conditional import Conditional, conditionals
from keyhole.models.sequential.observed import Observed
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import zero_rules_from

LEVELS = (9, 6, 5, 4, 3, 2)

RULES = [
    {"K0": ["0", "1"], "K1": {"not": ["0", "2"]}},
    {"K2": "1", "K3": ["1", "2"], "K5": "1"},
    {"K1": "3", "K4": "2"},
]
"""Impossible combinations of keys with the levels above."""


def keys_of(levels: Sequence[int]) -> tuple[KeyVariable, ...]:
    return tuple(KeyVariable(f"K{j}", tuple(map(str, range(size)))) for j, size in enumerate(levels))


def zeros_of(levels: Sequence[int] = LEVELS) -> StructuralZeros:
    return StructuralZeros(keys_of(levels), zero_rules_from(RULES))


def dependent_people(
    size: int, levels: Sequence[int] = LEVELS, *, rng: Generator, strength: float = 1.2, traits: int = 3
) -> IntVector:
    """Codes of people whose keys all follow from a few hidden traits, the first levels being the common ones."""
    hidden = rng.standard_normal((size, traits))
    columns = []
    for count in levels:
        liking = strength * hidden @ rng.standard_normal((traits, count)) - 0.8 * np.log1p(np.arange(count))
        columns.append((liking + rng.gumbel(size=(size, count))).argmax(axis=1))
    return np.stack(columns, axis=1).astype(np.int64)


def possible_people(size: int, *, rng: Generator) -> IntVector:
    """People of the usual levels, those in impossible cells left out."""
    codes = dependent_people(2 * size, rng=rng)
    return codes[~zeros_of().contains(codes)][:size]


def sample_of_codes(
    codes: Codes,
    population_size: int,
    levels: Sequence[int] = LEVELS,
    *,
    zeros: StructuralZeros | None = None,
    weights: Vector | None = None,
) -> Sample:
    return Sample(ContingencyTable.from_codes(keys_of(levels), codes, weights=weights), population_size, zeros)


def some_sample(size: int = 600, population_size: int = 12_000, seed: int = 1) -> Sample:
    return sample_of_codes(dependent_people(size, rng=np.random.default_rng(seed)), population_size)


def conditionals_of(
    sample: Sample, order: Sequence[int] | None = None, pairs: Sequence[tuple[int, int]] = ()
) -> list[Conditional]:
    """All factors in this order; the last one gets the three-way terms."""
    observed = Observed.of(sample)
    order = tuple(range(len(observed.sizes))) if order is None else tuple(order)
    found = list(conditionals(observed, order, Admission.of(sample.zeros, order, observed.levels)))
    found[-1] = found[-1].with_pairs(list(pairs), observed.sizes)
    return found
