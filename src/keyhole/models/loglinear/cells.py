r"""The cells that a log-linear fit visits: those whose sufficient margins are all occupied.

A cell with an empty sufficient margin is fitted as zero (extended maximum likelihood), and nobody can be in a
structural zero, so neither is ever stored. What remains is found depth-first over the keys. A partial cell is
dropped as soon as the keys read so far of some generator were never seen together, or as soon as no admissible
cell begins like it.

The cells stay what the search makes of them: the leaves of a tree with one layer per key. Of a cell only the
code of the last key is stored, the codes of the other keys once for all cells that share them. Memory is

    1 byte a cell and, for each node d keys deep above the cells, d + 4 bytes (2 and 2 d + 4 beyond 256 levels),

and a fit adds 8 bytes per node and cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, Mask, read_only
from keyhole.errors import FitFailed, InvalidRules
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear.formula import Generators
from keyhole.population.sample import Sample
from keyhole.table.structural_zeros import StructuralZeros

MOST_BYTES = 6_000_000_000
"""What the cells and their fit may take together."""

LARGEST_MARGIN = 1 << 26
"""Entries of the margin of one generator, empty ones included, beyond which it is not tabulated."""


@dataclass(frozen=True, eq=False, slots=True)
class CellLayer:
    """The nodes of one key: partial cells, in lexicographic order.

    Attributes
    ----------
    prefix
        One row per key read before, one column per node of the layer above.
    branch
        The number of nodes of this layer under each node of the layer above.
    own
        The code of this layer's key in each node.
    """

    prefix: NDArray[np.unsignedinteger]
    branch: NDArray[np.int32]
    own: NDArray[np.unsignedinteger]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells, as a tree over the keys.

    Attributes
    ----------
    sizes
        The number of levels of each key that occur in the sample; codes number these.
    levels
        For each key, the table's code of each of them.
    order
        The positions of the keys in the order in which the layers read them.
    layers
        One layer per key of the order; the nodes of the last one are the cells.
    occupied
        The place of each occupied cell of the sample's table among the cells.
    steps
        How many partial cells the search looked at.
    """

    sizes: tuple[int, ...]
    levels: tuple[IntVector, ...]
    order: tuple[int, ...]
    layers: tuple[CellLayer, ...] = field(repr=False)
    occupied: IntVector = field(repr=False)
    steps: int

    @classmethod
    def of(
        cls, sample: Sample, generators: Generators, *, prune: bool = True, most_bytes: int = MOST_BYTES
    ) -> "Cells":
        """The cells of a sample that a model with these generators visits.

        Parameters
        ----------
        prune
            Leave out cells with an empty sufficient margin. If not, all admissible cells of the levels that occur
            are visited, as penalised models need.
        most_bytes
            Memory that the cells and their fit may take.

        Raises
        ------
        FitFailed
            There are too many cells; says how many.
        """
        table = sample.table
        codes, found = table.dense()
        levels = tuple(map(read_only, found))
        sizes = tuple(map(len, levels))
        restricting = generators if prune else ()
        refuse_large_margins(sample, sizes, restricting)
        order = pruning_order(codes, sizes, restricting)
        try:
            admission = _Admission.of(sample.zeros, order, levels)
        except InvalidRules:
            # Too many ways to combine in this order; there is one in which they are few.
            assert sample.zeros is not None
            order = tuple(layer.key for layer in sample.zeros.small_diagram.layers)
            admission = _Admission.of(sample.zeros, order, levels)
        search = _Search.of(codes, sizes, order, restricting, admission)
        layers, steps = search.run(most_bytes, sample)
        cells = cls(sizes, levels, order, layers, np.empty(0, np.int64), steps)
        occupied = cells.find(codes)
        if (occupied < 0).any() and sample.zeros is not None:
            sample.zeros.check(table)
        return cls(sizes, levels, order, layers, read_only(occupied), steps)

    def __len__(self) -> int:
        return len(self.layers[-1].own)

    @property
    def nodes(self) -> int:
        """The nodes of all layers, the cells included."""
        return sum(len(layer.own) for layer in self.layers)

    @property
    def bytes(self) -> int:
        """The memory that the tree takes."""
        return sum(layer.prefix.nbytes + layer.branch.nbytes for layer in self.layers) + self.layers[-1].own.nbytes

    @property
    def codes(self) -> NDArray[np.unsignedinteger]:
        """All codes, one row per key of the table and one column per cell; made anew, J bytes a cell."""
        last = self.layers[-1]
        spelled = np.empty((len(self.order), len(self)), dtype=last.own.dtype)
        kernels.spell_out(last.branch, last.prefix, spelled[:-1])
        spelled[-1] = last.own
        return spelled[np.argsort(self.order)]

    def codes_at(self, places: IntVector) -> Codes:
        """The codes of some cells, one row per cell and one column per key of the table."""
        last = self.layers[-1]
        parent = np.searchsorted(np.cumsum(last.branch, dtype=np.int64), places, side="right")
        read = np.concatenate([last.prefix[:, parent], last.own[None, places]])
        return read[np.argsort(self.order)].T

    def find(self, codes: Codes) -> IntVector:
        """The place of rows of dense codes among the cells, -1 for a row that is not among them."""
        at = np.zeros(len(codes), dtype=np.int64)
        for key, layer in zip(self.order, self.layers, strict=True):
            start = np.concatenate([[0], np.cumsum(layer.branch, dtype=np.int64)])
            kernels.descend(start, layer.own, codes[:, key].astype(np.int64), at)
        return at


