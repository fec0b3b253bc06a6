"""Does the two-way comparator find the maximum-likelihood fit that a dense table gives?"""

from itertools import combinations, product

import numpy as np
import pytest
from benchmarks.peers.two_way import TwoWay
from numpy.typing import NDArray

from keyhole import assess_risk
from keyhole.errors import FitFailed
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable

NO_EMPTY_MARGIN = np.array([[[4, 1, 0], [1, 3, 2]], [[0, 1, 5], [6, 1, 1]], [[2, 0, 1], [1, 7, 1]]])
EMPTY_MARGINS = np.array([[[4, 1, 0], [1, 3, 0]], [[0, 0, 5], [0, 0, 1]], [[2, 0, 1], [1, 0, 1]]])


def sample_of_table(counts: NDArray[np.int64], population_size: int) -> Sample:
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(size)))) for j, size in enumerate(counts.shape))
    cells = np.argwhere(counts)
    return Sample(ContingencyTable.from_codes(keys, cells, counts[counts > 0]), population_size)


def dense_fit(counts: NDArray[np.int64], pairs: list[tuple[int, int]], rounds: int = 5000) -> NDArray[np.float64]:
    """Iterative proportional fitting on the whole table, 0/0 taken as 0."""
    fitted = np.ones(counts.shape)
    for _ in range(rounds):
        for pair in pairs:
            others = tuple(j for j in range(counts.ndim) if j not in pair)
            now, wanted = fitted.sum(others, keepdims=True), counts.sum(others, keepdims=True)
            fitted = fitted * np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
    return fitted


@pytest.mark.parametrize("counts", [NO_EMPTY_MARGIN, EMPTY_MARGINS])
def test_the_fit_is_that_of_the_dense_table(counts: NDArray[np.int64]) -> None:
    pairs = list(combinations(range(3), 2))
    sample = sample_of_table(counts, 1000)
    fit = TwoWay(tolerance=1e-10, most_rounds=5000).fit(sample, rng=np.random.default_rng(0))
    expected = dense_fit(counts, pairs)[tuple(sample.table.cells[sample.table.uniques].T)]
    np.testing.assert_allclose(fit.fitted, expected, atol=1e-6)
    possible = sum(
        all(counts.sum(tuple(j for j in range(3) if j not in p))[cell[p[0]], cell[p[1]]] for p in pairs)
        for cell in product(*map(range, counts.shape))
    )
    assert fit.active == possible
    # Broken on purpose: one margin forgotten is another model, and this test must tell.
    wrong = dense_fit(counts, pairs[:2])[tuple(sample.table.cells[sample.table.uniques].T)]
    assert np.abs(fit.fitted - wrong).max() > 0.01


def test_two_keys_are_fitted_as_observed_and_scaled_to_the_population() -> None:
    sample = sample_of_table(np.array([[1, 4], [3, 1], [0, 1]]), 10 + 25)
    (law,) = TwoWay().fit(sample, rng=np.random.default_rng(0)).unsampled()
    np.testing.assert_allclose(law.mean, 25 / 10)


def test_it_goes_through_assess_risk() -> None:
    found = assess_risk(TwoWay(), sample_of_table(NO_EMPTY_MARGIN, 400), seed=1)
    assert found.status == "ok"
    assert found.tau1 is not None
    assert found.tau2 is not None
    assert 0 < found.tau1.estimate < found.tau2.estimate < found.sample.uniques


def test_too_many_cells_and_too_few_keys_are_refused() -> None:
    with pytest.raises(FitFailed, match="More than 7 combinations"):
        TwoWay(most_cells=7).fit(sample_of_table(NO_EMPTY_MARGIN, 400), rng=np.random.default_rng(0))
    with pytest.raises(FitFailed, match="at least two key variables"):
        TwoWay().fit(sample_of_table(np.array([1, 2]), 400), rng=np.random.default_rng(0))
