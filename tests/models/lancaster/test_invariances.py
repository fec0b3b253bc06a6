"""What must not matter: the order of records, labels, the order of columns, levels that nobody has."""

import numpy as np
import pytest

from keyhole.arrays import IntVector
from keyhole.models.lancaster.model import LancasterAdditive, LancasterFit
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from tests.models.sequential.people import LEVELS, dependent_people, keys_of, sample_of_codes

PEOPLE = 20_000


@pytest.fixture(scope="module")
def codes() -> IntVector:
    return dependent_people(500, rng=np.random.default_rng(21))


@pytest.fixture(scope="module", params=[2, 3])
def fit(codes: IntVector, request: pytest.FixtureRequest) -> LancasterFit:
    return fitted(sample_of_codes(codes, PEOPLE), request.param)


def fitted(sample: Sample, order: int) -> LancasterFit:
    return LancasterAdditive(order=order).fit(sample, rng=np.random.default_rng(0))


def uniques_of(fit: LancasterFit) -> IntVector:
    return fit.sample.table.cells[fit.sample.table.uniques].astype(np.int64)


def assert_same(fit: LancasterFit, sample: Sample, cells: IntVector) -> None:
    """``cells`` are the uniques of the fit, written in the codes of the other sample."""
    other = fitted(sample, fit.order)
    place = {position: k for k, position in enumerate(sample.table.uniques.tolist())}
    at = [place[position] for position in sample.table.find(cells).tolist()]
    np.testing.assert_allclose(other.probability[at], fit.probability, rtol=1e-9, atol=1e-18)
    one, two = fit.shrinkage_path, other.shrinkage_path
    for name in ("tau1", "tau2", "tau1_plain", "tau2_plain"):
        np.testing.assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-8)
    np.testing.assert_allclose(two.held_out.score, one.held_out.score, rtol=1e-8)
    assert other.shrinkage == fit.shrinkage


def test_order_of_records(codes: IntVector, fit: LancasterFit) -> None:
    shuffled = sample_of_codes(np.random.default_rng(1).permutation(codes), PEOPLE)
    assert_same(fit, shuffled, uniques_of(fit))


def test_records_given_as_counts(codes: IntVector, fit: LancasterFit) -> None:
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    table = ContingencyTable.from_codes(keys_of(LEVELS), cells, counts)
    assert_same(fit, Sample(table, PEOPLE), uniques_of(fit))


def test_labels_of_levels(codes: IntVector, fit: LancasterFit) -> None:
    rng = np.random.default_rng(2)
    relabel = [rng.permutation(size) for size in LEVELS]

    def moved(cells: IntVector) -> IntVector:
        return np.stack([new[column] for new, column in zip(relabel, cells.T, strict=True)], axis=1)

    assert_same(fit, sample_of_codes(moved(codes), PEOPLE), moved(uniques_of(fit)))


def test_order_of_columns(codes: IntVector, fit: LancasterFit) -> None:
    turned = np.array([3, 0, 5, 1, 4, 2])
    levels = tuple(LEVELS[key] for key in turned)
    assert_same(fit, sample_of_codes(codes[:, turned], PEOPLE, levels), uniques_of(fit)[:, turned])


def test_levels_that_nobody_has(codes: IntVector, fit: LancasterFit) -> None:
    spread = sample_of_codes(3 * codes + 1, PEOPLE, tuple(3 * size + 4 for size in LEVELS))
    assert_same(fit, spread, 3 * uniques_of(fit) + 1)


def test_another_sample_is_told_apart(codes: IntVector, fit: LancasterFit) -> None:
    """One record moved: the comparison above must notice."""
    changed = codes.copy()
    changed[0] = changed[1]
    other = fitted(sample_of_codes(changed, PEOPLE), fit.order)
    assert not np.allclose(other.shrinkage_path.tau1, fit.shrinkage_path.tau1, rtol=1e-6)
