"""One factor p(x_j | earlier keys): its contexts, the levels that follow them, and the blocks of its logit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from keyhole.arrays import IntVector, Mask, Vector
from keyhole.models.sequential.admission import Admission
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import Order

UNSEEN = -1
"""The row of a combination that no record has: it adds nothing to the linear predictor."""


@dataclass(frozen=True, eq=False)
class Block:
    """A set of earlier keys whose joint levels each have a row of coefficients.

    Attributes
    ----------
    keys
        No key for the intercept, one for a two-way term, two for a three-way term.
    sizes
        The number of levels of those keys.
    combinations
        The packed joint levels that occur, in rising order; a row each.
    """

    keys: tuple[int, ...]
    sizes: tuple[int, ...]
    combinations: IntVector

    @classmethod
    def of(cls, keys: tuple[int, ...], sizes: Sequence[int], contexts: IntVector) -> "Block":
        block = cls(keys, tuple(sizes[key] for key in keys), np.zeros(0, dtype=np.int64))
        return replace(block, combinations=np.unique(block.pack(contexts)))

    @property
    def rows(self) -> int:
        return len(self.combinations)

    def pack(self, cells: IntVector) -> IntVector:
        packed = np.zeros(len(cells), dtype=np.int64)
        for key, size in zip(self.keys, self.sizes, strict=True):
            packed = packed * size + cells[:, key]
        return packed

    def row_of(self, cells: IntVector) -> IntVector:
        """The row of each cell, counted from this block's first, or `UNSEEN`."""
        packed = self.pack(cells)
        place = np.minimum(np.searchsorted(self.combinations, packed), self.rows - 1)
        return np.where(self.combinations[place] == packed, place, UNSEEN)


@dataclass(frozen=True, eq=False)
class Conditional:
    """The data of one multinomial logit, gathered by context: cells that agree on all earlier keys.

    Attributes
    ----------
    key
        The key whose level is explained.
    position
        Its place in the order.
    earlier
        The keys before it.
    levels
        Its number of levels.
    blocks
        The terms of the linear predictor; the first is the intercept.
    contexts
        One cell of each context; only its earlier keys matter.
    node, mask
        The node of each context in the walk of the structural zeros, and the levels each node admits.
    start, level, weight
        Entries, sorted by context: those of context i are ``start[i]:start[i + 1]``.
    entry
        The entry of each occupied cell of the sample.
    """

    key: int
    position: int
    earlier: Order
    levels: int
    blocks: tuple[Block, ...]
    contexts: IntVector
    node: NDArray[np.int32]
    mask: Mask
    start: IntVector
    level: NDArray[np.int32]
    weight: Vector
    entry: IntVector

    @cached_property
    def offsets(self) -> IntVector:
        """Where the rows of each block start."""
        return np.concatenate([[0], np.cumsum([block.rows for block in self.blocks])]).astype(np.int64)

    @property
    def rows(self) -> int:
        return int(self.offsets[-1])

    @property
    def parameters(self) -> int:
        """The number of free coefficients: each row sums to zero over the levels."""
        return self.rows * (self.levels - 1)

    @cached_property
    def feature(self) -> NDArray[np.int32]:
        """The row of each block in each context."""
        return self.features_of(self.contexts)

    def features_of(self, cells: IntVector) -> NDArray[np.int32]:
        """The rows that cells use, combinations that never occur pointing behind the last row."""
        found = np.empty((len(cells), len(self.blocks)), dtype=np.int32)
        for b, block in enumerate(self.blocks):
            row = block.row_of(cells)
            found[:, b] = np.where(row == UNSEEN, self.rows, row + self.offsets[b])
        return found

    @cached_property
    def records(self) -> Vector:
        """The weight of each context."""
        return np.add.reduceat(self.weight, self.start[:-1])

    @cached_property
    def context(self) -> IntVector:
        """The context of each entry."""
        return np.repeat(np.arange(len(self.contexts)), np.diff(self.start))

    @cached_property
    def contrast(self) -> Vector:
        """Orthonormal contrasts of the levels, (L, L - 1): a ridge on them is blind to the levels' labels."""
        return np.ascontiguousarray(helmert(self.levels).T)

    @property
    def layout(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Mask]:
        """What the kernels need to know of the contexts."""
        return self.feature, self.node, self.mask

    @property
    def entries(self) -> tuple[IntVector, NDArray[np.int32], Vector]:
        """What the kernels need to know of the records."""
        return self.start, self.level, self.weight

    def with_pairs(self, pairs: Sequence[tuple[int, int]], sizes: Sequence[int]) -> "Conditional":
        """The same data with three-way terms added."""
        added = tuple(Block.of(pair, sizes, self.contexts) for pair in pairs)
        return replace(self, blocks=(*self.blocks, *added))


def conditionals(observed: Observed, order: Order, admission: Admission) -> Iterator[Conditional]:
    """The factors of the joint law in this order, with all two-way terms and no three-way term."""
    cells = observed.cells
    prefix = np.zeros(len(cells), dtype=np.int64)
    walk = np.full(len(cells), admission.root, dtype=np.int64)
    for position, key in enumerate(order):
        size, earlier = observed.sizes[key], order[:position]
        _, first = np.unique(prefix, return_index=True)
        contexts = cells[first]
        keyed = prefix * size + cells[:, key]
        found, entry = np.unique(keyed, return_inverse=True)
        blocks = [Block.of((), (), contexts[:1])]
        blocks += [Block.of((other,), observed.sizes, contexts) for other in earlier]
        yield Conditional(
            key=key,
            position=position,
            earlier=earlier,
            levels=size,
            blocks=tuple(blocks),
            contexts=contexts,
            node=walk[first].astype(np.int32),
            mask=admission.masks[position],
            start=np.searchsorted(found // size, np.arange(len(contexts) + 1)).astype(np.int64),
            level=(found % size).astype(np.int32),
            weight=np.bincount(entry, observed.records).astype(np.float64),
            entry=entry.astype(np.int64),
        )
        walk = admission.children[position][walk, cells[:, key]]
        prefix = entry.astype(np.int64)
