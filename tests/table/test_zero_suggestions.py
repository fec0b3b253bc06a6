"""Suggestions of structural zeros: what is missing beyond chance, as rules that can be read back."""

import numpy as np

from keyhole.keys.variable import KeyVariable
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
from keyhole.table.zero_suggestions import suggest_zeros

AGE = KeyVariable("AGE", ("0-14", "15-64", "65+"))
STATE = KeyVariable("STATE", ("single", "married", 'said "other: x"'))
SEX = KeyVariable("SEX", ("f", "m"))


def people(children_marry: bool) -> ContingencyTable:
    rng = np.random.default_rng(1)
    age, sex = rng.integers(0, 3, 3000), rng.integers(0, 2, 3000)
    state = rng.integers(0, 3, 3000)
    if not children_marry:
        state[age == 0] = 0
    return ContingencyTable.from_codes((AGE, STATE, SEX), np.column_stack([age, state, sex]))


def test_what_is_missing_is_suggested_and_nothing_else() -> None:
    assert suggest_zeros(people(children_marry=True)) == ()
    (found,) = suggest_zeros(people(children_marry=False))
    assert (found.key, found.level, found.other) == ("AGE", "0-14", "STATE")
    assert found.levels == STATE.levels[1:]


def test_a_suggestion_is_a_rule_that_holds() -> None:
    table = people(children_marry=False)
    text = "\n".join(one.rule for one in suggest_zeros(table))
    zeros = StructuralZeros(table.keys, parse_zero_rules(text, "suggestions"))
    zeros.check(table)
    assert zeros.admissible_cells == 14


def test_pairs_that_chance_explains_are_left_alone() -> None:
    table = people(children_marry=False)
    expected = suggest_zeros(table)[0].expected
    assert suggest_zeros(table, expected) == ()
