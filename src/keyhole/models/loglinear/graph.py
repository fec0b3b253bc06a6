r"""The interaction graph of a log-linear model: whether the model is decomposable, and its junction tree.

Keys are the vertices, and two keys are joined where a generator holds both. The model is decomposable if its
generators are the maximal cliques of a graph that is chordal (every cycle of four or more keys has a chord). The
cliques then have an order with the running intersection property,

.. math:: S_i = C_i \cap (C_1 \cup \dots \cup C_{i-1}) \subseteq C_j \text{ for some } j < i,

and the mean of a cell is a product of margins. Other graphs are made chordal by joining more keys.

References
----------
Lauritzen (1996), Graphical Models, chapters 2 and 4. Tarjan & Yannakakis (1984), Simple linear-time algorithms to
test chordality of graphs, SIAM Journal on Computing 13.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TypeAlias

from keyhole.inference.formula import Generators

Graph: TypeAlias = tuple[frozenset[int], ...]
"""The neighbours of each key."""

ROOT = -1
"""The parent of the first clique, which has none."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Cliques in running-intersection order: a junction tree.

    Attributes
    ----------
    cliques
        Sets of keys, each in rising order; all keys that a clique shares with earlier ones are in its parent.
    separators
        What each clique shares with the earlier ones: nothing for the first clique and wherever a component of the
        graph begins.
    parents
        For each clique an earlier one that holds its separator; `ROOT` for the first.

    Examples
    --------
    >>> Decomposition.of([(0, 1), (1, 2), (3,)])
    Decomposition(cliques=((0, 1), (1, 2), (3,)), separators=((), (1,), ()), parents=(-1, 0, 0))
    """

    cliques: tuple[tuple[int, ...], ...]
    separators: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, cliques: Sequence[tuple[int, ...]]) -> "Decomposition":
        """The tree of cliques that are in running-intersection order."""
        separators: list[tuple[int, ...]] = [()]
        parents = [ROOT]
        seen = set(cliques[0])
        for place, clique in enumerate(cliques[1:], 1):
            shared = tuple(key for key in clique if key in seen)
            parents.append(next(j for j in range(place) if set(shared) <= set(cliques[j])))
            separators.append(shared)
            seen.update(clique)
        return cls(tuple(cliques), tuple(separators), tuple(parents))


def decomposition(generators: Generators) -> Decomposition | None:
    """The cliques of a decomposable model with their separators; None if the model is not decomposable.

    Examples
    --------
    >>> decomposition(((0, 1), (0, 2), (1, 2))) is None  # joins all three keys without their interaction
    True
    >>> decomposition(((0, 2), (1, 2), (1, 3))).cliques
    ((0, 2), (1, 2), (1, 3))
    """
    cliques = _cliques(interaction_graph(generators))
    if cliques is None or sorted(cliques) != list(generators):
        return None
    return Decomposition.of(cliques)


def triangulated(generators: Generators, sizes: Sequence[int]) -> Decomposition:
    """A junction tree for any model: each generator is inside one of its cliques.

    Keys are eliminated one by one, each time the one whose neighbours lack the fewest edges among themselves, and
    of several such keys the one with the smallest table together with its neighbours. A graph that is chordal
    already gets no further edge.

    Parameters
    ----------
    sizes
        The number of levels of each key.
    """
    left = [set(neighbours) for neighbours in interaction_graph(generators)]
    filled = [set(neighbours) for neighbours in left]
    remaining = set(range(len(left)))

    def cost(key: int) -> tuple[int, int, int]:
        lacking = sum(b not in left[a] for a, b in combinations(left[key], 2))
        return lacking, sizes[key] * prod(sizes[other] for other in left[key]), key

    while remaining:
        key = min(remaining, key=cost)
        for neighbour in left[key]:
            joined = left[key] - {neighbour}
            left[neighbour] |= joined
            left[neighbour].discard(key)
            filled[neighbour] |= joined
        remaining.remove(key)
    cliques = _cliques(tuple(map(frozenset, filled)))
    assert cliques is not None, "elimination leaves a chordal graph"
    return Decomposition.of(cliques)


def interaction_graph(generators: Generators) -> Graph:
    """Which keys each key meets in a generator."""
    neighbours: list[set[int]] = [set() for _ in range(1 + max(max(keys) for keys in generators))]
    for keys in generators:
        for key in keys:
            neighbours[key].update(keys)
    return tuple(frozenset(met - {key}) for key, met in enumerate(neighbours))


def _cliques(graph: Graph) -> list[tuple[int, ...]] | None:
    """The maximal cliques of a chordal graph in running-intersection order; None if the graph is not chordal.

    The graph is chordal if, in the order of the search, the earlier neighbours of each key are all joined. A key
    and its earlier neighbours are then a clique, every maximal clique is among these, and in the order of their
    last keys the maximal ones have the running intersection property.
    """
    seen: set[int] = set()
    found: list[frozenset[int]] = []
    for key in _maximum_cardinality_search(graph):
        before = graph[key] & seen
        if any(b not in graph[a] for a, b in combinations(before, 2)):
            return None
        found.append(before | {key})
        seen.add(key)
    return [tuple(sorted(keys)) for keys in found if not any(keys < other for other in found)]


def _maximum_cardinality_search(graph: Graph) -> list[int]:
    """Keys in an order that always goes on with one that has the most neighbours behind it."""
    order: list[int] = []
    behind = dict.fromkeys(range(len(graph)), 0)
    while behind:
        key = max(behind, key=lambda each: (behind[each], -each))
        del behind[key]
        order.append(key)
        for neighbour in graph[key] & behind.keys():
            behind[neighbour] += 1
    return order
