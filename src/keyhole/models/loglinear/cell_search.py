"""The search for the cells that a fit visits: depth-first over the keys, in an order that prunes early.

A partial cell may lead to no cell at all, and nobody knows beforehand how many do. So the walk is taken in slices,
between which it can be interrupted, and is given up after a number of steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, Mask
from keyhole.errors import FitFailed
from keyhole.inference.formula import Generators
from keyhole.models.loglinear import _kernels as kernels
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent
from keyhole.table.structural_zeros import StructuralZeros

LayerArrays = tuple[NDArray[np.unsignedinteger], NDArray[np.int32], NDArray[np.unsignedinteger]]
"""The codes above, the numbers of nodes and the own codes of a layer, as in `cells.CellLayer`."""

MOST_STEPS = 500_000_000
"""Partial cells after which a search is given up: twice those of any tree that fits into 6 GB, so that most led
nowhere. A minute or two."""

SLICE = 1 << 26
"""Levels and words of levels that the walk may look at before Python has its turn: about a tenth of a second."""


def code_kind(sizes: Sequence[int] | IntVector) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that tells the levels of every key apart.

    Examples
    --------
    >>> [str(code_kind((2, size))) for size in (256, 257, 65_536, 65_537)]
    ['uint8', 'uint16', 'uint16', 'uint32']
    """
    return np.min_scalar_type(max(1, *sizes) - 1)


def bytes_of(width: Sequence[int] | IntVector, kind: np.dtype[np.unsignedinteger]) -> int:
    """What a tree with so many nodes in each layer takes together with its fit, as `cells` says."""
    above = sum((kind.itemsize * (d + 1) + 12) * int(nodes) for d, nodes in enumerate(width[:-1]))
    return above + (kind.itemsize + 8) * int(width[-1])


def pruning_order(codes: Codes, sizes: Sequence[int], generators: Generators) -> tuple[int, ...]:
    r"""An order of the keys in which the tree has few nodes above its cells.

    If pairs of levels were seen together independently, a set S of keys would have about

    .. math:: \prod_{j \in S} L_j \prod_{i, j \in S} s_{ij}

    partial cells, with s the share of pairs of levels that were seen together, 1 for two keys in no common
    generator. Keys are added one at a time where this grows least, from every possible first key, and the order
    with the smallest sum over its layers is taken. The key that branches most comes last, where a cell costs
    least.
    """
    J, alone = len(sizes), np.log(np.maximum(sizes, 1))
    growth = np.zeros((J, J))
    for i in range(J):
        for j in range(i):
            if any(i in generator and j in generator for generator in generators):
                seen = np.zeros((sizes[i], sizes[j]), dtype=np.bool_)
                seen[codes[:, i], codes[:, j]] = True
                growth[i, j] = growth[j, i] = np.log(seen.mean())
    best: tuple[float, tuple[int, ...]] = (np.inf, ())
    for first in range(J):
        order, size, cost = [first], float(alone[first]), 0.0
        grown = alone.copy()
        while len(order) < J:
            cost += np.exp(min(size, 600.0))
            grown += growth[order[-1]]
            grown[order[-1]] = np.inf
            order.append(int(grown.argmin()))
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
class Admission:
    """Which levels the structural zeros admit after each node of their diagram, and to which node they lead.

    ``cells`` is the number of cells, of the levels that occur, that they admit.
    """

    admitted: tuple[NDArray[np.uint64], ...]
    children: tuple[IntVector, ...]
    root: int
    cells: int

    @classmethod
    def of(cls, zeros: StructuralZeros | None, order: Sequence[int], levels: Sequence[IntVector]) -> "Admission":
        if zeros is None:
            free = [np.ones((1, len(levels[key])), dtype=np.bool_) for key in order]
            nodes = tuple(np.zeros(mask.shape, np.int64) for mask in free)
            return cls(tuple(map(_bits, free)), nodes, 0, prod(map(len, levels)))
        diagram = zeros.diagram_in(order)
        admitted: list[NDArray[np.uint64]] = []
        children: list[IntVector] = []
        below = np.array([0, 1], dtype=object)  # cells below each node, in whole numbers of any size
        for layer in reversed(diagram.layers):
            group = layer.group[levels[layer.key]]
            child = layer.child[:, group].astype(np.int64)
            admitted.append(_bits(np.asarray(below > 0)[child]))
            children.append(child)
            below = below[layer.child] @ np.bincount(group, minlength=layer.groups).astype(object)
        return cls(tuple(admitted[::-1]), tuple(children[::-1]), diagram.root, int(below[diagram.root]))


