"""Synthetic files: what they may hold, what they keep, and what is put in for missing values."""

import numpy as np
import pytest
from scipy import stats

from keyhole.arrays import Codes, Mask, Vector
from keyhole.errors import FitFailed
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.synthesis.class_draws import Length
from keyhole.synthesis.generator import _given_others, _without_empty, binds, sampler_of, synthesize
from keyhole.synthesis.imputation import _members, _redrawn, complete_by_turns
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import zero_rules_from
from tests.sampler_checks import keys_of

SHORT = Length(60, 2, 20, 2)
SIZES = (3, 4, 2)
ZEROS = StructuralZeros(keys_of(SIZES), zero_rules_from([{"K0": "0", "K1": "1"}, {"K1": ["2", "3"], "K2": "1"}]))


def associated(records: int, rng: np.random.Generator, levels: int = 3) -> Codes:
    """The second key is the first nine times in ten; the third is apart."""
    first = rng.integers(0, levels, records)
    other = rng.integers(0, levels, records)
    second = np.where(rng.random(records) < 0.85, first, other)
    return np.stack([first, second, rng.integers(0, 2, records)], axis=1)


def state_of(weight: Vector, theta: Vector, records: int, keys: int) -> LatentClasses:
    tiny = np.log(np.maximum(theta, 1e-12))
    none = np.zeros(len(weight))
    return LatentClasses(np.log(weight), tiny, none, np.ones(keys), np.ones(len(theta)), 1.0, records)


def sorted_rows(codes: Codes) -> Codes:
    return codes[np.lexsort(codes.T[::-1])]


def possible(records: int, rng: np.random.Generator) -> Codes:
    cells = np.array([[a, b, c] for a in range(3) for b in range(4) for c in range(2)])
    cells = cells[~ZEROS.contains(cells)]
    share = rng.dirichlet(np.ones(len(cells)))
    return cells[rng.choice(len(cells), records, p=share)]


# Whole records.


def test_files_are_as_asked() -> None:
    rng = np.random.default_rng(1)
    codes = associated(120, rng)
    sampler = sampler_of((3, 3, 2), len(codes), None, 10)
    made = synthesize(sampler, codes, copies=3, length=SHORT, rng=rng)
    assert [len(copy) for copy in made.copies] == [120] * 3
    assert len(made.generating) == 3
    for copy in made.copies:
        assert copy.dtype == np.int32
        assert ((copy >= 0) & (copy < sampler.sizes)).all()
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (sorted_rows(made.copies[one]) != sorted_rows(made.copies[other])).any()
        assert (made.generating[one].log_theta != made.generating[other].log_theta).any()
    assert binds(made) == (made.draws.most_classes >= 9)
    (larger,) = synthesize(sampler, codes, copies=1, records=777, length=SHORT, rng=rng).copies
    assert len(larger) == 777


def test_the_order_of_the_file_leaves_no_trace() -> None:
    codes = associated(200, np.random.default_rng(2))
    sampler = sampler_of((3, 3, 2), len(codes), None, 10)
    turned = np.random.default_rng(0).permutation(codes)
    one, other = (
        synthesize(sampler, file, copies=2, length=SHORT, rng=np.random.default_rng(5)) for file in (codes, turned)
    )
    for first, second in zip(one.copies, other.copies, strict=True):
        np.testing.assert_array_equal(first, second)


def test_marginals_and_associations_are_those_of_the_file() -> None:
    rng = np.random.default_rng(3)
    codes = associated(2_000, rng)
    sampler = sampler_of((3, 3, 2), len(codes), None, 10)
    (copy,) = synthesize(sampler, codes, copies=1, length=SHORT, rng=rng).copies
    tables = [np.histogramdd(file[:, :2], (3, 3), ((0, 3), (0, 3)))[0] / 2_000 for file in (codes, copy)]
    assert np.abs(tables[0] - tables[1]).max() < 0.04


