r"""Iterative proportional fitting on a junction tree: models with small cliques on tables of any size.

The fitted table is never built. It is held as tables of the cliques of a triangulated graph and of the separators
between them,

.. math:: m(x) = \prod_C b_C(x_C) \Big/ \prod_S b_S(x_S),

and starts with all cells alike. Scaling one clique to the observed margin of a generator,

.. math:: b_C \leftarrow b_C \, n_G / b_{C \downarrow G},

is a step of iterative proportional fitting if b_C is the fitted table's own margin. It is so for one clique at a
time: going from a clique A to its neighbour B through the separator S,

.. math:: b_B \leftarrow b_B \, b_{A \downarrow S} / b_S, \qquad b_S \leftarrow b_{A \downarrow S},

leaves m as it is and makes b_B its margin. One iteration walks round the tree and scales each clique to the
generators inside it. Combinations with a zero margin become zero and stay so.

References
----------
Jirousek & Preucil (1995), On the effective implementation of the iterative proportional fitting procedure,
Computational Statistics & Data Analysis 19.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.inference.formula import Generators
from keyhole.models.loglinear.graph import ROOT, Decomposition, triangulated

Keys = tuple[int, ...]


def tree_entries(generators: Generators, sizes: Sequence[int]) -> int:
    """How many numbers the cliques of the junction tree hold, of 8 bytes each.

    Examples
    --------
    >>> tree_entries(((0, 1), (0, 3), (1, 2), (2, 3)), (10, 10, 10, 10))
    2000
    """
    return sum(prod(sizes[key] for key in clique) for clique in triangulated(generators, sizes).cliques)


@dataclass(frozen=True, eq=False)
class TreeFit:
    """The extended maximum likelihood estimate of a hierarchical model, in factors.

    Attributes
    ----------
    tree
        The cliques and their separators.
    beliefs, separators
        Expected counts of each clique, and of the separator between it and its parent.
    iterations
        Walks round the tree.
    margin_error
        The largest relative difference between a fitted and an observed margin.
    converged
        Whether it is within the tolerance.
    """

    tree: Decomposition
    beliefs: tuple[Vector, ...] = field(repr=False)
    separators: tuple[Vector, ...] = field(repr=False)
    iterations: int
    margin_error: float
    converged: bool

    def log_fitted(self, cells: Codes) -> Vector:
        """log m of cells; minus infinity where a margin is zero."""
        total = np.full(len(cells), np.log(self.separators[0]))
        possible = np.ones(len(cells), dtype=bool)
        parts = zip(self.tree.cliques, self.tree.separators, self.beliefs, self.separators, strict=True)
        for clique, shared, belief, between in parts:
            expected = belief[tuple(cells[:, key] for key in clique)]
            given = between[tuple(cells[:, key] for key in shared)]
            possible &= expected > 0
            total += np.log(np.where(possible, expected, 1.0)) - np.log(np.where(possible, given, 1.0))
        return np.where(possible, total, -np.inf)

    def expected(self, keys: Keys) -> Vector:
        """The fitted margin of keys that are together in one clique, an axis for each in the order given.

        Raises
        ------
        ValueError
            No clique holds all of them.
        """
        home = _home(keys, self.tree, self.beliefs)
        inside = tuple(sorted(keys))
        margin = _sum_to(self.beliefs[home], self.tree.cliques[home], inside)
        return np.transpose(margin, [inside.index(key) for key in keys])

    def draw(self, size: int, rng: Generator) -> IntVector:
        """Records from the fitted law, as codes; each clique given the keys it shares with those before."""
        drawn = np.zeros((size, 1 + max(key for clique in self.tree.cliques for key in clique)), dtype=np.int64)
        for clique, shared, belief in zip(self.tree.cliques, self.tree.separators, self.beliefs, strict=True):
            new = tuple(key for key in clique if key not in shared)
            table = np.transpose(belief, [clique.index(key) for key in shared + new])
            given, free = table.shape[: len(shared)], table.shape[len(shared) :]
            row = np.zeros(size, dtype=np.int64)
            if shared:
                row = np.ravel_multi_index(tuple(drawn[:, shared].T), given)
            # One row for each combination of the shared keys; edges run through all of them.
            width = prod(free)
            edges = np.concatenate([[0.0], np.cumsum(table.ravel())])
            begin, end = edges[row * width], edges[(row + 1) * width]
            place = np.searchsorted(edges, begin + rng.random(size) * (end - begin), side="right") - 1
            # A uniform number next to one may be rounded to the edge, beyond which the next row begins.
            place = np.clip(place - row * width, 0, width - 1)
            drawn[:, new] = np.stack(np.unravel_index(place, free), axis=1)
        return drawn


def fit_tree(
    generators: Generators,
    cells: Codes,
    counts: Vector | IntVector,
    sizes: Sequence[int],
    *,
    tolerance: float = 1e-8,
    most_iterations: int = 1000,
) -> TreeFit:
    """Fit a hierarchical model to the occupied cells of a table without structural zeros.

    Parameters
    ----------
    cells, counts
        Rows of level codes and the records, or weights, of each.
    sizes
        The number of levels of each key.
    tolerance
        By how much fitted margins may differ from observed ones, in proportion to these.
    """
    weight = np.asarray(counts, dtype=np.float64)
    walk = _Walk.over(triangulated(generators, sizes), sizes, float(weight.sum()))
    for keys in generators:
        walk.add_target(keys, _margin(cells, weight, keys, sizes))
    error = np.inf
    iteration = 0
    while iteration < most_iterations and error > tolerance:
        iteration += 1
        # Margins met on the way are not those of the end: only fitted margins of one table count.
        if walk.round() <= tolerance or iteration == most_iterations:
            walk.spread_from_root()
            error = walk.margin_error()
    return TreeFit(
        walk.tree, tuple(walk.beliefs), tuple(walk.separators), iteration, error, bool(error <= tolerance)
    )


@dataclass(eq=False)
class _Walk:
    """The state of the fit: where the walk stands, the belief of the clique is the fitted table's own margin.

    Attributes
    ----------
    targets
        For each clique the observed margins of the generators that it takes care of.
    """

    tree: Decomposition
    beliefs: list[Vector]
    separators: list[Vector]
    targets: list[list[tuple[Keys, Vector]]]

    @classmethod
    def over(cls, tree: Decomposition, sizes: Sequence[int], total: float) -> "_Walk":
        """All cells alike: the start that has no interaction at all."""

        def even(keys: Keys) -> Vector:
            shape = tuple(sizes[key] for key in keys)
            return np.full(shape, total / prod(shape))

        return cls(tree, [*map(even, tree.cliques)], [*map(even, tree.separators)], [[] for _ in tree.cliques])

    def add_target(self, keys: Keys, margin: Vector) -> None:
        self.targets[_home(keys, self.tree, self.beliefs)].append((keys, margin))

    def round(self, place: int = 0) -> float:
        """Scale this clique and all below it once, and come back; the largest error met on the way."""
        error = self._scale(place)
        for child in self._children(place):
            self._go(place, child, child)
            error = max(error, self.round(child))
            self._go(child, place, child)
        return error

    def spread_from_root(self) -> None:
        """Make every belief the fitted table's own margin; the walk must stand at the root."""
        for child, parent in enumerate(self.tree.parents):
            if parent != ROOT:
                self._go(parent, child, child)

    def margin_error(self) -> float:
        """The largest relative error of a margin, all beliefs being the fitted table's own."""
        return max(
            _relative_error(_sum_to(belief, clique, keys), margin)
            for belief, clique, targets in zip(self.beliefs, self.tree.cliques, self.targets, strict=True)
            for keys, margin in targets
        )

    def _children(self, clique: int) -> list[int]:
        return [child for child, parent in enumerate(self.tree.parents) if parent == clique]

    def _scale(self, place: int) -> float:
        error = 0.0
        clique = self.tree.cliques[place]
        for keys, margin in self.targets[place]:
            fitted = _sum_to(self.beliefs[place], clique, keys)
            error = max(error, _relative_error(fitted, margin))
            self.beliefs[place] *= _along(_ratio(margin, fitted), keys, clique)
        return error

    def _go(self, sender: int, receiver: int, edge: int) -> None:
        """Tell a neighbour; ``edge`` is the one of the two whose parent is the other."""
        shared = self.tree.separators[edge]
        told = _sum_to(self.beliefs[sender], self.tree.cliques[sender], shared)
        change = _ratio(told, self.separators[edge])
        self.beliefs[receiver] *= _along(change, shared, self.tree.cliques[receiver])
        self.separators[edge] = told


