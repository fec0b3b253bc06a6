import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keyhole.table import diagram_order
from keyhole.table.decision_diagram import DecisionDiagram
from keyhole.table.diagram_builder import build_diagram
from keyhole.table.diagram_order import rule_order, sift, swap
from keyhole.table.level_sets import LevelSet

from .brute_force import EXAMPLES, all_cells, impossible, tables

PAIRS = [{k: LevelSet(frozenset({0})), k + 8: LevelSet(frozenset({0}))} for k in range(8)]


@EXAMPLES
@given(tables(), st.data())
def test_swapping_two_layers_gives_the_diagram_of_that_order(case, data):
    sizes, boxes = case
    diagram, cells = build_diagram(sizes, boxes), all_cells(sizes)
    if len(sizes) < 2:
        return
    place = data.draw(st.integers(0, len(sizes) - 2))
    layers = list(diagram.layers)
    layers[place : place + 2] = swap(layers[place], layers[place + 1])
    swapped = DecisionDiagram(tuple(layers), diagram.root)
    assert np.array_equal(swapped.impossible(cells), impossible(boxes, cells))
    rebuilt = build_diagram(sizes, boxes, swapped.order)
    assert [layer.child.shape for layer in swapped.layers] == [layer.child.shape for layer in rebuilt.layers]


@EXAMPLES
@given(tables(), st.sampled_from([DecisionDiagram.node_count, DecisionDiagram.path_count]))
def test_sifting_keeps_the_cells_and_never_costs_more(case, cost):
    sizes, boxes = case
    diagram, cells = build_diagram(sizes, boxes), all_cells(sizes)
    sifted = sift(diagram, cost)
    assert cost(sifted) <= cost(diagram)
    assert np.array_equal(sifted.impossible(cells), impossible(boxes, cells))


@EXAMPLES
@given(tables())
def test_the_guessed_order_names_every_key_once(case):
    sizes, boxes = case
    assert sorted(rule_order(sizes, boxes)) == list(range(len(sizes)))


def test_keys_that_share_a_rule_are_brought_together():
    sizes = (2,) * 16
    bad = build_diagram(sizes, PAIRS)
    good = build_diagram(sizes, PAIRS, rule_order(sizes, PAIRS))
    assert bad.node_count() > 500
    assert good.node_count() < 30
    assert sift(bad, DecisionDiagram.node_count).node_count() < bad.node_count() / 4


def test_a_diagram_too_large_to_rearrange_stays_as_it_is(monkeypatch):
    monkeypatch.setattr(diagram_order, "WORK", 10)
    diagram = build_diagram((2,) * 16, PAIRS)
    assert sift(diagram, DecisionDiagram.node_count) is diagram