@dataclass(frozen=True, eq=False)
class CellSearch:
    """What the compiled walk needs to know, in flat arrays.

    ``known`` is the number of cells where no margin has an empty entry; None where they must be counted.
    """

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
    known: int | None

    @classmethod
    def of(
        cls,
        codes: Codes,
        sizes: Sequence[int],
        order: Sequence[int],
        generators: Generators,
        admission: Admission,
    ) -> "CellSearch":
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
                if mask.all():
                    continue
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
            None if terms else admission.cells,
        )

    def run(
        self, most_bytes: int, sample: Sample, *, most_steps: int = MOST_STEPS, progress: Progress = silent
    ) -> tuple[tuple[LayerArrays, ...], int]:
        """The layers and the steps that finding them took. Count, then fill: memory is what is needed."""
        kind = code_kind(self.sizes)
        if self.known is not None:
            _refuse_beyond(most_bytes, self.known, bytes_of([self.known], kind), sample)
        nothing = np.empty(0, np.int64)
        for steps, width, ended in self._walk(np.empty(0, kind), nothing, np.empty(0, np.int32), nothing, nothing):
            progress("finding cells", steps, None, f"{width[-1]:,} found")
            _refuse_beyond(most_bytes, int(width[-1]), bytes_of(width, kind), sample, ended=ended)
            if steps >= most_steps and not ended:
                raise FitFailed(
                    f"The search for the cells of the fit was given up after {steps:,} steps with {width[-1]:,} "
                    "found: many combinations of the first keys lead to none, and nobody knows how many are left. "
                    "Leave out keys, recode keys to coarser levels, or use a model with fewer terms."
                )
        J = len(width)
        rows = np.array([*range(1, J), 1])
        codes_at = np.concatenate([[0], np.cumsum(rows * width)])
        branch_at = np.concatenate([[0], np.cumsum([1, *width[:-1]])])
        codes, branch = np.zeros(codes_at[-1], dtype=kind), np.zeros(branch_at[-1], dtype=np.int32)
        for stored, *_ in self._walk(codes, codes_at, branch, branch_at, width):
            progress("storing cells", stored, steps)
        blocks = [codes[codes_at[d] : codes_at[d + 1]].reshape(rows[d], width[d]) for d in range(J)]
        prefixes = [np.empty((0, 1), dtype=kind), *blocks[:-1]]
        layers = tuple((prefixes[d], branch[branch_at[d] : branch_at[d + 1]], blocks[d][-1]) for d in range(J))
        return layers, steps

    def _walk(
        self,
        codes: NDArray[np.unsignedinteger],
        codes_at: IntVector,
        branch: NDArray[np.int32],
        branch_at: IntVector,
        width: IntVector,
    ) -> Iterator[tuple[int, IntVector, bool]]:
        """After each slice the steps and the nodes of each layer so far, and whether it was the last."""
        J, words = len(self.sizes), (max(1, int(self.sizes.max())) + 63) // 64
        a_slice = max(1, SLICE // (words * (64 + int(np.diff(self.seen_first).max()))))
        code, node, nodes = np.full(J, -1), np.full(J + 1, self.root), np.zeros(J, np.int64)
        left, at, steps = np.zeros((J, words), np.uint64), np.zeros(2, np.int64), 0
        while at[0] >= 0:
            steps += kernels.walk(
                self.sizes, self.seen_first, self.seen, self.terms, self.strides, self.open_at, self.admitted,
                self.child_at, self.child, codes, codes_at, branch, branch_at, width,
                code, node, left, nodes, at, a_slice,
            )  # fmt: skip
            yield steps, nodes, bool(at[0] < 0)


def _refuse_beyond(most_bytes: int, cells: int, needed: int, sample: Sample, *, ended: bool = True) -> None:
    """Make sure that the cells and what they need, known in the end or found so far, fit into memory."""
    if needed > most_bytes:
        more = "" if ended else "more than "
        raise FitFailed(
            f"The fit would visit {more}{cells:,} of the {sample.admissible_cells:,} cells and take "
            f"at least {needed / 1e9:,.1f} GB, over its {most_bytes / 1e9:,.1f} GB. "
            "Recode keys with many levels, leave out keys, or use a model with fewer terms."
        )


def _starts(arrays: Sequence[NDArray[np.generic]]) -> IntVector:
    """Where each array begins when they are joined."""
    return np.concatenate([[0], np.cumsum([array.size for array in arrays])]).astype(np.int64)
