import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.table import decision_diagram
from keyhole.table.decision_diagram import DecisionDiagram
from keyhole.table.diagram_builder import build_diagram
from keyhole.table.level_sets import LevelSet

from .brute_force import EXAMPLES, all_cells, impossible, tables, weights


@st.composite
def diagrams(draw):
    sizes, boxes = draw(tables())
    order = draw(st.permutations(range(len(sizes))))
    cells = all_cells(sizes)
    return build_diagram(sizes, boxes, order), cells, impossible(boxes, cells)


def some_marginals(sizes, seed, classes=()):
    rng = np.random.default_rng(seed)
    return [rng.random((*classes, size)) * rng.choice([1.0, 1e-12], (*classes, size)) for size in sizes]


@EXAMPLES
@given(diagrams())
def test_membership_and_counts_are_those_of_every_cell(case):
    diagram, cells, zero = case
    assert np.array_equal(diagram.impossible(cells), zero)
    assert diagram.count() == (~zero).sum()
    assert diagram.count(impossible=True) == zero.sum()


@EXAMPLES
@given(diagrams(), st.integers(0, 2**32))
def test_masses_are_sums_over_all_cells(case, seed):
    diagram, cells, zero = case
    marginals = some_marginals(diagram.sizes, seed, (3,))
    mass = weights(marginals, cells)
    assert diagram.mass(marginals) == pytest.approx(mass[:, ~zero].sum(axis=1), rel=1e-12, abs=0)
    assert diagram.mass(marginals, impossible=True) == pytest.approx(mass[:, zero].sum(axis=1), rel=1e-12, abs=0)
    one = [marginal[1] for marginal in marginals]
    assert diagram.mass(one) == pytest.approx(diagram.mass(marginals)[1], rel=1e-12, abs=0)


@EXAMPLES
@given(diagrams(), st.integers(0, 2**32))
def test_gradients_are_sums_over_the_cells_of_a_level(case, seed):
    diagram, cells, zero = case
    marginals = some_marginals(diagram.sizes, seed, (2,))
    mass, gradient = diagram.mass_and_gradient(marginals)
    assert np.array_equal(mass, diagram.mass(marginals))
    for j, size in enumerate(diagram.sizes):
        others = [np.ones_like(marginal) if k == j else marginal for k, marginal in enumerate(marginals)]
        for level in range(size):
            here = ~zero & (cells[:, j] == level)
            assert gradient[j][:, level] == pytest.approx(
                weights(others, cells[here]).sum(axis=-1), rel=1e-12, abs=0
            )


def test_gradients_are_finite_differences():
    sizes, rng = (4, 3, 5), np.random.default_rng(0)
    boxes = [{0: LevelSet(frozenset({0, 1})), 2: LevelSet(frozenset({3}), True)}, {1: LevelSet(frozenset({2}))}]
    diagram = build_diagram(sizes, boxes)
    marginals = [rng.dirichlet(np.ones(size)) for size in sizes]
    _, gradient = diagram.mass_and_gradient(marginals)
    for j, size in enumerate(sizes):
        for level in range(size):
            raised, lowered = ([marginal.copy() for marginal in marginals] for _ in range(2))
            raised[j][level] += 1e-4
            lowered[j][level] -= 1e-4
            # The mass is linear in each marginal, so the central difference has no error but rounding.
            slope = (diagram.mass(raised) - diagram.mass(lowered)) / 2e-4
            assert gradient[j][level] == pytest.approx(slope, rel=1e-9)


def test_large_layers_are_summed_in_blocks(monkeypatch):
    diagram = build_diagram((4, 4), [{0: LevelSet(frozenset({k})), 1: LevelSet(frozenset({k}))} for k in range(4)])
    marginals = some_marginals((4, 4), 1, (5,))
    whole = diagram.mass(marginals)
    monkeypatch.setattr(decision_diagram, "BLOCK", 1)
    assert np.array_equal(diagram.mass(marginals), whole)


@EXAMPLES
@given(diagrams())
def test_paths_are_disjoint_and_are_all_impossible_cells(case):
    diagram, cells, zero = case
    paths = list(diagram.paths())
    cover = np.zeros(len(cells), dtype=int)
    for path in paths:
        cover += np.all([np.isin(cells[:, j], levels) for j, levels in enumerate(path)], axis=0)
    assert np.array_equal(cover, zero)
    assert len(paths) == diagram.path_count()


@EXAMPLES
@given(diagrams())
def test_no_two_nodes_of_a_layer_and_no_two_groups_are_alike(case):
    diagram, _, _ = case
    for layer in diagram.layers:
        assert len(np.unique(layer.child, axis=0)) == layer.nodes
        assert len(np.unique(layer.child, axis=1).T) == layer.groups
        assert (layer.child[0] == 0).all()
        assert (layer.child[1] == 1).all()
        assert layer.child.dtype == layer.group.dtype == np.int32


@EXAMPLES
@given(diagrams(), st.integers(0, 2**32), st.booleans())
def test_draws_stay_on_their_side_and_avoid_levels_without_weight(case, seed, inside):
    diagram, cells, zero = case
    rng = np.random.default_rng(seed)
    marginals = [rng.random(size) * (rng.random(size) < 0.7) for size in diagram.sizes]
    if weights(marginals, cells)[zero == inside].sum() > 0:
        drawn = diagram.draw(marginals, 40, rng, impossible=inside)
        assert (diagram.impossible(drawn) == inside).all()
        assert all((marginals[j][drawn[:, j]] > 0).all() for j in range(len(marginals)))
    else:
        with pytest.raises(ValueError, match="no probability"):
            diagram.draw(marginals, 40, rng, impossible=inside)


def test_marginals_of_another_table_are_refused():
    diagram = build_diagram((2, 3), [])
    with pytest.raises(ValueError, match="levels \\(2, 3\\)"):
        diagram.mass([np.ones(3), np.ones(2)])
    with pytest.raises(ValueError, match="shapes"):
        diagram.mass([np.ones((2, 2)), np.ones(3)])
    with pytest.raises(ValueError, match="one product"):
        diagram.draw([np.ones((2, 2)), np.ones((2, 3))], 1, np.random.default_rng(0))


def test_tiny_weights_are_drawn_without_rounding_out_of_range():
    diagram = build_diagram((3, 2), [{0: LevelSet(frozenset({0})), 1: LevelSet(frozenset({0}))}])
    drawn = diagram.draw([np.full(3, 1e-160), np.full(2, 1e-160)], 1000, np.random.default_rng(1))
    assert not diagram.impossible(drawn).any()


def test_a_table_of_no_keys_has_one_cell():
    diagram = DecisionDiagram((), 1)
    assert (diagram.count(), diagram.count(impossible=True), float(diagram.mass([]))) == (1, 0, 1.0)
