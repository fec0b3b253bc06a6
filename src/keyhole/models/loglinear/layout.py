"""Where the entries of margins are for the nodes of the tree of cells, and the margins of values of the cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from keyhole.arrays import IntVector, Vector
from keyhole.inference.formula import Generators
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear.cells import Cells


@dataclass(frozen=True, eq=False, slots=True)
class Margin:
    """One sufficient margin, laid out in the order in which the layers of the tree read its keys.

    Attributes
    ----------
    generator
        Its keys, in the order of the table.
    depth
        The layer of the last of them to be read.
    rows, strides
        The layers of the others, and what a step of each adds to the place of an entry.
    shape, entries
        The number of levels of each key, in the order in which they are read, and their product.
    """

    generator: tuple[int, ...]
    depth: int
    rows: IntVector
    strides: IntVector
    shape: tuple[int, ...]
    entries: int

    @classmethod
    def of(cls, generator: tuple[int, ...], cells: Cells) -> "Margin":
        layers = sorted(cells.order.index(key) for key in generator)
        shape = tuple(cells.sizes[cells.order[d]] for d in layers)
        strides = np.array([prod(shape[i + 1 :]) for i in range(len(shape) - 1)], dtype=np.int64)
        return cls(generator, layers[-1], np.array(layers[:-1], dtype=np.int64), strides, shape, prod(shape))

    def in_table_order(self, values: Vector, order: Sequence[int]) -> Vector:
        """The entries with one axis per key of the generator, in the order of the table."""
        read = [key for key in order if key in self.generator]
        return np.ascontiguousarray(values.reshape(self.shape).transpose(np.argsort(read)))


@dataclass(frozen=True, eq=False)
class Layout:
    """The entries of some margins, one margin after the other, those of the deepest layer first."""

    cells: Cells
    generators: Generators

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        found = [Margin.of(generator, self.cells) for generator in self.generators]
        return tuple(sorted(found, key=lambda margin: -margin.depth))

    @cached_property
    def begins(self) -> IntVector:
        """Where each margin begins, and the number of entries."""
        return np.cumsum([0, *(margin.entries for margin in self.margins)])

    @property
    def parameters(self) -> int:
        return int(self.begins[-1])

    @cached_property
    def by_layer(self) -> tuple[range, ...]:
        """The margins that end in each layer."""
        depth = [margin.depth for margin in self.margins]
        return tuple(
            range(sum(other > d for other in depth), sum(other >= d for other in depth))
            for d in range(len(self.cells.layers))
        )

    @cached_property
    def flat(self) -> tuple[IntVector, IntVector, IntVector, IntVector]:
        """Where the rows of each margin begin, the rows, their strides, and the layer where each margin ends."""
        none = np.empty(0, np.int64)
        return (
            np.cumsum([0, *(len(margin.rows) for margin in self.margins)]),
            np.concatenate([none, *(margin.rows for margin in self.margins)]),
            np.concatenate([none, *(margin.strides for margin in self.margins)]),
            np.array([margin.depth for margin in self.margins], dtype=np.int64),
        )

    def entries_of(self, places: IntVector) -> IntVector:
        """The entries that some cells are counted in, one row per cell and one column per margin."""
        codes = self.cells.codes_at(places)[:, list(self.cells.order)].astype(np.int64)
        found = np.empty((len(places), len(self.margins)), dtype=np.int64)
        for k, margin in enumerate(self.margins):
            found[:, k] = self.begins[k] + codes[:, margin.rows] @ margin.strides + codes[:, margin.depth]
        return found

    def flat_of(self, here: range) -> tuple[IntVector, IntVector, IntVector, IntVector]:
        """Of some margins: where the rows of each begin, all rows, their strides, and where the entries begin."""
        first, rows, strides, _ = self.flat
        return first[here.start : here.stop + 1], rows, strides, self.begins[here.start : here.stop]

    def margins_of(self, fitted: Vector) -> Vector:
        """X'm: the margins of fitted means."""
        found = np.zeros(self.parameters)
        value = fitted
        for layer, here in zip(reversed(self.cells.layers), reversed(self.by_layer), strict=True):
            if here:
                kernels.sum_margins(layer.prefix, layer.branch, layer.own, value, *self.flat_of(here), found)
            above = np.empty(len(layer.branch))
            kernels.lift(layer.branch, value, above)
            value = above
        return found
