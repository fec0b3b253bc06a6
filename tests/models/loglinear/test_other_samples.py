"""Another sample from a fitted log-linear model, in expectation and drawn, has the cells that its law says."""

import numpy as np
import pytest
from scipy.stats import poisson

from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import model_named
from keyhole.models.loglinear.graph import Decomposition
from keyhole.models.loglinear.other_samples import copied_by_cliques, poisson_cells
from keyhole.population.sample import Sample
from keyhole.risk.size_index_check import check_size_index
from keyhole.table.contingency import ContingencyTable


def test_expected_cells_are_sums_of_poisson_probabilities() -> None:
    means = np.random.default_rng(1).gamma(0.3, 8.0, 5000)
    means[:100] = 0.0
    sizes = np.arange(1, 61)
    naive = poisson.pmf(sizes[:, None], means).sum(axis=1)
    np.testing.assert_allclose(poisson_cells(means, 60), naive, rtol=1e-9, atol=1e-8)


def test_copies_by_cliques_follow_the_law_of_the_decomposable_model() -> None:
    """Keys 0 and 2 are independent given key 1, whatever they are in the sample."""
    rng = np.random.default_rng(2)
    records = rng.integers(0, 2, (40_000, 3))
    records[:, 1] = np.where(rng.random(40_000) < 0.7, records[:, 0], records[:, 1])
    records[:, 2] = np.where(rng.random(40_000) < 0.6, records[:, 1], records[:, 2])
    records[:, 2] = np.where(rng.random(40_000) < 0.5, records[:, 0], records[:, 2])
    drawn = copied_by_cliques(Decomposition.of([(0, 1), (1, 2)]), records, (2, 2, 2), rng)
    seen, made = (np.bincount(rows @ [4, 2, 1], minlength=8).reshape(2, 2, 2) for rows in (records, drawn))
    fitted = seen.sum(2)[:, :, None] * seen.sum(0)[None] / seen.sum((0, 2))[None, :, None]
    assert np.abs((made - fitted) / np.sqrt(fitted)).max() < 5
    assert np.abs((seen - fitted) / np.sqrt(fitted)).max() > 20


@pytest.mark.parametrize(("model", "fits"), [("independence", False), ("two-way", True)])
def test_a_model_without_the_interactions_does_not_fit_the_size_index(model: str, fits: bool) -> None:
    rng = np.random.default_rng(4)
    habits = rng.dirichlet(np.full(10, 0.5), (3, 3))
    group = rng.integers(0, 3, 4000)
    reach = rng.random((3, 4000, 1))
    edges = [habits[group, j].cumsum(axis=1) for j in range(3)]
    codes = np.stack([(edges[j] < reach[j]).sum(axis=1).clip(max=9) for j in range(3)], axis=1)
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(10)))) for j in range(3))
    sample = Sample(ContingencyTable.from_codes(keys, codes), 100_000)
    check = check_size_index(model_named(model, draws=20).fit(sample, rng=rng), rng=rng)
    assert check is not None
    assert (check.misfit < 3) == fits
