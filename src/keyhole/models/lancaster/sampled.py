r"""Sums over more cells than can be visited, estimated from sampled ones.

Half of the cells are drawn from independence, q. The others take a pair of keys (a triple in a third-order model)
from its margin and the rest from independence, every pair equally often. Together their density is

.. math:: g = q \Bigl\{ \tfrac12 + \tfrac12 \operatorname{mean}_{i<j} r_{ij} \Bigr\}
            = q \Bigl\{ 1 + \tfrac12 \operatorname{mean}_{i<j} (r_{ij} - 1) \Bigr\} \ge q / 2,

with the same sums of interactions as the law itself, so :math:`q (1 + \lambda S) / g` is bounded, at second order
with P pairs by 2 max(1, lambda P), and standard errors can be believed. The components are strata of fixed size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Mask, Vector
from keyhole.inference.other_samples import poisson_cells
from keyhole.models.lancaster.margins import Additive, Margins, Subset
from keyhole.table.structural_zeros import StructuralZeros

CELLS = 1_000_000
"""Cells that are sampled for c, about: its standard error is then near 0.001."""

BLOCK = 1 << 16
"""Cells held at once."""


@dataclass(frozen=True, eq=False)
class SampledSums:
    """Sums over admissible cells for each lambda, and the standard errors of those that c is made of.

    Attributes
    ----------
    positive, negative
        Of p where it is positive, and where it is negative.
    hole
        Of q where p is not positive.
    cells
        The number of cells sampled.
    """

    positive: Vector
    positive_error: Vector
    negative: Vector
    negative_error: Vector
    hole: Vector
    cells: int


def sampled_sums(
    margins: Margins,
    levels: Sequence[IntVector],
    zeros: StructuralZeros | None,
    grid: Vector,
    *,
    cells: int,
    rng: Generator,
) -> SampledSums:
    """The sums on a grid of lambda.

    Parameters
    ----------
    levels
        For each key, the table's code of each level that occurs.
    cells
        How many to sample, about.
    """
    strata = _strata(margins, cells)
    size = sum(count for _, count in strata)
    mean, variance = np.zeros((2, 3, len(grid)))
    for component, count in strata:
        first, second = np.zeros((2, 3, len(grid)))
        for drawn in _draw_blocks(margins, component, count, rng):
            law = margins.at(drawn)
            values = _values(law.ratio(grid), _density(margins, law))
            values[:, :, ~_admissible(drawn, levels, zeros)] = 0.0
            first += values.sum(axis=2)
            second += (values**2).sum(axis=2)
        mean += first / size
        variance += count / (count - 1) * np.maximum(second - first**2 / count, 0.0) / size**2
    error = np.sqrt(variance)
    return SampledSums(mean[0], error[0], mean[1], error[1], mean[2], size)


def sampled_size_index(
    margins: Margins,
    levels: Sequence[IntVector],
    zeros: StructuralZeros | None,
    shrinkage: float,
    c: float,
    records: int,
    largest: int,
    *,
    cells: int,
    rng: Generator,
) -> Vector:
    """The expected number of cells with 1, 2, ... of so many records from the law, each sampled cell worth 1 / g.

    Parameters
    ----------
    c
        The renormaliser at this shrinkage.
    """
    strata = _strata(margins, cells)
    size = sum(count for _, count in strata)
    expected = np.zeros(largest)
    for component, count in strata:
        for drawn in _draw_blocks(margins, component, count, rng):
            law = margins.at(drawn)
            mean = records * np.maximum(law.probability(shrinkage), 0.0) / c
            mean[~_admissible(drawn, levels, zeros)] = 0.0
            worth = 1.0 / (size * np.exp(law.log_independence) * _density(margins, law))
            expected += poisson_cells(mean, largest, worth)
    return expected


def _strata(margins: Margins, cells: int) -> list[tuple[Subset, int]]:
    """The components of the mixture and how many cells each gives: half of all come from independence."""
    components = margins.subsets(margins.order) or margins.subsets(2)
    each = max(2, cells // (2 * max(len(components), 1)))
    return [((), each * max(len(components), 1)), *((component, each) for component in components)]


def _density(margins: Margins, law: Additive) -> Vector:
    """g / q: how much likelier a cell is to be sampled than under independence."""
    components = margins.subsets(margins.order) or margins.subsets(2)
    tilt = law.triples if margins.subsets(3) else law.pairs
    return np.asarray(1.0 + 0.5 * tilt / max(len(components), 1))


def _admissible(drawn: IntVector, levels: Sequence[IntVector], zeros: StructuralZeros | None) -> Mask:
    if zeros is None:
        return np.ones(len(drawn), dtype=np.bool_)
    return ~zeros.contains(np.stack([own[codes] for own, codes in zip(levels, drawn.T, strict=True)], axis=1))


def _values(ratio: Vector, density: Vector) -> Vector:
    """The positive part, the negative part and the hole, each over g / q, for every lambda and cell."""
    return np.stack([np.maximum(ratio, 0.0), np.minimum(ratio, 0.0), (ratio <= 0.0).astype(np.float64)]) / density


def _draw_blocks(margins: Margins, component: Subset, count: int, rng: Generator) -> Iterator[IntVector]:
    """Cells of one component, in blocks."""
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        drawn = np.empty((size, len(margins.sizes)), dtype=np.int64)
        for key, probability in enumerate(margins.probability):
            if key not in component:
                drawn[:, key] = _categories(probability, size, rng)
        if component:
            weights = margins.joint[component]
            together = np.unravel_index(_categories(weights.ravel(), size, rng), weights.shape)
            for key, codes in zip(component, together, strict=True):
                drawn[:, key] = codes
        yield drawn


def _categories(weights: Vector, size: int, rng: Generator) -> IntVector:
    edges = np.cumsum(weights)
    drawn: IntVector = np.searchsorted(edges, rng.random(size) * edges[-1], side="right")
    return np.minimum(drawn, len(weights) - 1)
