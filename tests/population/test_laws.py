"""Every law of the unsampled counts: closed form = naive sum = simulation = limit."""

import pickle
from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import special, stats

from keyhole.arrays import Vector
from keyhole.numerics.mean_reciprocal import mean_reciprocal
from keyhole.population.discrete import DiscreteUnsampled
from keyhole.population.multinomial import MultinomialUnsampled
from keyhole.population.negative_binomial import NegativeBinomialUnsampled
from keyhole.population.poisson import PoissonUnsampled
from keyhole.population.polya import PolyaUnsampled
from keyhole.population.reciprocal_gaussian import ReciprocalGaussianUnsampled
from keyhole.population.simulated import SimulatedUnsampled
from keyhole.population.slide import SlideUnsampled
from keyhole.population.unsampled import UnsampledCounts

FAR = np.arange(200_000)


def slide_pmf(u: Vector, shape: float, odds: float) -> Vector:
    p, weight = 1 / (1 + odds), 1 / (1 + shape * odds)
    return np.asarray(
        weight * stats.nbinom.pmf(u, shape, p) + (1 - weight) * stats.nbinom.pmf(u - 1, shape + 1, p)
    )


LAWS: dict[str, tuple[UnsampledCounts, Callable[[Vector], Vector]]] = {
    "poisson": (PoissonUnsampled(np.full(400, 1.7)), lambda u: stats.poisson.pmf(u, 1.7)),
    "multinomial": (MultinomialUnsampled(np.full(400, 0.002), 900), lambda u: stats.binom.pmf(u, 900, 0.002)),
    "polya": (PolyaUnsampled(400, 0.4, 700.0, 1500), lambda u: stats.betabinom.pmf(u, 1500, 0.4, 699.6)),
    "ewens": (PolyaUnsampled(400, 1.0, 700.0, 1500), lambda u: stats.betabinom.pmf(u, 1500, 1.0, 699.0)),
    "dirichlet": (PolyaUnsampled(100, 2.5, 700.0, 1500), lambda u: stats.betabinom.pmf(u, 1500, 2.5, 697.5)),
    "negative binomial": (
        NegativeBinomialUnsampled(np.full(400, 2.3), np.full(400, 0.4)),
        lambda u: stats.nbinom.pmf(u, 2.3, 0.4),
    ),
    "geometric": (
        NegativeBinomialUnsampled(np.ones(400), np.full(400, 0.1)),
        lambda u: stats.nbinom.pmf(u, 1, 0.1),
    ),
    "slide": (SlideUnsampled(400, 0.6, 2.5), lambda u: slide_pmf(u, 0.6, 2.5)),
    "discrete": (
        DiscreteUnsampled(400, np.array([0, 2, 5]), np.array([0.2, 0.5, 0.3])),
        lambda u: np.select([u == 0, u == 2, u == 5], [0.2, 0.5, 0.3], 0.0),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_closed_form_is_the_naive_sum(name: str) -> None:
    law, pmf = LAWS[name]
    mass = pmf(FAR[:5000])
    np.testing.assert_allclose(law.prob_none(), mass[0], rtol=1e-11)
    np.testing.assert_allclose(law.mean_match(), (mass / (1 + FAR[:5000])).sum(), rtol=1e-10)


@pytest.mark.parametrize("name", [*LAWS, "reciprocal gaussian"])
def test_draws_follow_the_closed_form(name: str) -> None:
    law = LAWS[name][0] if name in LAWS else ReciprocalGaussianUnsampled(400, 3.0, 0.7)
    rng = np.random.default_rng(3)
    draws = np.stack([law.draw(rng) for _ in range(1500)])
    for per_draw, expected in (
        ((draws == 0).mean(axis=1), law.prob_none().mean()),
        ((1 / (1 + draws)).mean(axis=1), law.mean_match().mean()),
    ):
        error = per_draw.std(ddof=1) / np.sqrt(len(per_draw))
        assert abs(per_draw.mean() - expected) < 4 * error


def test_reciprocal_gaussian_is_its_mixture() -> None:
    """Integrate the Poisson law over the density of the rate, with SciPy's generalised inverse Gaussian."""
    scale, tilt = 3.0, 0.7
    a, b = 1 / scale, tilt**2 * scale
    rate = stats.geninvgauss(0.5, np.sqrt(a * b), scale=np.sqrt(b / a))
    law = ReciprocalGaussianUnsampled(1, scale, tilt)
    assert law.prob_none()[0] == pytest.approx(rate.expect(lambda x: np.exp(-x)), rel=1e-7)
    assert law.mean_match()[0] == pytest.approx(rate.expect(lambda x: -np.expm1(-x) / x), rel=1e-7)


def test_polya_is_exact_at_small_sizes() -> None:
    """Beta-binomial moments by fractions."""
    for own, rest, trials in ((Fraction(1, 2), Fraction(7, 4), 9), (Fraction(1), Fraction(3), 14)):

        def rising(x: Fraction, k: int) -> Fraction:
            value = Fraction(1)
            for i in range(k):
                value *= x + i
            return value

        total = rising(own + rest, trials)
        pmf = [comb(trials, u) * rising(own, u) * rising(rest, trials - u) / total for u in range(trials + 1)]
        assert sum(pmf) == 1
        law = PolyaUnsampled(1, float(own), float(own + rest), trials)
        assert law.prob_none()[0] == pytest.approx(float(pmf[0]), rel=1e-13)
        match = sum((p / (1 + u) for u, p in enumerate(pmf)), Fraction(0))
        assert law.mean_match()[0] == pytest.approx(float(match), rel=1e-13)


def test_polya_at_a_thousand_million_people() -> None:
    """Ewens has r1 = (theta + n - 1) / (theta + N - 1); a whole own mass telescopes likewise."""
    theta, records, people = 700.0, 10_000, 10**9
    law = PolyaUnsampled(1, 1.0, theta + records, people - records)
    assert law.prob_none()[0] == pytest.approx((theta + records - 1) / (theta + people - 1), rel=1e-12)
    own, total, trials = 3.0, 5000.0, 10**9
    rest = total - own
    expected = np.prod([(rest + i) / (rest + trials + i) for i in range(3)])
    assert PolyaUnsampled(1, own, total, trials).prob_none()[0] == pytest.approx(expected, rel=1e-12)
    # own = 2: r2 = (1 / (m + 1)) (1 + b (1 - (b + 1) / (b + 1 + m)))
    rest = total - 2
    match = (1 + rest * trials / (rest + 1 + trials)) / (trials + 1)
    assert PolyaUnsampled(1, 2.0, total, trials).mean_match()[0] == pytest.approx(match, rel=1e-12)


def test_polya_is_continuous_where_ewens_begins() -> None:
    at = [PolyaUnsampled(1, 1.0 + step, 5000.0, 10**7).mean_match()[0] for step in (-1e-7, 0.0, 1e-7)]
    assert at[1] == pytest.approx((at[0] + at[2]) / 2, rel=1e-10)


def test_polya_counts_are_jointly_right() -> None:
    """The total over the cells is beta-binomial too: counts of cells in one urn are dependent."""
    law, rng = PolyaUnsampled(30, 0.5, 40.0, 200), np.random.default_rng(5)
    totals = np.array([law.draw(rng).sum() for _ in range(4000)])
    whole = stats.betabinom(200, 15.0, 25.0)
    assert abs(totals.mean() - whole.mean()) < 4 * whole.std() / np.sqrt(4000)
    assert totals.var() == pytest.approx(whole.var(), rel=0.12)


def test_poisson_limits() -> None:
    law = PoissonUnsampled(np.array([0.0, 1e-300, 1e-15, 1e9]))
    np.testing.assert_allclose(law.prob_none(), [1.0, 1.0, 1 - 1e-15, 0.0], rtol=1e-15)
    np.testing.assert_allclose(law.mean_match(), [1.0, 1.0, 1.0, 1e-9], rtol=1e-14)
    assert law.draw(np.random.default_rng(0))[:3].tolist() == [0, 0, 0]


def test_multinomial_limits() -> None:
    law = MultinomialUnsampled(np.array([0.0, 1e-15, 1e-300]), 10**9)
    np.testing.assert_allclose(law.prob_none(), [1.0, 1 - 1e-6 + 5e-13, 1.0], rtol=1e-14)
    np.testing.assert_allclose(law.mean_match(), [1.0, 1 - 5e-7, 1.0], rtol=1e-12)
    certain = MultinomialUnsampled(np.array([1.0]), 4)
    assert (certain.prob_none()[0], certain.mean_match()[0]) == (0.0, 0.2)
    assert certain.draw(np.random.default_rng(0)).tolist() == [4]
    census = MultinomialUnsampled(np.array([0.0, 0.3, 1.0]), 0)
    assert census.prob_none().tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(census.mean_match(), 1.0, rtol=1e-15)


def test_multinomial_draws_survive_rounding() -> None:
    law = MultinomialUnsampled(np.full(10, 0.1 + 1e-13), 1000)
    assert law.draw(np.random.default_rng(1)).sum() == 1000


def test_negative_binomial_limits() -> None:
    law = NegativeBinomialUnsampled(np.ones(4), np.array([1.0, 1 - 1e-12, 1e-9, 0.0]))
    np.testing.assert_allclose(law.prob_none(), [1.0, 1 - 1e-12, 1e-9, 0.0])
    np.testing.assert_allclose(law.mean_match(), [1.0, 1.0, 1e-9 * np.log(1e9), 0.0], rtol=1e-8)
    assert law.draw(np.random.default_rng(0))[0] == 0


@pytest.mark.parametrize(
    "law",
    [
        PolyaUnsampled(3, 0.4, 50.0, 0),
        SlideUnsampled(3, 0.6, 0.0),
        ReciprocalGaussianUnsampled(3, 0.0, 0.5),
        NegativeBinomialUnsampled(np.ones(3), np.ones(3)),
        PoissonUnsampled(np.zeros(3)),
    ],
)
def test_a_census_leaves_nobody_out(law: UnsampledCounts) -> None:
    assert law.prob_none().tolist() == law.mean_match().tolist() == [1.0, 1.0, 1.0]
    assert law.draw(np.random.default_rng(0)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "law",
    [
        PolyaUnsampled(0, 0.4, 50.0, 100),
        SlideUnsampled(0, 0.6, 1.0),
        ReciprocalGaussianUnsampled(0, 1.0, 0.5),
        NegativeBinomialUnsampled(np.zeros(0), np.zeros(0)),
        PoissonUnsampled(np.zeros(0)),
        MultinomialUnsampled(np.zeros(0), 100),
        DiscreteUnsampled(0, np.array([0]), np.array([1.0])),
    ],
)
def test_no_uniques_is_an_empty_law(law: UnsampledCounts) -> None:
    assert len(law.prob_none()) == len(law.mean_match()) == len(law.draw(np.random.default_rng(0))) == 0


def test_polya_with_vanishing_masses_gives_everybody_to_one_cell() -> None:
    law, rng = PolyaUnsampled(2, 1e-12, 3e-12, 50), np.random.default_rng(2)
    draws = np.array([law.draw(rng) for _ in range(600)])
    assert set(draws.ravel().tolist()) == {0, 50}
    assert abs((draws[:, 0] == 50).mean() - 1 / 3) < 4 * np.sqrt(2 / 9 / 600)


def test_simulated_law_is_the_average_of_its_draws() -> None:
    law = SimulatedUnsampled(np.array([[0, 3], [1, 0]]))
    assert law.prob_none().tolist() == [0.5, 0.5]
    assert law.mean_match().tolist() == [0.75, 0.625]
    assert law.draw(np.random.default_rng(0)).tolist() in ([0, 3], [1, 0])


def test_laws_travel_between_processes() -> None:
    for law, _ in LAWS.values():
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(law)).prob_none(), law.prob_none())


def test_mean_reciprocal_is_the_naive_sum() -> None:
    """Small and large counts, with and without the integral; the beta-binomial is exact by summation."""
    for added, largest, a, b in ((1, 500, 0.7, 30.0), (3, 150_000, 2.6, 900.0), (50, 150_000, 49.5, 2000.0)):
        mass = stats.betabinom.pmf(np.arange(largest + 1), largest, a, b)
        expected = (mass / (added + np.arange(largest + 1))).sum() / mass.sum()

        def log_pmf(u: Vector, a: float = a, b: float = b, m: int = largest) -> Vector:
            choose = -np.log(m + 1) - special.betaln(m - u + 1, u + 1)
            return np.asarray(choose + special.betaln(u + a, m - u + b) - special.betaln(a, b))

        assert mean_reciprocal(log_pmf, added, largest) == pytest.approx(expected, rel=1e-7)
