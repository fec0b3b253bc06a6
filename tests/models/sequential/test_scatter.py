"""The scatter of cells around the law, against simulated people."""

import numpy as np
import pytest

from keyhole.models.sequential.cell_posterior import CellPosterior
from keyhole.models.sequential.scatter import Scatter

SAMPLED, UNSAMPLED = 4_000, 60_000


def scattered_people(p: np.ndarray, scatter: Scatter, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Records and unsampled people of cells whose probabilities scatter around p."""
    alpha = scatter.shape(np.log(p))
    theta = rng.gamma(alpha, 1.0 / alpha)
    return rng.poisson(SAMPLED * p * theta), rng.poisson(UNSAMPLED * p * theta)


@pytest.mark.parametrize("p", [2e-6, 3e-5, 4e-4])
@pytest.mark.parametrize("broken", [False, True])
def test_cells_with_one_record_hold_what_the_law_says(p: float, broken: bool) -> None:
    """The broken law forgets that the cell was seen."""
    scatter = Scatter(1e-5)
    records, others = scattered_people(np.full(1_500_000, p), scatter, np.random.default_rng(60))
    seen = others[records == 1]
    law = scatter.unsampled(np.log([p]), 0 if broken else SAMPLED, UNSAMPLED)
    if broken:
        law = type(law)(law.shape - 1.0, law.probability)
    alone, match = (seen == 0).mean(), (1.0 / (1 + seen)).mean()
    errors = np.array([(seen == 0).std(), (1.0 / (1 + seen)).std()]) / np.sqrt(len(seen))
    z = (np.array([law.prob_none()[0], law.mean_match()[0]]) - [alone, match]) / np.maximum(errors, 1e-12)
    assert bool(np.abs(z).max() < 4) != broken


@pytest.mark.parametrize("broken", [False, True])
def test_records_become_crowds_as_cells_that_scatter_have_them(broken: bool) -> None:
    """Counts have the mean of the law, and the variance of a negative binomial; the broken ones lose nobody."""
    scatter, p, repeats = Scatter(2e-4), np.array([4e-5, 3e-4, 2e-3]), 40_000
    rng = np.random.default_rng(64)
    drawn = rng.poisson(SAMPLED * p, (repeats, len(p)))
    place = np.repeat(np.arange(drawn.size), drawn.ravel())
    crowds = scatter.crowds(np.log(p)[place % len(p)], SAMPLED, rng)
    crowds = np.maximum(crowds, 1) if broken else crowds
    counts = np.bincount(place, crowds, drawn.size).reshape(repeats, len(p))
    mean = SAMPLED * p
    variance = mean + mean**2 / scatter.shape(np.log(p))
    off = (counts.mean(axis=0) - mean) / np.sqrt(variance / repeats)
    squares = (counts - mean) ** 2
    spread = (squares.mean(axis=0) - variance) / (squares.std(axis=0) / np.sqrt(repeats))
    assert bool(np.abs([off, spread]).max() < 4) != broken
    assert scatter.crowds(np.full(5, -600.0), SAMPLED, rng).tolist() == [1] * 5


def test_a_known_probability_that_scatters_is_the_same_law_either_way() -> None:
    log_p = np.linspace(-14, -6, 30)
    alone, match = Scatter(5e-8).risks(CellPosterior.known(log_p), SAMPLED, UNSAMPLED)
    law = Scatter(5e-8).unsampled(log_p, SAMPLED, UNSAMPLED)
    np.testing.assert_allclose(alone, law.prob_none(), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(match, law.mean_match(), rtol=1e-6)


def test_risks_are_means_over_the_posterior() -> None:
    """Beside many draws of the probabilities, and of people given these."""
    cells = CellPosterior(np.linspace(-13, -8, 6), np.linspace(1.2, 0.3, 6), np.linspace(0.8, 20.0, 6))
    rng, scatter = np.random.default_rng(61), Scatter(5e-8)
    alone, match = scatter.risks(cells, SAMPLED, UNSAMPLED, 0.2)
    drawn = np.array(
        [
            scatter.unsampled(cells.log_draw(rng.standard_normal(6)) + 0.2, SAMPLED, UNSAMPLED).draw(rng)
            for _ in range(40_000)
        ]
    )
    for got, seen in ((alone, drawn == 0), (match, 1.0 / (1 + drawn))):
        error = seen.std(axis=0) / np.sqrt(len(drawn))
        assert np.all(np.abs(got - seen.mean(axis=0)) < 4 * error + 1e-3)


def test_gamma_laws_have_the_moments_of_the_posterior() -> None:
    cells = CellPosterior(np.full(3, -9.0), np.array([0.1, 0.5, 1.0]), np.array([50.0, 4.0, 1.5]))
    p = np.exp([cells.log_draw(np.full(3, score)) for score in np.random.default_rng(62).standard_normal(200_000)])
    np.testing.assert_allclose(np.exp(cells.log_moment(1.0)), p.mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(np.exp(cells.log_moment(2.0)), (p**2).mean(axis=0), rtol=0.03)


def test_without_scatter_the_counts_are_poisson() -> None:
    log_p = np.linspace(-14, -6, 30)
    law = Scatter(0.0).unsampled(log_p, SAMPLED, UNSAMPLED)
    mean = UNSAMPLED * np.exp(log_p)
    np.testing.assert_allclose(law.prob_none(), np.exp(-mean), rtol=0.02, atol=1e-12)
    np.testing.assert_allclose(law.mean_match(), -np.expm1(-mean) / mean, rtol=1e-3)


def test_rare_cells_that_were_seen_are_crowded() -> None:
    """The rarer the cell, the more people it holds against the law; common cells with one record hold fewer."""
    p = np.array([1e-7, 1e-6, 1e-5, 1e-3])
    one = np.ones(4, dtype=np.int64)
    log_mean, _ = Scatter(5e-8).around(CellPosterior.known(np.log(p)), SAMPLED * one, one)
    shape = Scatter(5e-8).shape(np.log(p))
    expected = (shape + 1) / (shape + SAMPLED * p)
    assert np.all(np.diff(expected) < 0)
    assert expected[0] > 1.5
    assert expected[-1] < 1.0
    np.testing.assert_allclose(np.exp(log_mean) / p, expected)
