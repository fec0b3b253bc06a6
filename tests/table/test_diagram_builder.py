import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.errors import InvalidRules
from keyhole.table import diagram_builder
from keyhole.table.diagram_builder import build_diagram
from keyhole.table.level_sets import LevelSet

from .brute_force import EXAMPLES, all_cells, impossible, tables


def only(*codes):
    return LevelSet(frozenset(codes))


@EXAMPLES
@given(tables(), st.randoms(use_true_random=False), st.sampled_from([1, 2, 5]))
def test_the_order_and_the_grouping_of_rules_do_not_matter(case, random, handful):
    sizes, boxes = case
    shuffled = list(boxes) * 2
    random.shuffle(shuffled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagram_builder, "HANDFUL", handful)
        other = build_diagram(sizes, shuffled)
    diagram, cells = build_diagram(sizes, boxes), all_cells(sizes)
    assert np.array_equal(other.impossible(cells), impossible(boxes, cells))
    assert [layer.child.shape for layer in other.layers] == [layer.child.shape for layer in diagram.layers]


def test_without_rules_everything_is_admissible():
    diagram = build_diagram((2, 3), [])
    assert (diagram.count(), diagram.node_count(), diagram.edge_count()) == (6, 0, 0)


def test_nodes_and_edges_of_a_diagram_drawn_by_hand():
    # A cell of level 0 is open until the second key is read; the third key decides nothing.
    diagram = build_diagram((3, 2, 4), [{0: only(0), 1: only(1)}])
    assert [layer.nodes - 2 for layer in diagram.layers] == [1, 1, 0]
    assert diagram.edge_count() == 3
    assert [layer.groups for layer in diagram.layers] == [2, 2, 1]


def test_keys_that_change_nothing_do_not_grow_the_diagram():
    boxes = [{3: only(0), 7: only(1, 2)}, {3: only(1), 7: only(1)}]
    diagram = build_diagram((5,) * 12, boxes)
    assert max(layer.nodes for layer in diagram.layers) == 4


def test_a_diagram_that_would_be_too_large_is_given_up(monkeypatch):
    monkeypatch.setattr(diagram_builder, "LIMIT", 1 << 10)
    pairs = [{k: only(0), k + 20: only(0)} for k in range(20)]
    with pytest.raises(InvalidRules, match="too large a decision diagram"):
        build_diagram((2,) * 40, pairs)
    with pytest.raises(InvalidRules, match="too large a decision diagram"):
        build_diagram((2,) * 40, pairs[:11])
    interleaved = [k + step for k in range(20) for step in (0, 20)]
    assert build_diagram((2,) * 40, pairs, interleaved).count() == 3**20


def test_too_many_rules_on_too_many_levels_are_given_up(monkeypatch):
    monkeypatch.setattr(diagram_builder, "LIMIT", 1)
    with pytest.raises(InvalidRules, match="tell 101 levels of a key apart"):
        build_diagram((1000, 2), [{0: only(k), 1: only(0)} for k in range(100)])


def test_an_order_names_every_key_once():
    with pytest.raises(ValueError, match="each of 2 keys once"):
        build_diagram((2, 3), [], [0, 0])
