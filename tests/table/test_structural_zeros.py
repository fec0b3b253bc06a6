import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from keyhole.errors import ForbiddenRecords, InvalidKeys, InvalidRules
from keyhole.keys.variable import KeyVariable
from keyhole.table import diagram_builder, structural_zeros
from keyhole.table.contingency import ContingencyTable
from keyhole.table.decision_diagram import DecisionDiagram
from keyhole.table.diagram_builder import build_diagram
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules, zero_rules_from

from .brute_force import EXAMPLES, all_cells, matches, named_keys, rule_lists, weights
from .person_rules import KEYS, person_rules

AGE = KeyVariable("AGE", ("0-14", "15-64", "65+"))
MARITAL = KeyVariable("MARITAL", ("single", "married", "widowed"))
WORK = KeyVariable("WORK", ("none", "paid"))
RULES = """
- {AGE: 0-14, MARITAL: {not: [single]}}
- {MARITAL: [married, widowed], WORK: none, AGE: [0-14, 15-64]}
- {AGE: [0-14, 65+], WORK: paid}
"""


@st.composite
def small_zeros(draw):
    """Zeros over a small table, every cell of it, and which of them match some rule, by looking at labels."""
    keys, rules = draw(rule_lists())
    zeros = StructuralZeros(keys, zero_rules_from(rules))
    cells = all_cells(zeros.levels)
    zero = np.array([any(label_match(rule, keys, cell) for rule in rules) for cell in cells.tolist()])
    return zeros, cells, zero


def label_match(rule, keys, cell):
    """The contract read aloud: a cell is impossible when it matches all entries of a rule."""
    for key, code in zip(keys, cell, strict=True):
        entry = rule.get(key.name)
        if entry is None:
            continue
        negated = isinstance(entry, dict)
        labels = entry["not"] if negated else entry
        named = [labels] if isinstance(labels, str) else labels
        if (key.levels[code] in named) == negated:
            return False
    return True


@pytest.fixture(scope="module")
def zeros() -> StructuralZeros:
    return StructuralZeros((AGE, MARITAL, WORK), parse_zero_rules(RULES, "zeros.yaml"))


@pytest.fixture(scope="module")
def persons() -> StructuralZeros:
    return StructuralZeros(KEYS, zero_rules_from(person_rules()))


@EXAMPLES
@given(small_zeros(), st.integers(0, 2**32))
def test_every_answer_is_that_of_looking_at_every_cell(case, seed):
    zeros, cells, zero = case
    assert np.array_equal(zeros.contains(cells), zero)
    assert np.array_equal(zeros.small_diagram.impossible(cells), zero)
    assert (zeros.zero_cells, zeros.admissible_cells) == (zero.sum(), (~zero).sum())

    marginals = [np.random.default_rng(seed).random((2, size)) for size in zeros.levels]
    mass = weights(marginals, cells)
    assert zeros.probability(marginals) == pytest.approx(mass[:, zero].sum(axis=1) / mass.sum(axis=1), rel=1e-12)

    cover = sum(
        np.all([np.isin(cells[:, j], levels) for j, levels in enumerate(condition)], axis=0)
        for condition in zeros.disjoint_conditions()
    )
    assert np.array_equal(np.broadcast_to(cover, zero.shape), zero)


@EXAMPLES
@given(small_zeros(), st.integers(0, 2**32))
def test_violations_are_counted_rule_by_rule(case, seed):
    zeros, cells, zero = case
    counts = np.random.default_rng(seed).integers(0, 4, len(cells))
    table = ContingencyTable.from_codes(zeros.keys, cells[counts > 0], counts[counts > 0])
    expected = [
        sum(
            count for cell, count in zip(cells.tolist(), counts.tolist(), strict=True) if matches(box, tuple(cell))
        )
        for box in zeros.boxes
    ]
    assert zeros.violations(table).tolist() == expected
    if counts[zero].sum():
        with pytest.raises(ForbiddenRecords, match=f"^{counts[zero].sum():,} record"):
            zeros.check(table)
    else:
        zeros.check(table)


def test_forbidden_records_are_counted_and_never_shown(zeros):
    records = [[0, 1, 0]] * 1200 + [[0, 0, 1]] * 3 + [[0, 2, 1]] + [[1, 0, 1]] * 50
    with pytest.raises(ForbiddenRecords) as caught:
        zeros.check(ContingencyTable.from_codes(zeros.keys, np.array(records)))
    assert str(caught.value) == (
        "1,204 records are in cells that the rules of zeros.yaml declare impossible: "
        "rule 1 (AGE, MARITAL): 1,201; rule 2 (MARITAL, WORK, AGE): 1,200; rule 3 (AGE, WORK): 4."
    )