def test_no_record_comes_from_a_class_that_nobody_has() -> None:
    """Three classes, each sure of its level; nobody has the third level."""
    rng = np.random.default_rng(4)
    theta = np.concatenate([np.eye(3)] * 4)
    state = state_of(np.full(3, 1 / 3), theta, 50, 4)
    codes = np.repeat(rng.integers(0, 2, 50)[:, None], 4, axis=1)
    sampler = LatentClassSampler((3,) * 4, 3)
    fewer = _without_empty(sampler, state, codes, rng)
    np.testing.assert_allclose(np.exp(fewer.log_weight), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(np.exp(state.log_weight), 1 / 3)  # the chain's own state is left alone
    member = rng.choice(3, 1_000, p=np.exp(fewer.log_weight))
    assert sampler.levels_of(member, fewer, rng).max() == 1
    kept = _given_others(sampler, fewer, codes, (1, 2), None, rng)
    np.testing.assert_array_equal(kept, codes)


def test_weights_of_the_classes_of_each_copy_add_up_to_one() -> None:
    rng = np.random.default_rng(5)
    codes = associated(100, rng)
    sampler = sampler_of((3, 3, 2), len(codes), None, 20)
    made = synthesize(sampler, codes, copies=4, length=SHORT, rng=rng)
    for state in made.generating:
        assert np.exp(state.log_weight).sum() == pytest.approx(1)
        assert np.isneginf(state.log_weight).any()


@pytest.mark.parametrize("only", [None, (1,), (1, 2), (0, 1, 2)])
def test_no_file_holds_what_cannot_be(only: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(6)
    codes = possible(150, rng)
    sampler = sampler_of(SIZES, len(codes), ZEROS, 8)
    made = synthesize(sampler, codes, copies=3, only=only, zeros=ZEROS, length=SHORT, rng=rng)
    for copy in made.copies:
        assert not ZEROS.contains(copy).any()
        assert ((copy >= 0) & (copy < SIZES)).all()


def test_a_rule_that_leaves_nothing_is_told() -> None:
    theta = np.concatenate([np.eye(3)[:, :1], np.eye(4)[:, 1:2], np.eye(2)[:, :1]])
    state = state_of(np.ones(1), theta, 5, 3)
    codes = np.zeros((5, 3), dtype=np.int64)
    with pytest.raises(FitFailed, match="next to nothing"):
        _given_others(LatentClassSampler(SIZES, 1), state, codes, (1,), ZEROS, np.random.default_rng(0))


# Some keys of each record.


def test_the_other_keys_are_kept_and_shuffled() -> None:
    rng = np.random.default_rng(7)
    codes = np.column_stack([np.arange(150), associated(150, rng)])  # the first key tells where a record was
    sampler = sampler_of((150, 3, 3, 2), 150, None, 10)
    made = synthesize(sampler, codes, copies=2, only=(1, 3), length=SHORT, rng=rng)
    for copy in made.copies:
        np.testing.assert_array_equal(sorted_rows(copy[:, [0, 2]]), sorted_rows(codes[:, [0, 2]]))
        assert abs(stats.spearmanr(np.arange(150), copy[:, 0]).statistic) < 0.3
        back = copy[np.argsort(copy[:, 0])]
        assert (back[:, [1, 3]] != codes[:, [1, 3]]).any()
    assert (made.copies[0][:, 0] != made.copies[1][:, 0]).any()


def conditional(codes: Codes, levels: int = 3) -> Vector:
    """The share of the levels of the second key among records with each level of the first."""
    table = np.histogram2d(codes[:, 0], codes[:, 1], levels, ((0, levels), (0, levels)))[0]
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def test_new_levels_depend_on_those_that_are_kept() -> None:
    rng = np.random.default_rng(8)
    codes = associated(2_000, rng)
    sampler = sampler_of((3, 3, 2), len(codes), None, 10)
    made = synthesize(sampler, codes, copies=3, only=(1,), length=SHORT, rng=rng)
    found = np.mean([conditional(copy) for copy in made.copies], axis=0)
    np.testing.assert_allclose(found, conditional(codes), atol=0.05)


def test_levels_given_others_follow_the_law_of_the_state() -> None:
    """Two classes by hand: p(second | first) is exact, with and without what cannot be."""
    rng = np.random.default_rng(9)
    weight = np.array([0.3, 0.7])
    first = np.array([[0.7, 0.2], [0.2, 0.2], [0.1, 0.6]])
    second = np.array([[0.1, 0.4], [0.2, 0.4], [0.3, 0.1], [0.4, 0.1]])
    theta = np.concatenate([first, second, np.array([[0.5, 0.9], [0.5, 0.1]])])
    joint = np.einsum("k,ak,bk,ck->abc", weight, first, second, theta[7:])
    sampler = LatentClassSampler(SIZES, 2)
    codes = np.zeros((40_000, 3), dtype=np.int64)
    codes[:, 0] = 2
    state = state_of(weight, theta, len(codes), 3)
    cells = np.array([[2, b, c] for b in range(4) for c in range(2)])
    for zeros in (None, ZEROS):
        law = joint[2].copy().ravel()
        law[zeros.contains(cells) if zeros is not None else []] = 0.0
        made = _given_others(sampler, state, codes, (1, 2), zeros, rng)
        seen = np.bincount(made[:, 1] * 2 + made[:, 2], minlength=8)
        there = law > 0
        assert seen[~there].sum() == 0
        assert stats.chisquare(seen[there], len(codes) * law[there] / law.sum()).pvalue > 1e-4


# Missing values.


def test_nothing_missing_is_the_same_as_no_word_of_it() -> None:
    codes = associated(100, np.random.default_rng(10))
    sampler = sampler_of((3, 3, 2), len(codes), None, 10)
    none: Mask = np.zeros(codes.shape, dtype=bool)
    one, other = (
        synthesize(sampler, codes, copies=2, missing=missing, length=SHORT, rng=np.random.default_rng(1))
        for missing in (None, none)
    )
    for first, second in zip(one.copies, other.copies, strict=True):
        np.testing.assert_array_equal(first, second)


def test_values_that_are_there_stay_and_what_stands_for_missing_does_not_matter() -> None:
    rng = np.random.default_rng(11)
    codes = associated(150, rng)
    sampler = sampler_of((3, 3, 2), len(codes), None, 10)
    missing: Mask = rng.random(codes.shape) < 0.2
    found = []
    for filler in (0, -1):
        file = np.where(missing, filler, codes)
        drawn, files = complete_by_turns(sampler, file, missing, 3, SHORT, rng=np.random.default_rng(2))
        assert len(drawn.states) == len(files) == 3
        for one in files:
            assert ((one >= 0) & (one < sampler.sizes)).all()
            np.testing.assert_array_equal(one[~missing], codes[~missing])
        found.append(files)
    for first, second in zip(*found, strict=True):
        np.testing.assert_array_equal(first, second)


def test_missing_values_follow_their_records() -> None:
    """Missing completely at random: their law given the first key is that of the values that are there."""
    rng = np.random.default_rng(12)
    codes = associated(900, rng)
    sampler = sampler_of((3, 3, 2), len(codes), None, 10)
    missing: Mask = np.zeros(codes.shape, dtype=bool)
    missing[rng.random(900) < 0.3, 1] = True
    _, files = complete_by_turns(sampler, codes, missing, 6, Length(100, 5, 20, 2), rng=rng)
    gone = missing[:, 1]
    found = np.mean([conditional(file[gone]) for file in files], axis=0)
    np.testing.assert_allclose(found, conditional(codes[~gone]), atol=0.07)


def test_records_alike_have_their_classes_by_chance_and_not_by_their_place() -> None:
    rng = np.random.default_rng(13)
    sampler = LatentClassSampler((2, 3), 2)
    state = state_of(np.array([0.5, 0.5]), np.full((5, 2), 0.4), 60, 2)
    codes = np.array([[1, 2], [0, 1], [1, 0]] * 20)
    tree = CellTree.of((2, 3), codes)
    share = np.mean([_members(sampler, state, tree, codes, rng) for _ in range(1_000)], axis=0)
    np.testing.assert_allclose(share, 0.5, atol=0.08)


def test_the_class_of_a_record_is_its_own() -> None:
    rng = np.random.default_rng(14)
    sampler = LatentClassSampler((3, 2), 3)  # the order of keys in a tree is not that of the file
    state = state_of(np.full(3, 1 / 3), np.concatenate([np.eye(3), np.full((2, 3), 0.5)]), 90, 2)
    codes = np.stack([rng.integers(0, 3, 90), rng.integers(0, 2, 90)], axis=1)
    member = _members(sampler, state, CellTree.of((3, 2), codes), codes, rng)
    np.testing.assert_array_equal(member, codes[:, 0])


def test_missing_values_given_a_class_follow_its_law_among_what_can_be() -> None:
    """One class with impossible cells: the values that a record keeps or gets have the right law, turn by turn."""
    rng = np.random.default_rng(15)
    sampler = LatentClassSampler(SIZES, 1, diagram=ZEROS.small_diagram)
    first, second, third = np.array([0.2, 0.3, 0.5]), np.array([0.02, 0.48, 0.3, 0.2]), np.array([0.1, 0.9])
    state = state_of(np.ones(1), np.concatenate([first, second, third])[:, None], 20_000, 3)
    file = np.zeros((20_000, 3), dtype=np.int64)
    missing: Mask = np.tile([False, True, True], (20_000, 1))
    law = np.outer(second, third)
    cells = np.array([[0, b, c] for b in range(4) for c in range(2)])
    law[ZEROS.contains(cells).reshape(4, 2)] = 0.0
    made = _redrawn(sampler, state, file, missing, np.zeros(20_000, dtype=np.int64), rng)
    seen = np.bincount(made[:, 1] * 2 + made[:, 2], minlength=8)
    there = law.ravel() > 0
    assert seen[~there].sum() == 0
    for _ in range(30):
        made = _redrawn(sampler, state, made, missing, np.zeros(20_000, dtype=np.int64), rng)
    seen = np.bincount(made[:, 1] * 2 + made[:, 2], minlength=8)
    assert stats.chisquare(seen[there], 20_000 * law.ravel()[there] / law.sum()).pvalue > 1e-4


def test_missing_values_that_cannot_be_filled_in_are_told() -> None:
    zeros = StructuralZeros(keys_of((2, 2)), zero_rules_from([{"K0": "0"}]))
    sampler = LatentClassSampler((2, 2), 3, diagram=zeros.small_diagram)
    missing: Mask = np.array([[False, True], [False, False]])
    with pytest.raises(FitFailed, match="1 records"):
        complete_by_turns(sampler, np.array([[0, 0], [1, 1]]), missing, 1, SHORT, rng=np.random.default_rng(0))


def test_what_is_put_in_for_missing_values_can_be() -> None:
    rng = np.random.default_rng(14)
    codes = possible(150, rng)
    missing: Mask = rng.random(codes.shape) < 0.25
    sampler = sampler_of(SIZES, len(codes), ZEROS, 8)
    _, files = complete_by_turns(sampler, codes, missing, 5, SHORT, rng=rng)
    for file in files:
        assert not ZEROS.contains(file).any()
        np.testing.assert_array_equal(file[~missing], codes[~missing])
    made = synthesize(sampler, codes, copies=2, only=(1,), zeros=ZEROS, missing=missing, length=SHORT, rng=rng)
    for copy in made.copies:
        assert not ZEROS.contains(copy).any()