def refuse_large_margins(sample: Sample, sizes: Sequence[int], generators: Generators) -> None:
    """Make sure that the margin of every generator can be tabulated."""
    for generator in generators:
        entries = prod(sizes[key] for key in generator)
        if entries > LARGEST_MARGIN:
            names = "*".join(sample.table.keys[key].name for key in generator)
            raise FitFailed(
                f"The margin of {names} has {entries:,} entries, more than the "
                f"{LARGEST_MARGIN:,} that can be fitted. Use terms of fewer keys."
            )


def pruning_order(codes: Codes, sizes: Sequence[int], generators: Generators) -> tuple[int, ...]:
    r"""An order of the keys in which the tree has few nodes above its cells.

    If pairs of levels were seen together independently, a set S of keys would have about

    .. math:: \prod_{j \in S} L_j \prod_{i, j \in S} s_{ij}

    partial cells, with s the share of pairs of levels that were seen together, 1 for two keys in no common
    generator. Keys are added one at a time where this grows least, from every possible first key, and the order
    with the smallest sum over its layers is taken. The key that branches most comes last, where a cell costs
    least.
    """
    J = len(sizes)
    growth = np.zeros((J, J))
    for i in range(J):
        for j in range(i):
            if any(i in generator and j in generator for generator in generators):
                seen = np.zeros((sizes[i], sizes[j]), dtype=np.bool_)
                seen[codes[:, i], codes[:, j]] = True
                growth[i, j] = growth[j, i] = np.log(seen.mean())
    best: tuple[float, tuple[int, ...]] = (np.inf, ())
    for first in range(J):
        order, size, cost = [first], float(np.log(sizes[first])), 0.0
        while len(order) < J:
            cost += np.exp(min(size, 600.0))
            grown = {key: np.log(sizes[key]) + growth[key, order].sum() for key in range(J) if key not in order}
            order.append(min(grown, key=lambda key: (grown[key], key)))
            size += grown[order[-1]]
        if cost < best[0]:
            best = (cost, tuple(order))
    return best[1]


def _bits(mask: Mask) -> NDArray[np.uint64]:
    """Rows of truth values as rows of 64-bit words, level c at bit c."""
    words = (mask.shape[1] + 63) // 64
    padded = np.zeros((len(mask), words * 64), dtype=np.bool_)
    padded[:, : mask.shape[1]] = mask
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64).reshape(len(mask), words)


@dataclass(frozen=True, eq=False)
class _Admission:
    """Which levels the structural zeros admit after each node of their diagram, and to which node they lead."""

    admitted: tuple[NDArray[np.uint64], ...]
    children: tuple[IntVector, ...]
    root: int

    @classmethod
    def of(cls, zeros: StructuralZeros | None, order: Sequence[int], levels: Sequence[IntVector]) -> "_Admission":
        if zeros is None:
            free = [np.ones((1, len(levels[key])), dtype=np.bool_) for key in order]
            return cls(tuple(map(_bits, free)), tuple(np.zeros(mask.shape, np.int64) for mask in free), 0)
        diagram = zeros.diagram_in(order)
        admitted: list[NDArray[np.uint64]] = []
        children: list[IntVector] = []
        alive = np.array([False, True])
        for layer in reversed(diagram.layers):
            child = layer.child[:, layer.group[levels[layer.key]]].astype(np.int64)
            may_follow = alive[child]
            admitted.append(_bits(may_follow))
            children.append(child)
            alive = np.asarray(may_follow.any(axis=1))
        return cls(tuple(admitted[::-1]), tuple(children[::-1]), diagram.root)


