"""The mean of 1 / (f + U) for a Poisson count with a gamma mean."""

import numpy as np
import pytest
from scipy import stats

from keyhole.numerics.binomial_match import poisson_match
from keyhole.numerics.gamma_poisson_match import gamma_poisson_match
from keyhole.population.negative_binomial import NegativeBinomialUnsampled


@pytest.mark.parametrize("count", [1, 2, 7, 300])
@pytest.mark.parametrize("shape", [0.3, 1.0, 2.5, 40.0, 1e6])
@pytest.mark.parametrize("mean", [0.01, 1.0, 30.0, 900.0])
def test_it_is_the_sum_over_the_law(count: int, shape: float, mean: float) -> None:
    law = stats.nbinom(shape, shape / (shape + mean))
    counts = np.arange(int(law.isf(1e-13)) + 1)
    summed = float((law.pmf(counts) / (count + counts)).sum())
    found = gamma_poisson_match(np.array([count]), np.array([shape]), np.array([mean]))
    assert found[0] == pytest.approx(summed, rel=1e-8)


def test_with_one_record_it_is_the_closed_form() -> None:
    shape, mean = (grid.ravel() for grid in np.meshgrid([0.05, 0.5, 3.0, 1e4], [1e-9, 1e-3, 5.0, 1e7]))
    closed = NegativeBinomialUnsampled(shape, shape / (shape + mean)).mean_match()
    found = gamma_poisson_match(np.ones(len(shape), dtype=np.int64), shape, mean)
    np.testing.assert_allclose(found, closed, rtol=1e-7)


def test_without_spread_it_is_the_poisson_count() -> None:
    counts, mean = np.array([1, 3, 50]), np.array([0.2, 40.0, 3.0])
    found = gamma_poisson_match(counts, np.full(3, 1e10), mean)
    np.testing.assert_allclose(found, poisson_match(counts, mean), rtol=1e-7)
    assert not np.allclose(gamma_poisson_match(counts, np.full(3, 2.0), mean), poisson_match(counts, mean))
