"""Does the latent-class comparator draw from the posterior it names?"""

from itertools import product

import numpy as np
import pytest
from benchmarks.peers._latent_class_kernels import mixture_probability
from benchmarks.peers.latent_class import MASS_RATE, MASS_SHAPE, Chain, LatentClass
from numpy.typing import NDArray
from scipy import integrate, special

from keyhole import assess_risk
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable

LEVELS = (2, 3)
ALL_CELLS = np.array(list(product(*map(range, LEVELS))))
CELLS, COUNTS = np.array([[0, 0], [0, 1], [1, 2]]), np.array([2, 1, 1])


def probabilities(classes: int, sweeps: int, seed: int = 1) -> NDArray[np.float64]:
    """The probability of every cell, one row per sweep."""
    rng = np.random.default_rng(seed)
    chain = Chain(LEVELS, CELLS, COUNTS, classes)
    state, cells, found = chain.start(rng=rng), chain.numbered(ALL_CELLS), []
    for _ in range(sweeps):
        state, sizes = chain.sweep(state, rng=rng)
        assert sizes.sum() == COUNTS.sum()
        found.append(mixture_probability(cells, state.log_weight, state.log_level))
    return np.array(found)


def exact_mean(shape: float) -> NDArray[np.float64]:
    """E(p | records) with two classes, by all assignments of the records and quadrature over log mass."""
    records, n = np.repeat(CELLS, COUNTS, axis=0), int(COUNTS.sum())
    total, mean = 0.0, np.zeros(len(ALL_CELLS))
    for assigned in product((0, 1), repeat=n):
        sizes = np.bincount(assigned, minlength=2)
        tables = [[np.bincount(records[np.equal(assigned, k), j], minlength=size) for k in (0, 1)]
                  for j, size in enumerate(LEVELS)]  # fmt: skip
        likelihood = np.prod(
            [special.gamma(size) * special.gamma(1.0 + of).prod() / special.gamma(size + of.sum())
             for size, by_class in zip(LEVELS, tables, strict=True) for of in by_class]
        )  # fmt: skip
        level = [[(1 + of) / (1 + of).sum() for of in by_class] for by_class in tables]
        in_class = [level[0][k][ALL_CELLS[:, 0]] * level[1][k][ALL_CELLS[:, 1]] for k in (0, 1)]

        def stick(log_mass: float, first: int, sizes: NDArray[np.int64] = sizes) -> float:
            """Prior of log mass times E(V^(n_0 + first) (1 - V)^n_1)."""
            mass = np.exp(log_mass)
            prior = shape * log_mass - MASS_RATE * mass
            beta = special.betaln(1 + sizes[0] + first, mass + sizes[1]) - special.betaln(1, mass)
            return float(np.exp(prior + beta))

        whole, heavier = (integrate.quad(stick, -60, 8, args=(first,), limit=400)[0] for first in (0, 1))
        total += likelihood * whole
        mean += likelihood * (heavier * in_class[0] + (whole - heavier) * in_class[1])
    return mean / total


def z_scores(draws: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    batches = draws[: len(draws) // 50 * 50].reshape(50, -1, draws.shape[1]).mean(axis=1)
    return np.asarray((batches.mean(axis=0) - expected) / (batches.std(axis=0, ddof=1) / np.sqrt(50)))


def test_probabilities_sum_to_one_over_the_table() -> None:
    np.testing.assert_allclose(probabilities(classes=5, sweeps=50).sum(axis=1), 1.0, rtol=1e-12)


def test_one_class_is_the_product_of_the_margins() -> None:
    smoothed = [(np.bincount(CELLS[:, j], COUNTS, size) + 1) / (4 + size) for j, size in enumerate(LEVELS)]
    expected = smoothed[0][ALL_CELLS[:, 0]] * smoothed[1][ALL_CELLS[:, 1]]
    assert np.abs(z_scores(probabilities(classes=1, sweeps=5000), expected)).max() < 4


def test_two_classes_agree_with_exact_enumeration() -> None:
    draws = probabilities(classes=2, sweeps=20_000)
    assert np.abs(z_scores(draws, exact_mean(MASS_SHAPE))).max() < 4
    # Broken on purpose: with another prior of the mass the exact mean is another, and this test must tell.
    assert np.abs(z_scores(draws, exact_mean(3.0))).max() > 4


@pytest.mark.parametrize("records", [60, 400])
def test_it_goes_through_assess_risk(records: int) -> None:
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(6)))) for j in range(4))
    people = np.random.default_rng(3).binomial(5, 0.3, (records, 4))
    sample = Sample(ContingencyTable.from_codes(keys, people), 10 * records)
    found = assess_risk(LatentClass(classes=8, sweeps=150, burn_in=50), sample, seed=1)
    assert found.status == "ok"
    assert found.tau1 is not None
    assert found.tau2 is not None
    assert 0 < found.tau1.estimate < found.tau2.estimate < sample.uniques
