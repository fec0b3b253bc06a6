"""What a key contributes, against counting records by hand."""

from collections import Counter

import numpy as np

from keyhole.keys.variable import MISSING, KeyVariable
from keyhole.risk.drivers import coarsening, key_contributions, level_contributions
from keyhole.table.contingency import ContingencyTable
from tests.risk.samples import random_sample


def records_of(sample: object) -> np.ndarray:
    table = sample.table  # type: ignore[attr-defined]
    return np.repeat(table.cells, table.counts, axis=0)


def unique_rows(rows: np.ndarray) -> set[int]:
    counts = Counter(map(tuple, rows))
    return {i for i, row in enumerate(map(tuple, rows)) if counts[row] == 1}


def test_dropping_a_key_loses_the_uniques_that_it_made() -> None:
    sample = random_sample()
    rows = records_of(sample)
    alone = unique_rows(rows)
    r1 = np.random.default_rng(1).uniform(size=sample.uniques)
    risk = dict(zip(sorted(alone), r1, strict=True))
    found = {key.key: key for key in key_contributions(sample.table, r1)}
    for j, key in enumerate(sample.table.keys):
        lost = alone - unique_rows(np.delete(rows, j, axis=1))
        assert found[key.name].dropped.uniques_lost == len(lost)
        assert np.isclose(found[key.name].dropped.tau1_lost, sum(risk[i] for i in lost))


def test_coarsening_a_key_loses_fewer_than_dropping_it() -> None:
    sample = random_sample()
    rows = records_of(sample)
    for j, found in enumerate(
        sorted(key_contributions(sample.table, np.ones(sample.uniques)), key=lambda k: k.key)
    ):
        merged, words = coarsening(sample.table.keys[j], np.bincount(rows[:, j], minlength=found.levels))
        coarse = rows.copy()
        coarse[:, j] = merged[rows[:, j]]
        assert found.coarsened is not None
        assert found.coarsened.words == words
        assert found.coarsened.uniques_lost == len(unique_rows(rows) - unique_rows(coarse))
        assert found.coarsened.uniques_lost <= found.dropped.uniques_lost


def test_levels_share_out_the_risk() -> None:
    sample = random_sample()
    r1 = np.random.default_rng(1).uniform(size=sample.uniques)
    levels = level_contributions(sample.table, r1)
    for key in sample.table.keys:
        mine = [level for level in levels if level.key == key.name]
        assert np.isclose(sum(level.tau1 for level in mine), r1.sum())
        assert sum(level.uniques for level in mine) == sample.uniques
    top = levels[0]
    assert np.isclose(top.lift, top.tau1 / r1.sum() / (top.records / sample.sample_size))


def test_missing_values_are_joined_with_nothing() -> None:
    ages = KeyVariable("AGE", ("9", "10", "70", MISSING))
    assert coarsening(ages, np.array([5, 5, 5, 5]))[0].tolist() == [0, 0, 1, 3]
    eyes = KeyVariable("EYES", ("blue", "brown", "green", MISSING))
    assert coarsening(eyes, np.array([7, 9, 1, 0]))[0].tolist() == [1, 0, 1, 3]
    first = KeyVariable("AGE", (MISSING, "9", "10", "70"))
    assert coarsening(first, np.array([5, 5, 5, 5]))[0].tolist() == [3, 0, 0, 1]


def test_a_key_of_two_levels_and_missing_values_is_not_coarsened() -> None:
    keys = (KeyVariable("SEX", ("female", "male", MISSING)), KeyVariable("EYES", ("blue", "brown", "green")))
    table = ContingencyTable.from_codes(keys, np.array([[0, 0], [1, 1], [2, 2], [0, 2]]))
    found = {one.key: one.coarsened for one in key_contributions(table, np.ones(4))}
    assert found["SEX"] is None
    assert found["EYES"] is not None
