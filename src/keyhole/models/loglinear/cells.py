r"""The cells that a log-linear fit visits: those whose sufficient margins are all occupied.

A cell with an empty sufficient margin is fitted as zero (extended maximum likelihood), and nobody can be in a
structural zero, so neither is ever stored. What remains is found depth-first over the keys. A partial cell is
dropped as soon as the keys read so far of some generator were never seen together, or as soon as no admissible
cell begins like it.

The cells stay what the search makes of them: the leaves of a tree with one layer per key. Of a cell only the
code of the last key is stored, the codes of the other keys once for all cells that share them. Memory is

    b bytes a cell and, for each node d keys deep above the cells, b d + 4 bytes,

with b = 1, 2 or 4 where the key with the most levels has up to 256, up to 65,536 or more of them that occur. The
places of the occupied cells take 8 bytes each, and a fit adds 8 bytes per node and cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, read_only
from keyhole.errors import FitFailed, InvalidRules
from keyhole.inference.formula import Generators
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear.cell_search import MOST_STEPS, Admission, CellSearch, pruning_order
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

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

    def __post_init__(self) -> None:
        if lost := np.count_nonzero(self.occupied < 0):
            raise RuntimeError(
                f"{lost:,} of the {len(self.occupied):,} occupied cells are not among the cells of the fit."
            )

    @classmethod
    def of(
        cls,
        sample: Sample,
        generators: Generators,
        *,
        prune: bool = True,
        most_bytes: int = MOST_BYTES,
        most_steps: int = MOST_STEPS,
        progress: Progress = silent,
    ) -> "Cells":
        """The cells of a sample that a model with these generators visits.

        Parameters
        ----------
        prune
            Leave out cells with an empty sufficient margin. If not, all admissible cells of the levels that occur
            are visited, as penalised models need.
        most_bytes
            Memory that the cells and their fit may take.
        most_steps
            Partial cells after which the search is given up.

        Raises
        ------
        FitFailed
            There are too many cells, or too many combinations that lead to none; says how many.
        """
        table = sample.table
        codes, found = table.dense()
        levels = tuple(map(read_only, found))
        sizes = tuple(map(len, levels))
        restricting = generators if prune else ()
        refuse_large_margins(sample, sizes, restricting)
        order = pruning_order(codes, sizes, restricting)
        try:
            admission = Admission.of(sample.zeros, order, levels)
        except InvalidRules:
            # Too many ways to combine in this order; there is one in which they are few.
            assert sample.zeros is not None
            order = tuple(layer.key for layer in sample.zeros.small_diagram.layers)
            admission = Admission.of(sample.zeros, order, levels)
        search = CellSearch.of(codes, sizes, order, restricting, admission)
        found_layers, steps = search.run(most_bytes, sample, most_steps=most_steps, progress=progress)
        layers = tuple(CellLayer(*arrays) for arrays in found_layers)
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
