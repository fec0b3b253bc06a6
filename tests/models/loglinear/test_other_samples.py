"""Another sample from a fitted log-linear model, in expectation and drawn, has the cells that its law says."""

import numpy as np
import pytest
from scipy.stats import poisson

from keyhole.inference.other_samples import poisson_cells
from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import model_named
from keyhole.models.loglinear import means as means_module
from keyhole.models.loglinear.chosen import LassoFit
from keyhole.models.loglinear.graph import Decomposition
from keyhole.models.loglinear.junction_tree import fit_tree
from keyhole.models.loglinear.lasso import fit_lasso
from keyhole.models.loglinear.model import LogLinearFit
from keyhole.models.loglinear.other_samples import copied_by_cliques
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


def test_draws_from_a_junction_tree_follow_its_law() -> None:
    """Keys around a circle of four, which copying cannot do; cells with a zero margin are never drawn."""
    rng = np.random.default_rng(6)
    table = rng.gamma(0.8, 20.0, (3, 2, 4, 2))
    table[0, 1] = 0.0
    cells = np.argwhere(table > 0)
    fit = fit_tree(((0, 1), (1, 2), (2, 3), (0, 3)), cells, table[table > 0], table.shape)
    everything = np.argwhere(np.ones(table.shape))
    expected = np.exp(fit.log_fitted(everything))
    expected *= 60_000 / expected.sum()
    drawn = fit.draw(60_000, rng)
    made = np.bincount(np.ravel_multi_index(tuple(drawn.T), table.shape), minlength=table.size)
    possible = expected > 0
    assert not made[~possible].any()
    assert np.abs((made - expected)[possible] / np.sqrt(expected[possible])).max() < 4.5
    # The sample's own table is not it: all four keys act together there.
    own = table.ravel() * 60_000 / table.sum()
    assert np.abs((made - own)[possible] / np.sqrt(own[possible])).max() > 20


def grouped_people(number: int = 3) -> Sample:
    """Three groups of people with habits of their own: keys of ten levels that depend on each other in pairs."""
    rng = np.random.default_rng(4)
    habits = rng.dirichlet(np.full(10, 0.5), (3, number))
    group = rng.integers(0, 3, 4000)
    reach = rng.random((number, 4000, 1))
    edges = [habits[group, j].cumsum(axis=1) for j in range(number)]
    codes = np.stack([(edges[j] < reach[j]).sum(axis=1).clip(max=9) for j in range(number)], axis=1)
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(10)))) for j in range(number))
    return Sample(ContingencyTable.from_codes(keys, codes), 100_000)


@pytest.mark.parametrize(
    ("model", "options", "fits"),
    [
        ("independence", {"draws": 20}, False),
        ("two-way", {"draws": 20}, True),
        ("lasso", {}, True),
        ("lancaster", {"shrinkage": 0.0}, False),
        ("lancaster", {}, True),
    ],
    ids=["independence", "two-way", "lasso", "lancaster without interactions", "lancaster"],
)
def test_a_model_without_the_interactions_does_not_fit_the_size_index(
    model: str, options: dict[str, object], fits: bool
) -> None:
    sample, rng = grouped_people(), np.random.default_rng(5)
    check = check_size_index(model_named(model, **options).fit(sample, rng=rng), rng=rng)
    assert check is not None
    assert (check.misfit < 3) == fits


@pytest.mark.parametrize("most_cells", [10**6, 100], ids=["every cell", "cells that stand for others"])
def test_other_samples_from_the_lasso_have_the_cells_of_its_means(most_cells: int) -> None:
    sample = grouped_people()
    chosen = fit_lasso(sample, most_cells=most_cells, cells_drawn=2000, rng=np.random.default_rng(1))
    assert (chosen.fitted.weights is None) is (most_cells > 1000)
    sizes = np.array([1, 2, 5])
    found = LassoFit(sample, chosen, None).expected_cells(sizes, np.random.default_rng(2))
    every = fit_lasso(sample, rng=np.random.default_rng(1)).fitted.fitted
    expected = poisson.pmf(sizes[:, None], every).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9 if most_cells > 1000 else 0.1)


def test_a_model_on_a_junction_tree_says_what_other_samples_look_like(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does on active cells."""
    sample, sizes, found = grouped_people(4), np.arange(1, 4), []
    model = model_named("loglinear", generators="K0*K1 + K1*K2 + K2*K3 + K0*K3", draws=20)
    for fewest in (1, 10**9):
        monkeypatch.setattr(means_module, "FEWEST_TREE_CELLS", fewest)
        fit = model.fit(sample, rng=np.random.default_rng(1))
        assert isinstance(fit, LogLinearFit)
        assert (fit.means.way == "junction tree") is (fewest == 1)
        cells = fit.expected_cells(sizes, np.random.default_rng(2))
        assert cells is not None
        found.append(cells)
    # Ten samples of some hundred cells each.
    assert np.abs((found[0] - found[1]) / np.sqrt(found[1] / 10)).max() < 4.5
