"""The search for the cells that a fit visits: depth-first over the keys, in an order that prunes early."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, Mask
from keyhole.errors import FitFailed
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear.formula import Generators
from keyhole.population.sample import Sample
from keyhole.table.structural_zeros import StructuralZeros

LayerArrays = tuple[NDArray[np.unsignedinteger], NDArray[np.int32], NDArray[np.unsignedinteger]]
"""The codes above, the numbers of nodes and the own codes of a layer, as in `cells.CellLayer`."""


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
class Admission:
    """Which levels the structural zeros admit after each node of their diagram, and to which node they lead."""

    admitted: tuple[NDArray[np.uint64], ...]
    children: tuple[IntVector, ...]
    root: int

    @classmethod
    def of(cls, zeros: StructuralZeros | None, order: Sequence[int], levels: Sequence[IntVector]) -> "Admission":
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
class CellSearch:
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

    def run(self, most_bytes: int, sample: Sample) -> tuple[tuple[LayerArrays, ...], int]:
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
        layers = tuple((prefixes[d], branch[branch_at[d] : branch_at[d + 1]], blocks[d][-1]) for d in range(J))
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