def test_one_record_is_said_in_the_singular(zeros):
    with pytest.raises(ForbiddenRecords, match=r"^1 record is in cells .*: rule 3 \(AGE, WORK\): 1\.$"):
        zeros.check(ContingencyTable.from_codes(zeros.keys, np.array([[0, 0, 1], [1, 0, 1]])))


def test_a_long_list_of_broken_rules_is_cut():
    keys = named_keys((30, 2))
    zeros = StructuralZeros(keys, zero_rules_from([{"K0": f"0:{k}", "K1": "1:1"} for k in range(30)]))
    with pytest.raises(ForbiddenRecords, match=r"rule 20 \(K0, K1\): 1; and 10 more rules\.$"):
        zeros.check(ContingencyTable.from_codes(keys, np.array([[k, 1] for k in range(30)])))


def test_a_table_of_other_keys_is_refused(zeros):
    with pytest.raises(InvalidKeys, match="not over the same keys"):
        zeros.check(ContingencyTable.from_codes((AGE,), np.array([[0]])))


def test_an_empty_table_breaks_no_rule(zeros):
    zeros.check(ContingencyTable.from_codes(zeros.keys, np.empty((0, 3), dtype=np.int8)))


def test_tables_beyond_a_word_are_counted_exactly():
    keys = named_keys((10,) * 40)
    rules = [
        {"K0": "0:0", "K39": "39:0"},
        {"K0": "0:0", "K1": ["1:0", "1:1"]},
        {"K39": {"not": ["39:0"]}, "K1": "1:0"},
    ]
    zeros = StructuralZeros(keys, zero_rules_from(rules))
    # Inclusion and exclusion over three rules, in units of the 10^37 cells that agree on the three keys named.
    assert zeros.zero_cells == (10 + 20 + 90 - 2 - 0 - 9 + 0) * 10**37
    assert zeros.zero_cells + zeros.admissible_cells == 10**40
    drawn = zeros.draw_uniform(1000, np.random.default_rng(2))
    assert not zeros.contains(drawn).any()


def test_tiny_probabilities_keep_their_digits():
    keys = named_keys((2,) * 12)
    zeros = StructuralZeros(keys, zero_rules_from([{key.name: key.levels[1] for key in keys}]))
    marginals = [np.array([1 - 1e-20, 1e-20])] * 12
    assert float(zeros.probability(marginals)) == pytest.approx(1e-240, rel=1e-12)
    rare = [np.array([1e-20, 1.0])] * 12
    assert float(zeros.diagram.mass(rare)) == pytest.approx(12e-20, rel=1e-12)


def test_marginals_need_not_sum_to_one(zeros):
    marginals = [np.array([1.0, 2.0, 3.0]), np.array([5.0, 1.0, 1.0]), np.array([2.0, 2.0])]
    scaled = [marginal / marginal.sum() for marginal in marginals]
    assert zeros.probability(marginals) == pytest.approx(zeros.probability(scaled))


def sampling_p_value(drawn, probabilities, cells):
    """How likely counts as far from expectation as these are, by Pearson's chi-square; 0 outside the support."""
    table = {tuple(cell): k for k, cell in enumerate(cells.tolist())}
    counts = np.bincount([table[tuple(cell)] for cell in drawn.tolist()], minlength=len(cells))
    possible = probabilities > 0
    if counts[~possible].any():
        return 0.0
    return float(stats.chisquare(counts[possible], probabilities[possible] * len(drawn)).pvalue)


SKEWED = [np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.4])]
FLAT = [np.full(3, 1 / 3), np.full(3, 1 / 3), np.full(2, 1 / 2)]
DRAWS = 20_000


def given_admissible(zeros, marginals):
    cells = all_cells(zeros.levels)
    mass = np.where(zeros.contains(cells), 0.0, weights(marginals, cells))
    return mass / mass.sum(), cells


@pytest.mark.parametrize("seed", range(5))
def test_draws_follow_the_law_given_admissible(zeros, seed):
    # An honest sampler crosses 1e-6 once in a million runs; the wrong ones below are at 1e-20 and beyond.
    rng = np.random.default_rng(seed)
    assert sampling_p_value(zeros.draw_uniform(DRAWS, rng), *given_admissible(zeros, FLAT)) > 1e-6
    assert sampling_p_value(zeros.draw_product(SKEWED, DRAWS, rng), *given_admissible(zeros, SKEWED)) > 1e-6


