"""Slow and obvious versions of everything compiled, over whole tables."""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.inference.formula import Generators
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import zero_rules_from

LEVELS = (3, 4, 2, 3)

RULES = [{"K0": "0", "K1": ["1", "2"]}, {"K1": "3", "K2": "1", "K3": {"not": ["0"]}}]

MODELS: dict[str, Generators] = {
    "independence": ((0,), (1,), (2,), (3,)),
    "two-way": tuple(combinations(range(4), 2)),
    "three-way": tuple(combinations(range(4), 3)),
    "mixed": ((0, 1, 3), (1, 2), (2, 3)),
    "saturated": ((0, 1, 2, 3),),
}


def keys_of(levels: Sequence[int]) -> tuple[KeyVariable, ...]:
    return tuple(KeyVariable(f"K{j}", tuple(map(str, range(size)))) for j, size in enumerate(levels))


def dependent_codes(size: int, levels: Sequence[int], rng: Generator, strength: float = 0.6) -> IntVector:
    """People of a few latent classes."""
    classes = rng.integers(0, 3, size)
    columns = [
        (rng.dirichlet(np.full(count, strength), 3)[classes].cumsum(axis=1) < rng.random((size, 1))).sum(axis=1)
        for count in levels
    ]
    return np.minimum(np.stack(columns, axis=1), np.array(levels) - 1).astype(np.int64)


def some_sample(
    size: int = 120, levels: Sequence[int] = LEVELS, seed: int = 1, *, zeros: bool = False, strength: float = 0.6
) -> Sample:
    rng = np.random.default_rng(seed)
    codes = dependent_codes(4 * size, levels, rng, strength)
    rules = StructuralZeros(keys_of(levels), zero_rules_from(RULES)) if zeros else None
    if rules is not None:
        codes = codes[~rules.contains(codes)]
    return Sample(ContingencyTable.from_codes(keys_of(levels), codes[:size]), 50 * size, rules)


def dense(sample: Sample) -> NDArray[np.int64]:
    """The whole table of counts."""
    counts = np.zeros(sample.table.levels, dtype=np.int64)
    counts[tuple(sample.table.cells.T.astype(np.int64))] = sample.table.counts
    return counts


def margin_of(values: Vector, generator: Sequence[int]) -> Vector:
    others = tuple(j for j in range(values.ndim) if j not in generator)
    return np.asarray(values.sum(others, keepdims=True))


def active_cells(sample: Sample, generators: Generators, *, prune: bool = True) -> set[tuple[int, ...]]:
    """Every cell of the whole table, looked at one by one, in codes of the table."""
    counts = dense(sample)
    margins = [np.broadcast_to(margin_of(counts, generator), counts.shape) for generator in generators]
    occurring = [np.unique(column).tolist() for column in sample.table.cells.T]
    found = set()
    for cell in product(*occurring):
        if sample.zeros is not None and sample.zeros.contains(np.array([cell]))[0]:
            continue
        if not prune or all(margin[cell] > 0 for margin in margins):
            found.add(cell)
    return found


def dense_fit(sample: Sample, generators: Generators, counts: Vector | None = None, passes: int = 500) -> Vector:
    """Proportional fitting on the whole table, 0/0 taken as 0, structural zeros left out."""
    wanted = dense(sample).astype(np.float64) if counts is None else counts
    fitted = np.ones(wanted.shape)
    if sample.zeros is not None:
        cells = np.argwhere(fitted)
        fitted[tuple(cells[sample.zeros.contains(cells)].T)] = 0.0
    for _ in range(passes):
        for generator in generators:
            now, target = margin_of(fitted, generator), margin_of(wanted, generator)
            fitted = fitted * np.divide(target, now, out=np.zeros_like(now), where=now > 0)
    return fitted


def design_matrix(codes: Codes, sizes: Sequence[int], generators: Generators) -> Vector:
    """All indicators of cells given as rows of codes, generator after generator."""
    blocks = []
    for generator in generators:
        shape = tuple(sizes[key] for key in generator)
        at = np.ravel_multi_index(tuple(codes[:, list(generator)].T.astype(np.int64)), shape)
        blocks.append(np.eye(int(np.prod(shape)))[at])
    return np.concatenate(blocks, axis=1)
