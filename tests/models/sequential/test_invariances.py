"""What must not matter: the order of records, labels, the order of columns, levels that nobody has."""

from dataclasses import replace

import numpy as np
import pytest

from keyhole.arrays import IntVector, Vector
from keyhole.keys.variable import KeyVariable
from keyhole.models.sequential.model import SequentialLogit, SequentialLogitFit
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from tests.models.sequential.people import LEVELS, dependent_people, keys_of, sample_of_codes

MODEL = SequentialLogit(orders=3, nested=0, draws=4)
PEOPLE = 20_000
CLOSE = {"rtol": 1e-6, "atol": 1e-8}


def fitted(sample: Sample) -> SequentialLogitFit:
    return MODEL.fit(sample, rng=np.random.default_rng(0))


def posterior_at(fit: SequentialLogitFit, cells: IntVector) -> tuple[Vector, Vector]:
    """Mean and deviation of log p at given unique cells, in the codes of the fit's own table."""
    place = {position: k for k, position in enumerate(fit.sample.table.uniques.tolist())}
    at = [place[position] for position in fit.sample.table.find(cells).tolist()]
    return fit.posterior.mean[at], fit.posterior.deviation[at]


@pytest.fixture(scope="module")
def codes() -> IntVector:
    return dependent_people(700, rng=np.random.default_rng(21))


@pytest.fixture(scope="module")
def fit(codes: IntVector) -> SequentialLogitFit:
    return fitted(sample_of_codes(codes, PEOPLE))


def uniques_of(fit: SequentialLogitFit) -> IntVector:
    return fit.sample.table.cells[fit.sample.table.uniques].astype(np.int64)


def assert_same(fit: SequentialLogitFit, other: SequentialLogitFit, cells: IntVector) -> None:
    """``cells`` are the uniques of the first fit, written in the codes of the second."""
    mean, deviation = posterior_at(other, cells)
    np.testing.assert_allclose(mean, fit.posterior.mean, **CLOSE)
    np.testing.assert_allclose(deviation, fit.posterior.deviation, **CLOSE)
    assert other.log_score == pytest.approx(fit.log_score, rel=1e-8)
    mine, theirs = fit._by_order(), other._by_order()
    np.testing.assert_allclose(theirs.tau1, mine.tau1, rtol=1e-6)
    np.testing.assert_allclose(theirs.tau2, mine.tau2, rtol=1e-6)


def test_order_of_records(codes: IntVector, fit: SequentialLogitFit) -> None:
    shuffled = fitted(sample_of_codes(np.random.default_rng(1).permutation(codes), PEOPLE))
    assert_same(fit, shuffled, uniques_of(fit))
    np.testing.assert_array_equal(shuffled.scores, fit.scores)


def test_records_given_as_counts(codes: IntVector, fit: SequentialLogitFit) -> None:
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    table = ContingencyTable.from_codes(keys_of(LEVELS), cells, counts)
    assert_same(fit, fitted(Sample(table, PEOPLE)), uniques_of(fit))


def test_labels_of_levels(codes: IntVector, fit: SequentialLogitFit) -> None:
    rng = np.random.default_rng(2)
    relabel = [rng.permutation(size) for size in LEVELS]

    def moved(cells: IntVector) -> IntVector:
        return np.stack([new[column] for new, column in zip(relabel, cells.T, strict=True)], axis=1)

    assert_same(fit, fitted(sample_of_codes(moved(codes), PEOPLE)), moved(uniques_of(fit)))


def test_order_of_columns(codes: IntVector, fit: SequentialLogitFit) -> None:
    turned = np.array([3, 0, 5, 1, 4, 2])
    levels = tuple(LEVELS[key] for key in turned)
    assert_same(fit, fitted(sample_of_codes(codes[:, turned], PEOPLE, levels)), uniques_of(fit)[:, turned])


def test_levels_that_nobody_has(codes: IntVector, fit: SequentialLogitFit) -> None:
    """Empty levels before, between and after the others."""
    spread = 3 * codes + 1
    other = fitted(sample_of_codes(spread, PEOPLE, tuple(3 * size + 4 for size in LEVELS)))
    assert_same(fit, other, 3 * uniques_of(fit) + 1)
    np.testing.assert_array_equal(other.scores, fit.scores)


def test_a_key_with_one_level_changes_nothing(codes: IntVector, fit: SequentialLogitFit) -> None:
    constant = np.zeros((len(codes), 1), dtype=np.int64)
    levels = (*LEVELS[:2], 1, *LEVELS[2:])
    other = fitted(sample_of_codes(np.hstack([codes[:, :2], constant, codes[:, 2:]]), PEOPLE, levels))
    cells = uniques_of(fit)
    assert_same(fit, other, np.hstack([cells[:, :2], constant[: len(cells)], cells[:, 2:]]))
    np.testing.assert_array_equal(other.scores, fit.scores)


def test_labels_are_never_read(codes: IntVector, fit: SequentialLogitFit) -> None:
    table = fit.sample.table
    keys = tuple(KeyVariable(f"other {key.name}", tuple(f"x{x}" for x in key.levels)) for key in table.keys)
    assert_same(fit, fitted(Sample(replace(table, keys=keys), PEOPLE)), uniques_of(fit))


def test_another_sample_is_told_apart(codes: IntVector, fit: SequentialLogitFit) -> None:
    """One record moved: the comparison above must notice."""
    changed = codes.copy()
    changed[0] = changed[1]
    other = fitted(sample_of_codes(changed, PEOPLE))
    both = [k for k, position in enumerate(other.sample.table.find(uniques_of(fit))) if position >= 0]
    still = [k for k in both if other.sample.table.counts[other.sample.table.find(uniques_of(fit)[[k]])[0]] == 1]
    mean, _ = posterior_at(other, uniques_of(fit)[still])
    assert np.abs(mean - fit.posterior.mean[still]).max() > 1e-4
