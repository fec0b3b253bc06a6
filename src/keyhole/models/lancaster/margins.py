r"""One-, two- and three-way margins of the sample, and the additive law that they determine.

With :math:`W` the weight of all records, :math:`W_i, W_{ij}, W_{ijk}` that of the records that share one, two,
three levels of a cell, and :math:`r_{ij} = W W_{ij} / (W_i W_j)`, :math:`r_{ijk} = W^2 W_{ijk} / (W_i W_j W_k)`,

.. math:: p(\lambda) = q\,(1 + \lambda S), \qquad q = \prod_i W_i / W, \qquad S = \sum_{i<j} d_{ij}
    \; \Bigl[ + \sum_{i<j<k} d_{ijk} \Bigr],

    d_{ij} = r_{ij} - 1, \qquad d_{ijk} = r_{ijk} - 1 - d_{ij} - d_{ik} - d_{jk}.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from keyhole.arrays import IntVector, Vector
from keyhole.errors import FitFailed

Subset = tuple[int, ...]
"""Positions of two or three keys, rising."""

MOST_ENTRIES = 50_000_000
"""Entries of all margins together, 400 MB; the tables of interactions take as much again."""

ROUNDING = 1e-9
"""1 + lambda S as near to zero as this is zero, as with two keys at lambda = 1 wherever nobody is (S = -1)."""

NOTHING = 1e-9
"""A margin less than this share of the weight taken from it is rounding: nobody else was in it."""


@dataclass(frozen=True, slots=True)
class Additive:
    """The parts of the additive law at some cells.

    Attributes
    ----------
    log_independence
        log q.
    pairs, triples
        The sums of r - 1 over all pairs and over all triples of keys.
    interaction
        S.
    """

    log_independence: Vector
    pairs: Vector
    triples: Vector
    interaction: Vector

    def ratio(self, shrinkage: Vector | float) -> Vector:
        """p(lambda) / q = 1 + lambda S, which may be negative and is zero where only rounding says otherwise.

        With several lambda there is one row for each.
        """
        ratio = 1.0 + np.multiply.outer(shrinkage, self.interaction)
        return np.where(np.abs(ratio) <= ROUNDING, 0.0, ratio)

    def probability(self, shrinkage: float) -> Vector:
        """p(lambda), which may be negative."""
        return np.asarray(np.exp(self.log_independence) * self.ratio(shrinkage))


@dataclass(frozen=True, eq=False)
class Margins:
    """Weights by levels of one key and of each pair (and triple) of keys, only levels that occur.

    Attributes
    ----------
    total
        The weight of all records.
    single
        For each key the weight of each level.
    joint
        For each pair (and triple) of keys the weight of each combination of their levels.
    order
        2, or 3 with triples.
    """

    total: float
    single: tuple[Vector, ...]
    joint: Mapping[Subset, Vector]
    order: int

    @classmethod
    def of(cls, cells: IntVector, weight: Vector, sizes: Subset, order: int) -> "Margins":
        """The margins of cells, rows of dense codes, each with a weight."""
        keys = range(len(sizes))
        subsets = [subset for width in range(2, order + 1) for subset in combinations(keys, width)]
        entries = sum(prod(sizes[key] for key in subset) for subset in subsets)
        if entries > MOST_ENTRIES:
            raise FitFailed(
                f"The margins up to order {order} of {len(sizes)} keys have {entries:,} entries, more than "
                f"{MOST_ENTRIES:,}. Recode the key with {max(sizes):,} levels"
                f"{', or use order=2' if order > 2 else ''}."
            )
        single = tuple(_summed(cells[:, key], weight, sizes[key]) for key in keys)
        joint: dict[Subset, Vector] = {}
        for subset in subsets:
            shape = tuple(sizes[key] for key in subset)
            code = np.ravel_multi_index(tuple(cells[:, key] for key in subset), shape)
            joint[subset] = _summed(code, weight, prod(shape)).reshape(shape)
        return cls(float(weight.sum()), single, joint, order)

    @property
    def sizes(self) -> Subset:
        """The number of levels of each key."""
        return tuple(len(weights) for weights in self.single)

    @property
    def cells(self) -> int:
        """The number of combinations of levels that occur, exactly."""
        return prod(self.sizes)

    @cached_property
    def probability(self) -> tuple[Vector, ...]:
        """The one-way relative frequencies."""
        return tuple(weights / weights.sum() for weights in self.single)

    def subsets(self, width: int) -> list[Subset]:
        """All pairs (width 2) or triples (width 3) of keys that the model sees."""
        return [subset for subset in self.joint if len(subset) == width]

    def at(self, cells: IntVector, less: Vector | float = 0.0) -> Additive:
        """The additive law at cells after a weight ``less`` of each one's own records is taken from every margin.

        Every level of a cell must keep some weight.
        """
        total = self.total - less
        share = [(weights[codes] - less) / total for weights, codes in zip(self.single, cells.T, strict=True)]
        log_independence = np.sum(np.log(share), axis=0)
        sums = {2: np.zeros(len(cells)), 3: np.zeros(len(cells))}
        for subset, weights in self.joint.items():
            rest = weights[tuple(cells[:, key] for key in subset)] - less
            rest = np.where(rest > NOTHING * less, rest, 0.0)
            expected = prod((share[key] for key in subset), start=total)
            sums[len(subset)] += rest / expected - 1.0
        pairs, triples = sums[2], sums[3]
        # Each pair is in J - 2 triples: S = pairs + (triples - (J - 2) pairs).
        whole = triples - (len(share) - 3) * pairs if self.subsets(3) else pairs
        return Additive(log_independence, pairs, triples, whole)

    def interaction_tables(self) -> dict[Subset, Vector]:
        """d of every pair and triple, for all combinations of levels."""
        found: dict[Subset, Vector] = {}
        for subset, weights in self.joint.items():
            expected: Vector = np.array(self.total)
            for axis, key in enumerate(subset):
                expected = expected * _along(self.probability[key], axis, len(subset))
            found[subset] = weights / expected - 1.0
        for subset in self.subsets(3):
            for left_out in range(3):
                pair = subset[:left_out] + subset[left_out + 1 :]
                found[subset] = found[subset] - np.expand_dims(found[pair], left_out)
        return found


def _summed(codes: IntVector, weight: Vector, length: int) -> Vector:
    return np.bincount(codes, weight, length).astype(np.float64)


def _along(values: Vector, axis: int, dimensions: int) -> Vector:
    return values.reshape([-1 if place == axis else 1 for place in range(dimensions)])
