import pytest

from keyhole.errors import InvalidRules
from keyhole.keys.variable import KeyVariable
from keyhole.table.level_sets import LevelSet
from keyhole.table.rule_meaning import Labels, ZeroRule, ZeroRules

from .brute_force import named_keys

PLACES = KeyVariable("PLACE", tuple(f"place {k}" for k in range(20_000)))


def one_rule(*conditions: Labels) -> ZeroRules:
    return ZeroRules((ZeroRule(1, conditions),), "zeros.yaml")


def test_labels_become_the_codes_of_their_levels():
    keys = named_keys((3, 2))
    rules = one_rule(Labels("K1", ("1:1",)), Labels("K0", ("0:2", "0:0", "0:2"), negated=True))
    assert rules.boxes(keys) == ({1: LevelSet(frozenset({1})), 0: LevelSet(frozenset({0, 2}), negated=True)},)


def test_no_likeness_is_looked_for_among_very_many_labels():
    with pytest.raises(InvalidRules) as caught:
        one_rule(Labels("PLACE", ("place x",))).boxes((PLACES,))
    assert "unknown label of PLACE: 'place x'." in str(caught.value)


def test_a_long_list_of_keys_is_cut():
    with pytest.raises(InvalidRules, match=r"K19, \.\.\.\)"):
        one_rule(Labels("AGE", ("x",))).boxes(named_keys((2,) * 40))


def test_a_rule_is_called_by_its_number_and_keys():
    rules = one_rule(Labels("K1", ("1:1",)), Labels("K0", ("0:2",)))
    assert (len(rules), rules.rules[0].keys) == (1, "K1, K0")