def _home(keys: Keys, tree: Decomposition, beliefs: Sequence[Vector]) -> int:
    """The smallest clique that holds all of these keys."""
    holding = [place for place, clique in enumerate(tree.cliques) if set(keys) <= set(clique)]
    if not holding:
        raise ValueError(f"No clique of the junction tree holds the {len(keys)} keys at positions {keys}.")
    return min(holding, key=lambda place: beliefs[place].size)


def _margin(cells: Codes, counts: Vector, keys: Keys, sizes: Sequence[int]) -> Vector:
    shape = tuple(sizes[key] for key in keys)
    place = np.ravel_multi_index(tuple(cells[:, key] for key in keys), shape)
    return np.bincount(place, counts, prod(shape)).astype(np.float64).reshape(shape)


def _sum_to(belief: Vector, clique: Keys, keys: Keys) -> Vector:
    """The margin of some keys of a clique."""
    return np.asarray(belief.sum(axis=tuple(axis for axis, key in enumerate(clique) if key not in keys)))


def _along(values: Vector, keys: Keys, clique: Keys) -> Vector:
    """A margin shaped so that it multiplies the table of the clique."""
    return np.expand_dims(values, tuple(axis for axis, key in enumerate(clique) if key not in keys))


def _ratio(new: Vector, old: Vector) -> Vector:
    """new / old, and 0 where nothing was: what is zero stays zero."""
    return np.divide(new, old, out=np.zeros_like(new), where=old > 0)


def _relative_error(fitted: Vector, margin: Vector) -> float:
    """The largest relative error at a positive margin; a fitted margin is zero where the observed one is."""
    there = margin > 0
    return float(np.abs(fitted[there] / margin[there] - 1.0).max(initial=0.0))
