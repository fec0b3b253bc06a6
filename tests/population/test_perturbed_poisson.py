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


def mean_risk(law: PerturbedPoissonUnsampled, level: np.ndarray) -> float:
    """tau1 + tau2, on average over the rows of the noise."""
    means = [law.mean * np.exp(row - level) for row in law.noise]
    return float(
        np.mean([PoissonUnsampled(m).prob_none().sum() + PoissonUnsampled(m).mean_match().sum() for m in means])
    )


@pytest.mark.parametrize("deviation", [0.2, 1.0, 2.5])
def test_the_draws_are_about_the_estimate(deviation: float) -> None:
    """Without the level the noise raises the risk, which this must tell."""
    law = _law(deviation)
    estimate = float(law.prob_none().sum() + law.mean_match().sum())
    assert mean_risk(law, law.level) == pytest.approx(estimate, rel=1e-4)
    assert mean_risk(law, np.zeros(60)) > 1.005 * estimate


def test_draws_widen_with_the_noise() -> None:
    spread = []
    for deviation in (0.0, 0.3, 0.6):
        law, rng = _law(deviation), np.random.default_rng(2)
        spread.append(np.std([(law.draw(rng) == 0).sum() for _ in range(1500)]))
    assert spread[0] < 0.8 * spread[1] < 0.7 * spread[2]


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