def test_a_sampler_that_forgets_the_mass_below_a_node_is_caught(zeros):
    class Forgetful(DecisionDiagram):
        """Draws each level by its own weight, stepping around dead ends: admissible, but not the right law."""

        def _upward(self, weights, impossible):
            return [(mass > 0).astype(float) for mass in super()._upward(weights, impossible)]

    wrong = Forgetful(zeros.diagram.layers, zeros.diagram.root)
    drawn = wrong.draw(SKEWED, DRAWS, np.random.default_rng(0))
    assert not zeros.contains(drawn).any()
    assert sampling_p_value(drawn, *given_admissible(zeros, SKEWED)) < 1e-20


def test_a_sampler_that_forgets_a_rule_is_caught(zeros):
    wrong = build_diagram(zeros.levels, zeros.boxes[:2])
    assert (
        sampling_p_value(wrong.draw(FLAT, DRAWS, np.random.default_rng(0)), *given_admissible(zeros, FLAT)) < 1e-20
    )


def test_the_same_seed_gives_the_same_cells(zeros):
    first, second = (zeros.draw_product(SKEWED, 50, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(first, second)


def test_hundreds_of_rules_give_a_small_diagram_quickly(persons):
    assert len(persons.rules) > 450
    started = time.process_time()
    StructuralZeros(persons.keys, persons.rules)
    assert time.process_time() - started < 2
    assert persons.diagram.node_count() < 1000
    assert persons.small_diagram.node_count() < 150
    assert persons.small_diagram.count() == persons.admissible_cells


def test_hundreds_of_rules_agree_with_reading_them(persons):
    rng = np.random.default_rng(5)
    cells = np.stack([rng.integers(0, size, 1000) for size in persons.levels], axis=1)
    rules = person_rules()
    expected = [any(label_match(rule, KEYS, cell) for rule in rules) for cell in cells.tolist()]
    assert persons.contains(cells).tolist() == expected
    assert 0 < sum(expected) < 1000
    drawn = persons.draw_uniform(100, rng)
    assert not any(label_match(rule, KEYS, cell) for rule in rules for cell in drawn.tolist())


def test_hundreds_of_rules_become_disjoint_conditions(persons):
    conditions = persons.disjoint_conditions()
    assert len(conditions) < persons.diagram.path_count()
    sizes = [int(np.prod([len(levels) for levels in condition], dtype=object)) for condition in conditions]
    assert sum(sizes) == persons.zero_cells
    marginals = [np.random.default_rng(6).dirichlet(np.ones(size)) for size in persons.levels]
    by_condition = sum(
        np.prod([marginal[levels].sum() for marginal, levels in zip(marginals, condition, strict=True)])
        for condition in conditions
    )
    assert float(persons.probability(marginals)) == pytest.approx(by_condition, rel=1e-9)


PAIRS = [{f"K{k}": f"{k}:0", f"K{k + 20}": f"{k + 20}:0"} for k in range(20)]


def test_a_bad_key_order_falls_back_to_a_better_one(monkeypatch):
    monkeypatch.setattr(diagram_builder, "LIMIT", 1 << 12)
    zeros = StructuralZeros(named_keys((2,) * 40), zero_rules_from(PAIRS))
    assert zeros.admissible_cells == 3**20
    with pytest.raises(InvalidRules, match="too large a decision diagram"):
        zeros.diagram_in(range(40))


def test_rules_that_no_order_can_hold_are_an_error(monkeypatch):
    monkeypatch.setattr(diagram_builder, "LIMIT", 1 << 10)
    rng = np.random.default_rng(7)
    rules = [{f"K{k}": f"{k}:{rng.integers(2)}" for k in rng.choice(30, 3, replace=False)} for _ in range(100)]
    with pytest.raises(InvalidRules, match="combine in too many ways"):
        StructuralZeros(named_keys((2,) * 30), zero_rules_from(rules))


def test_too_many_disjoint_conditions_are_an_error(monkeypatch, zeros):
    monkeypatch.setattr(structural_zeros, "MOST_CONDITIONS", 1)
    with pytest.raises(InvalidRules, match="disjoint conditions, more than 1"):
        zeros.disjoint_conditions()


def test_zeros_are_read_from_a_file_and_survive_pickling(tmp_path, zeros):
    path = tmp_path / "zeros.yaml"
    path.write_text(RULES, encoding="utf-8")
    read = StructuralZeros.read(path, zeros.keys)
    assert read == zeros
    assert pickle.loads(pickle.dumps(read)).zero_cells == zeros.zero_cells