@dataclass(frozen=True, eq=False)
class _Search:
    """What the compiled walk needs to know, in flat arrays."""

    sizes: IntVector
    seen_first: IntVector
    seen: NDArray[np.uint64]
    terms: IntVector
    strides: IntVector
    open_at: IntVector
    admitted: NDArray[np.uint64]
    child_at: IntVector
    child: IntVector
    root: int

    @classmethod
    def of(
        cls,
        codes: Codes,
        sizes: Sequence[int],
        order: Sequence[int],
        generators: Generators,
        admission: _Admission,
    ) -> "_Search":
        """The keys of a generator that are read so far begin it, so its beginnings are all there is to test."""
        depth = {key: d for d, key in enumerate(order)}
        read = [sorted(generator, key=depth.__getitem__) for generator in generators]
        beginnings = sorted({tuple(keys[: i + 1]) for keys in read for i in range(1, len(keys))})
        seen, first, words = [np.empty(0, np.uint64)], [0], 0
        terms: list[tuple[int, int, int]] = []
        strides: list[tuple[int, int]] = []
        for last in order:
            for *before, key in (keys for keys in beginnings if keys[-1] == last):
                shape = [sizes[k] for k in before]
                mask = np.zeros((prod(shape), sizes[key]), dtype=np.bool_)
                mask[np.ravel_multi_index(tuple(codes[:, before].T), tuple(shape)), codes[:, key]] = True
                terms.append((len(strides), len(strides) + len(before), words))
                strides += [(depth[k], prod(shape[i + 1 :])) for i, k in enumerate(before)]
                seen.append(_bits(mask).ravel())
                words += len(seen[-1])
            first.append(len(terms))
        return cls(
            np.array([sizes[key] for key in order], dtype=np.int64),
            np.array(first, dtype=np.int64),
            np.concatenate(seen),
            np.array(terms, dtype=np.int64).reshape(-1, 3),
            np.array(strides, dtype=np.int64).reshape(-1, 2),
            _starts(admission.admitted),
            np.concatenate([bits.ravel() for bits in admission.admitted]),
            _starts(admission.children),
            np.concatenate([child.ravel() for child in admission.children]),
            admission.root,
        )

    def run(self, most_bytes: int, sample: Sample) -> tuple[tuple[CellLayer, ...], int]:
        """Count, then fill: memory is what is needed."""
        kind = np.uint8 if self.sizes.max() <= 256 else np.uint16
        a_cell = np.dtype(kind).itemsize + 8
        nothing = np.empty(0, np.int64)
        width, steps = self._walk(most_bytes // a_cell, np.empty(0, kind), nothing, nothing, nothing, nothing)
        above = int(sum((np.dtype(kind).itemsize * (d + 1) + 12) * nodes for d, nodes in enumerate(width[:-1])))
        if width[-1] * a_cell + above > most_bytes:
            stopped = "more than " if width[-1] > most_bytes // a_cell else ""
            raise FitFailed(
                f"The fit would visit {stopped}{width[-1]:,} of the {sample.admissible_cells:,} cells and take "
                f"{(width[-1] * a_cell + above) / 1e9:.1f} GB, over its {most_bytes / 1e9:.1f} GB. "
                "Recode keys with many levels, leave out keys, or use a model with fewer terms."
            )
        J = len(width)
        rows = np.array([*range(1, J), 1])
        codes_at = np.concatenate([[0], np.cumsum(rows * width)])
        parents = np.concatenate([[1], width[:-1]])
        branch_at = np.concatenate([[0], np.cumsum(parents)])
        codes = np.zeros(codes_at[-1], dtype=kind)
        branch = np.zeros(branch_at[-1], dtype=np.int32)
        self._walk(most_bytes, codes, codes_at, branch, branch_at, width)
        blocks = [codes[codes_at[d] : codes_at[d + 1]].reshape(rows[d], width[d]) for d in range(J)]
        prefixes = [np.empty((0, 1), dtype=kind), *blocks[:-1]]
        layers = tuple(
            CellLayer(prefixes[d], branch[branch_at[d] : branch_at[d + 1]], blocks[d][-1]) for d in range(J)
        )
        return layers, int(steps)

    def _walk(
        self,
        most: int,
        codes: NDArray[np.unsignedinteger],
        codes_at: IntVector,
        branch: NDArray[np.signedinteger],
        branch_at: IntVector,
        width: IntVector,
    ) -> tuple[IntVector, int]:
        branch = branch.astype(np.int32, copy=False)
        found: tuple[IntVector, int] = kernels.walk(
            self.sizes, self.seen_first, self.seen, self.terms, self.strides, self.open_at, self.admitted,
            self.child_at, self.child, self.root, most, codes, codes_at, branch, branch_at, width,
        )  # fmt: skip
        return found


def _starts(arrays: Sequence[NDArray[np.generic]]) -> IntVector:
    """Where each array begins when they are joined."""
    return np.concatenate([[0], np.cumsum([array.size for array in arrays])]).astype(np.int64)
