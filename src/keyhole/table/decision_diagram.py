r"""Which cells are impossible, as a small machine that reads a cell key by key.

A decision diagram has one layer per key. A cell starts at the root; in each layer the level of that layer's
key decides to which node of the next layer it goes; after the last layer it stands at one of two terminals,
*impossible* or *admissible*. Nodes below which the same cells are impossible are one node, so the diagram
of a few hundred rules has a few dozen nodes, however many cells the table has, and sums over all
admissible cells are sums over its edges.

Two nodes are the same in every layer: node 0, *impossible* whatever follows, and node 1, *admissible*
whatever follows. Levels that lead to the same child from every node of a layer form a group, and edges
belong to groups. The arrays are plain and flat, for compiled kernels to walk:
``node = layer.child[node, layer.group[code]]``.

With :math:`\theta_j(x)` the weight of level :math:`x` of key :math:`j`, the mass below a node :math:`v` of
the layer of key :math:`j` is

.. math:: U(v) = \sum_x \theta_j(x)\, U(\mathrm{child}(v, x)),
    \qquad U(\text{admissible}) = 1,\; U(\text{impossible}) = 0,

the admissible mass is :math:`A = U(\text{root})`, and with :math:`D(v)` the mass of the ways from the root to
:math:`v`, :math:`D(\text{root}) = 1`,

.. math:: h_j(x) = \frac{\partial A}{\partial \theta_j(x)}
    = \sum_{v \in \text{layer } j} D(v)\, U(\mathrm{child}(v, x)).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.table.packing import code_type

IMPOSSIBLE, ADMISSIBLE = 0, 1
"""The two nodes that every layer has, and the two terminals."""

BLOCK = 1 << 22
"""Numbers held at once while a layer is summed: 32 MB."""


@dataclass(frozen=True, eq=False)
class Layer:
    """The edges of one key.

    Attributes
    ----------
    key
        Position of the key in the table.
    group
        For each level of the key the group it belongs to.
    child
        For each node of this layer and each group of levels, the node of the next layer. Row 0 leads to
        node 0 and row 1 to node 1.
    """

    key: int
    group: NDArray[np.int32]
    child: NDArray[np.int32]

    @property
    def nodes(self) -> int:
        return len(self.child)

    @property
    def groups(self) -> int:
        """The number of groups of levels."""
        return int(self.child.shape[1])

    @cached_property
    def members(self) -> tuple[IntVector, ...]:
        """The level codes of each group."""
        return tuple(np.split(self._by_group, self._group_starts[1:]))

    @cached_property
    def _by_group(self) -> IntVector:
        return np.argsort(self.group, kind="stable")

    @cached_property
    def _group_starts(self) -> IntVector:
        return np.searchsorted(self.group[self._by_group], np.arange(self.groups))

    @cached_property
    def arrivals(self) -> tuple[IntVector, IntVector, IntVector]:
        """The edges sorted by where they lead, where each child's edges start, and which children these are."""
        ends = self.child.ravel()
        order = np.argsort(ends, kind="stable")
        children, starts = np.unique(ends[order], return_index=True)
        return order, starts, children.astype(np.int64)

    @cached_property
    def distinct_children(self) -> tuple[NDArray[np.int32], Mask]:
        """The children of each node in rising order, and which of them are not repetitions."""
        children = np.sort(self.child, axis=1)
        first = np.ones(children.shape, dtype=np.bool_)
        first[:, 1:] = children[:, 1:] != children[:, :-1]
        return children, first

    def group_weights(self, weights: Vector) -> Vector:
        """Weights (levels, K) summed by group."""
        return np.add.reduceat(weights[self._by_group], self._group_starts, axis=0)

    def gather(self, below: Vector, weights: Vector) -> Vector:
        """The mass below each node, from that below the next layer's nodes and the weights of the groups."""
        step = max(1, BLOCK // max(1, weights.size))
        return np.concatenate(
            [
                np.einsum("ngk,gk->nk", below[self.child[start : start + step]], weights)
                for start in range(0, self.nodes, step)
            ]
        )


@dataclass(frozen=True, eq=False)
class DecisionDiagram:
    """The impossible and the admissible cells of a table, as a reduced, ordered, multi-valued diagram.

    Attributes
    ----------
    layers
        One layer per key, in the order in which a cell is read.
    root
        The node of the first layer where every cell starts.

    Notes
    -----
    Marginals are given in the order of the keys of the table, one array per key, either of shape (levels,) or,
    for K classes at once, (K, levels). They need not sum to 1.
    """

    layers: tuple[Layer, ...]
    root: int

    @property
    def order(self) -> tuple[int, ...]:
        """The key positions in the order in which a cell is read."""
        return tuple(layer.key for layer in self.layers)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of levels of each key, in the order of the table."""
        return tuple(len(layer.group) for layer in sorted(self.layers, key=lambda layer: layer.key))

    def node_count(self) -> int:
        """The number of nodes at which a cell's fate is still open."""
        return sum(layer.nodes - 2 for layer in self.layers)

    def edge_count(self) -> int:
        """The number of edges that leave open nodes for a child that is not impossible; one per distinct child."""
        return sum(
            int((first[2:] & (children[2:] != IMPOSSIBLE)).sum())
            for children, first in (layer.distinct_children for layer in self.layers)
        )

    def impossible(self, cells: Codes) -> Mask:
        """Whether each cell, a row of level codes in the key order of the table, is impossible."""
        answer = np.empty(len(cells), dtype=np.bool_)
        # Blocks that stay in the processor's cache are several times faster than whole columns.
        for start in range(0, len(cells), 1 << 14):
            block = cells[start : start + (1 << 14)]
            node = np.full(len(block), self.root, dtype=np.int32)
            for layer in self.layers:
                edge = layer.group.take(block[:, layer.key])
                edge += node * np.int32(layer.groups)
                node = layer.child.take(edge)
            answer[start : start + (1 << 14)] = node == IMPOSSIBLE
        return answer

    def count(self, *, impossible: bool = False) -> int:
        """The exact number of admissible (or impossible) cells, in whole numbers of any size."""
        below = np.array([int(impossible), int(not impossible)], dtype=object)
        for layer in reversed(self.layers):
            sizes = np.array([len(levels) for levels in layer.members], dtype=object)
            below = below[layer.child] @ sizes
        return int(below[self.root])

    def mass(self, marginals: Sequence[Vector], *, impossible: bool = False) -> Vector:
        """The mass of all admissible (or impossible) cells under a product of marginals, for each class.

        Only sums of products of weights are taken, never a difference, so a tiny mass keeps all its digits.
        """
        weights, classes = self._weights(marginals)
        mass: Vector = self._upward(weights, impossible)[0][self.root].reshape(classes)
        return mass

    def mass_and_gradient(self, marginals: Sequence[Vector]) -> tuple[Vector, list[Vector]]:
        r"""The admissible mass A and its derivatives :math:`h_j(x) = \partial A/\partial\theta_j(x)`.

        One pass up and one pass down the diagram. Each derivative has the shape of the marginal it belongs to.
        A is linear in each marginal, so :math:`\sum_x \theta_j(x) h_j(x) = A` for every key.
        """
        weights, classes = self._weights(marginals)
        up = self._upward(weights, impossible=False)
        gradient = [np.empty(0)] * len(self.layers)
        reach = np.zeros_like(up[0])
        reach[self.root] = 1.0
        for layer, weight, below in zip(self.layers, weights, up[1:], strict=True):
            slope = np.empty((layer.groups, below.shape[1]))
            for g in range(layer.groups):
                slope[g] = np.einsum("nk,nk->k", reach, below[layer.child[:, g]])
            gradient[layer.key] = slope[layer.group].T.reshape(*classes, len(layer.group))
            order, starts, children = layer.arrivals
            node, group = np.divmod(order, layer.groups)
            arriving = np.add.reduceat(reach[node] * weight[group], starts, axis=0)
            reach = np.zeros_like(below)
            reach[children] = arriving
        return up[0][self.root].reshape(classes), gradient

    def draw(self, marginals: Sequence[Vector], size: int, rng: Generator, *, impossible: bool = False) -> Codes:
        """Cells drawn from the product of marginals, given that they are admissible (or impossible).

        Each level is drawn in proportion to its weight times the mass below the node it leads to, so no draw is
        ever rejected.
        """
        weights, classes = self._weights(marginals)
        if classes:
            raise ValueError("Draws are from one product of marginals, of one-dimensional arrays.")
        up = self._upward(weights, impossible)
        if not up[0][self.root] > 0:
            raise ValueError("The marginals give these cells no probability, so none can be drawn.")
        cells = np.empty((size, len(self.layers)), dtype=code_type(self.sizes))
        node = np.full(size, self.root)
        for layer, weight, below in zip(self.layers, weights, up[1:], strict=True):
            group = np.empty(size, dtype=np.int64)
            for here, at in _split(node):
                group[at] = _draw_categories(weight[:, 0] * below[layer.child[here], 0], len(at), rng)
            for g, at in _split(group):
                levels = layer.members[g]
                cells[at, layer.key] = levels[_draw_categories(marginals[layer.key][levels], len(at), rng)]
            node = layer.child[node, group]
        return cells

    def path_count(self) -> int:
        """The number of ways from the root to *impossible*, levels with the same child taken together."""
        ways = np.array([1, 0], dtype=object)
        for layer in reversed(self.layers):
            children, first = layer.distinct_children
            ways = (ways[children] * first).sum(axis=1)
            ways[IMPOSSIBLE] = 1
        return int(ways[self.root])

    def paths(self) -> Iterator[tuple[IntVector, ...]]:
        """Each way from the root to *impossible*, as the level codes it takes of every key of the table.

        The ways are disjoint, because their levels differ where they part, and together they are all
        impossible cells.
        """
        everything: list[IntVector] = [np.arange(size) for size in self.sizes]
        pending: list[tuple[int, int, tuple[IntVector, ...]]] = [(0, self.root, ())]
        while pending:
            depth, node, taken = pending.pop()
            if node == IMPOSSIBLE:
                chosen = list(everything)
                for layer, levels in zip(self.layers, taken, strict=False):
                    chosen[layer.key] = levels
                yield tuple(chosen)
            elif node != ADMISSIBLE:
                row = self.layers[depth].child[node]
                for child in np.unique(row)[::-1].tolist():
                    levels = self._levels_to(depth, tuple(np.flatnonzero(row == child).tolist()))
                    pending.append((depth + 1, child, (*taken, levels)))

    def _levels_to(self, depth: int, groups: tuple[int, ...]) -> IntVector:
        """The levels of these groups; one array for all the paths that take them."""
        known = self._level_cache
        if (depth, groups) not in known:
            members = self.layers[depth].members
            known[depth, groups] = np.sort(np.concatenate([members[g] for g in groups]))
        return known[depth, groups]

    @cached_property
    def _level_cache(self) -> dict[tuple[int, tuple[int, ...]], IntVector]:
        return {}

    def _weights(self, marginals: Sequence[Vector]) -> tuple[list[Vector], tuple[int, ...]]:
        """The weights of the groups of each layer, (groups, K), and the shape of a result: () or (K,)."""
        shapes = {marginal.shape[:-1] for marginal in marginals}
        if tuple(marginal.shape[-1] for marginal in marginals) != self.sizes or len(shapes) > 1:
            raise ValueError(f"Marginals must have shapes (levels,) or (K, levels) with levels {self.sizes}.")
        classes = shapes.pop() if shapes else ()
        columns = [marginals[layer.key].reshape(-1, len(layer.group)).T for layer in self.layers]
        return [layer.group_weights(column) for layer, column in zip(self.layers, columns, strict=True)], classes

    def _upward(self, weights: Sequence[Vector], impossible: bool) -> list[Vector]:
        """The mass below every node, (nodes, K) for each layer, and last that of the two terminals."""
        classes = weights[0].shape[1] if weights else 1
        ends = [1.0, 0.0] if impossible else [0.0, 1.0]
        up = [np.repeat(np.array(ends)[:, None], classes, axis=1)]
        for layer, weight in zip(reversed(self.layers), reversed(weights), strict=True):
            up.append(layer.gather(up[-1], weight))
        return up[::-1]


def _split(numbers: Codes) -> Iterator[tuple[int, IntVector]]:
    """Each distinct number, and the positions that hold it."""
    if numbers.max(initial=0) < 2**16:
        numbers = numbers.astype(np.uint16)  # NumPy sorts 16 bits by radix, several times faster
    order = np.argsort(numbers, kind="stable")
    distinct, starts = np.unique(numbers[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=True)


def _draw_categories(weights: Vector, size: int, rng: Generator) -> IntVector:
    """Independent draws of a category in proportion to its weight; one of weight 0 is never drawn."""
    # Scaled so that the total is at least 1: a uniform number times a subnormal total may round up to it.
    edges = np.cumsum(weights / weights.max())
    drawn: IntVector = np.searchsorted(edges, rng.random(size) * edges[-1], side="right")
    return drawn
