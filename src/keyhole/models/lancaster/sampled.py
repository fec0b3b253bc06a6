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

from keyhole.arrays import IntVector, Vector
from keyhole.models.lancaster.margins import Margins, Subset
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
    components: list[Subset] = margins.subsets(margins.order) or margins.subsets(2)
    each = max(2, cells // (2 * max(len(components), 1)))
    strata: list[tuple[Subset, int]] = [((), each * max(len(components), 1))]
    strata += [(component, each) for component in components]
    size = sum(count for _, count in strata)
    mean, variance = np.zeros((2, 3, len(grid)))
    for component, count in strata:
        first, second = np.zeros((2, 3, len(grid)))
        for drawn in _draw_blocks(margins, component, count, rng):
            law = margins.at(drawn)
            tilt = law.triples if margins.subsets(3) else law.pairs
            values = _values(law.ratio(grid), 1.0 + 0.5 * tilt / max(len(components), 1))
            if zeros is not None:
                table_codes = np.stack([own[codes] for own, codes in zip(levels, drawn.T, strict=True)], axis=1)
                values[:, :, zeros.contains(table_codes)] = 0.0
            first += values.sum(axis=2)
            second += (values**2).sum(axis=2)
        mean += first / size
        variance += count / (count - 1) * np.maximum(second - first**2 / count, 0.0) / size**2
    error = np.sqrt(variance)
    return SampledSums(mean[0], error[0], mean[1], error[1], mean[2], size)


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
