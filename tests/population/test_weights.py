"""What weights mean for a model: their mean given the keys, and the chance of being drawn."""

import numpy as np
import pytest

from keyhole.errors import InvalidPopulation
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.population.weights import (
    design_effect,
    inclusion,
    mean_weights,
    pseudo_counts,
    weights_differ_within_cells,
)
from keyhole.table.contingency import ContingencyTable

KEYS = tuple(KeyVariable(name, tuple(map(str, range(size)))) for name, size in (("A", 5), ("B", 4), ("C", 6)))


def people(size: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(len(key), size=size) for key in KEYS], axis=1)


def factors_of(codes: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(7)
    return np.asarray(
        10 * np.exp(0.6 * rng.standard_normal(5)[codes[:, 0]] + 0.4 * rng.standard_normal(4)[codes[:, 1]])
    )


def test_weights_that_are_a_function_of_the_keys_stay_as_they_are() -> None:
    codes = people(900)
    weights = 1.0 + codes[:, 0] * codes[:, 1] + 0.1 * codes[:, 2]
    table = ContingencyTable.from_codes(KEYS, codes, weights=weights)
    assert not weights_differ_within_cells(table)
    expected = 1.0 + table.cells[:, 0].astype(float) * table.cells[:, 1] + 0.1 * table.cells[:, 2]
    np.testing.assert_allclose(mean_weights(table), expected, rtol=1e-12)


def test_weights_that_differ_between_alike_records_are_smoothed() -> None:
    """Towards the mean given the keys; the sum of weights of every level of every key stays."""
    codes = people(4000)
    truth = factors_of(codes)
    weights = truth * np.random.default_rng(3).gamma(4.0, 0.25, 4000)
    table = ContingencyTable.from_codes(KEYS, codes, weights=weights)
    assert weights_differ_within_cells(table)
    found = mean_weights(table)
    assert found is not None
    for key in range(3):
        sums = np.bincount(table.cells[:, key], found * table.counts)
        np.testing.assert_allclose(sums, np.bincount(codes[:, key], weights), rtol=1e-6)
    right = factors_of(table.cells.astype(np.int64))
    assert table.weights is not None
    raw = table.weights / table.counts
    assert np.abs(found / right - 1).mean() < 0.6 * np.abs(raw / right - 1).mean()


def test_the_chance_of_being_drawn_is_that_of_the_cell() -> None:
    """Records drawn with probability 1/w are the likely ones: their own 1/w overstates that of their cell."""
    rng = np.random.default_rng(5)
    codes = people(200_000)
    weights = np.maximum(factors_of(codes) * 8 * np.exp(rng.normal(0, 0.9, len(codes))), 1.0)
    taken = rng.random(len(codes)) < 1 / weights
    table = ContingencyTable.from_codes(KEYS, codes[taken], weights=weights[taken])
    found = mean_weights(table)
    assert found is not None
    packed = np.ravel_multi_index(tuple(codes.T), tuple(map(len, KEYS)))
    drawn = np.bincount(packed, 1 / weights) / np.bincount(packed)
    at = np.ravel_multi_index(tuple(table.cells.T.astype(np.int64)), tuple(map(len, KEYS)))
    assert abs((found * drawn[at]).mean() - 1) < 0.03
    own = np.bincount(packed[taken], 1 / weights[taken]) / np.bincount(packed[taken])
    assert (own[at] / drawn[at]).mean() > 1.5


def test_counts_add_up_to_the_effective_size_and_chances_to_one_without_weights() -> None:
    codes = people(500)
    sample = Sample(ContingencyTable.from_codes(KEYS, codes, weights=factors_of(codes)), 20_000)
    assert pseudo_counts(sample).sum() == pytest.approx(500 / design_effect(sample))
    plain = Sample(ContingencyTable.from_codes(KEYS, codes), 20_000)
    np.testing.assert_array_equal(pseudo_counts(plain), plain.table.counts)
    np.testing.assert_allclose(inclusion(plain), 500 / 20_000)
    assert design_effect(plain) == 1.0


def test_a_cell_without_a_positive_weight_is_refused() -> None:
    with pytest.raises(InvalidPopulation, match="positive"):
        ContingencyTable.from_codes(KEYS, people(3), weights=np.array([1.0, 0.0, 2.0]))
