"""The plug-in Poisson law with estimation error: its closed forms, its mean, and its wider draws."""

import pickle

import numpy as np
import pytest

from keyhole.population.perturbed_poisson import PerturbedPoissonUnsampled
from keyhole.population.poisson import PoissonUnsampled


def _law(deviation: float, cells: int = 60, rows: int = 500) -> PerturbedPoissonUnsampled:
    rng = np.random.default_rng(1)
    common = deviation * rng.standard_normal((rows, 1))
    return PerturbedPoissonUnsampled(rng.uniform(0.5, 3.0, cells), np.repeat(common, cells, axis=1))


def test_closed_forms_are_the_plug_in_ones() -> None:
    law = _law(0.7)
    plain = PoissonUnsampled(law.mean)
    np.testing.assert_array_equal(law.prob_none(), plain.prob_none())
    np.testing.assert_array_equal(law.mean_match(), plain.mean_match())


def test_draws_keep_the_mean_and_widen_with_the_noise() -> None:
    """var(sum U) = sum mu + (sum mu)^2 var(factor) when all cells err alike."""
    law = _law(0.3)
    rng = np.random.default_rng(2)
    totals = np.array([law.draw(rng).sum() for _ in range(4000)])
    factor = np.array([law.factors(row)[0] for row in range(500)])
    expected = law.mean.sum()
    variance = expected + expected**2 * factor.var()
    assert factor.mean() == pytest.approx(1.0, rel=1e-12)
    assert abs(totals.mean() - expected) < 4 * np.sqrt(variance / 4000)
    assert totals.var() == pytest.approx(variance, rel=0.15)
    # Broken on purpose: without the division by its mean the factor raises every count, and this must tell.
    raised = np.exp(law.noise[:, 0]).mean()
    assert abs(totals.mean() - expected * raised) > 4 * np.sqrt(variance / 4000)


def test_no_noise_is_the_plain_law() -> None:
    law = _law(0.0)
    drawn = PerturbedPoissonUnsampled(law.mean, law.noise).draw(np.random.default_rng(3))
    rng = np.random.default_rng(3)
    rng.integers(len(law.noise))
    np.testing.assert_array_equal(drawn, PoissonUnsampled(law.mean).draw(rng))


def test_huge_noise_does_not_overflow() -> None:
    law = PerturbedPoissonUnsampled(np.array([1e-9, 2.0]), np.array([[900.0, 1.0], [-900.0, -1.0]]))
    assert np.isfinite(law.factors(0)).all()
    assert law.draw(np.random.default_rng(0)).min() >= 0


def test_it_can_be_sent_to_another_process_and_checks_its_shape() -> None:
    law = _law(0.2)
    again = pickle.loads(pickle.dumps(law))
    np.testing.assert_array_equal(again.draw(np.random.default_rng(4)), law.draw(np.random.default_rng(4)))
    with pytest.raises(ValueError, match="column for each of 60 cells"):
        PerturbedPoissonUnsampled(law.mean, law.noise[:, 1:])
    with pytest.raises(ValueError, match="does not have"):
        PerturbedPoissonUnsampled(law.mean, law.noise[:0])
