"""Decomposability and junction trees, against definitions that look at every set of keys."""

from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.inference.formula import Generators, maximal, preset
from keyhole.models.loglinear.graph import ROOT, Decomposition, decomposition, interaction_graph, triangulated
from tests.inference.test_formula import QUICK, models

Edges = frozenset[tuple[int, int]]


def subsets(keys: int) -> Iterator[tuple[int, ...]]:
    return (chosen for size in range(1, keys + 1) for chosen in combinations(range(keys), size))


def edges_of(generators: Generators) -> Edges:
    return frozenset(pair for g in generators for pair in combinations(g, 2))


def maximal_cliques(keys: int, edges: Edges) -> Generators:
    return maximal(chosen for chosen in subsets(keys) if set(combinations(chosen, 2)) <= edges)


def is_bare_cycle(chosen: tuple[int, ...], edges: Edges) -> bool:
    """Whether the graph of these keys alone is one cycle: two neighbours each, and all of them connected."""
    inside = {(a, b) for a, b in edges if a in chosen and b in chosen}
    if any(sum(key in edge for edge in inside) != 2 for key in chosen):
        return False
    reached = {chosen[0]}
    for _ in chosen:
        reached |= {key for edge in inside if reached & set(edge) for key in edge}
    return reached == set(chosen)


def is_decomposable(generators: Generators) -> bool:
    """By the definition: no cycle of four or more keys without a chord, and the generators are the cliques."""
    keys, edges = 1 + max(max(g) for g in generators), edges_of(generators)
    chordal = not any(len(chosen) >= 4 and is_bare_cycle(chosen, edges) for chosen in subsets(keys))
    return chordal and maximal_cliques(keys, edges) == generators


def has_running_intersections(tree: Decomposition) -> bool:
    seen: set[int] = set()
    for place, (clique, separator, parent) in enumerate(
        zip(tree.cliques, tree.separators, tree.parents, strict=True)
    ):
        if set(separator) != set(clique) & seen or list(separator) != sorted(separator):
            return False
        if parent == ROOT:
            if place:
                return False
        elif not (parent < place and set(separator) <= set(tree.cliques[parent])):
            return False
        seen |= set(clique)
    return True


def check(generators: Generators) -> bool:
    """Compare with the definition; whether the model is decomposable."""
    tree = decomposition(generators)
    assert (tree is not None) == is_decomposable(generators), generators
    if tree is not None:
        assert tuple(sorted(tree.cliques)) == generators
        assert has_running_intersections(tree), tree
    return tree is not None


@pytest.mark.parametrize(("keys", "chordal"), [(1, 1), (2, 2), (3, 8), (4, 61), (5, 822)])
def test_every_graph_of_a_few_keys(keys: int, chordal: int) -> None:
    """Labelled chordal graphs on 1, 2, ... vertices: 1, 2, 8, 61, 822, 18154 (OEIS A058862)."""
    pairs = list(combinations(range(keys), 2))
    found = 0
    for number in range(2 ** len(pairs)):
        edges = frozenset(pair for bit, pair in enumerate(pairs) if number >> bit & 1)
        found += check(maximal_cliques(keys, edges))
    assert found == chordal


@QUICK
@given(models(6))
def test_random_models(generators: Generators) -> None:
    check(generators)


def test_known_models() -> None:
    assert decomposition(preset(2, 3)) is None
    assert decomposition(((0, 1), (0, 3), (1, 2), (2, 3))) is None
    assert decomposition(preset(5, 5)) == Decomposition(((0, 1, 2, 3, 4),), ((),), (ROOT,))
    assert decomposition(preset(1, 3)) == Decomposition(((0,), (1,), (2,)), ((), (), ()), (ROOT, 0, 0))
    chain = decomposition(((0, 1), (1, 2), (2, 3)))
    assert chain is not None
    assert chain.separators == ((), (1,), (2,))


def test_cliques_out_of_order_have_no_tree() -> None:
    with pytest.raises(StopIteration):
        Decomposition.of([(0, 1), (2, 3), (1, 2)])
    wrong = Decomposition(((0, 1), (2, 3), (1, 2)), ((), (), (1, 2)), (ROOT, 0, 0))
    assert not has_running_intersections(wrong)


@QUICK
@given(models(7), st.data())
def test_triangulation(generators: Generators, data: st.DataObject) -> None:
    keys = 1 + max(max(g) for g in generators)
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=keys, max_size=keys))
    tree = triangulated(generators, sizes)
    assert has_running_intersections(tree)
    assert all(any(set(g) <= set(clique) for clique in tree.cliques) for g in generators)
    assert maximal(tree.cliques) == tuple(sorted(tree.cliques))
    assert is_decomposable(tuple(sorted(tree.cliques)))
    edges = edges_of(generators)
    if is_decomposable(maximal_cliques(keys, edges)):
        assert edges_of(tree.cliques) == edges


@pytest.mark.parametrize("keys", [4, 5, 13])
def test_a_cycle_needs_triangles_only(keys: int) -> None:
    cycle = maximal([(key, (key + 1) % keys) for key in range(keys)])
    tree = triangulated(cycle, (3,) * keys)
    assert sorted(map(len, tree.cliques)) == [3] * (keys - 2)
    assert [len(neighbours) for neighbours in interaction_graph(cycle)] == [2] * keys


def test_the_chord_joins_keys_with_few_levels() -> None:
    square = ((0, 1), (0, 3), (1, 2), (2, 3))
    assert sorted(triangulated(square, (9, 2, 9, 2)).cliques) == [(0, 1, 3), (1, 2, 3)]
    assert sorted(triangulated(square, (2, 9, 2, 9)).cliques) == [(0, 1, 2), (0, 2, 3)]
