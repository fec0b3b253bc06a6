"""From laws to tau: estimates equal closed forms, intervals equal the exact predictive law."""

import numpy as np
import pytest
from scipy import stats

from keyhole.errors import NotConverged
from keyhole.inference.dependence import Dependence, PairDependence
from keyhole.inference.fit import Diagnostic
from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.population.perturbed_poisson import PerturbedPoissonUnsampled
from keyhole.risk import assess
from keyhole.risk.assess import assess_risk, risk_of_laws
from tests.risk.samples import Geometric, GeometricCounts, random_sample


def test_estimates_are_the_closed_forms() -> None:
    sample = random_sample()
    found = assess_risk(Geometric((0.2,)), sample)
    assert found.tau1 is not None
    assert found.tau2 is not None
    assert found.tau1.estimate == pytest.approx(0.2 * sample.uniques)
    assert found.tau2.estimate == pytest.approx(-0.2 * np.log(0.2) / 0.8 * sample.uniques)
    assert found.tau1.expected_sd is None
    assert found.tau1.mcse == 0


def test_interval_of_a_plug_in_is_the_predictive_one() -> None:
    sample = random_sample()
    found = assess_risk(Geometric((0.2,)), sample)
    exact = stats.binom(sample.uniques, 0.2)
    assert found.tau1 is not None
    # 2,000 draws place a tail probability of 2.5% within 1% (three standard errors).
    assert exact.ppf(0.015) <= found.tau1.low <= exact.ppf(0.035)
    assert exact.ppf(0.965) <= found.tau1.high <= exact.ppf(0.985)


def test_few_laws_of_very_many_uniques_are_drawn_from_often_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty laws still give a hundred draws, and a thousand laws not many more."""
    monkeypatch.setattr(assess, "DRAWN_COUNTS", 5_000)
    rng = np.random.default_rng(1)
    for laws, least, most in ((60, 100, 200), (1000, 100, 200)):
        sums = assess._Sums(0.95, None)
        for _ in range(laws):
            sums.add(GeometricCounts(np.full(70, 0.3)), rng)
        assert least <= len(sums._drawn1) <= most


def test_intervals_of_an_estimated_plug_in_are_about_its_estimates() -> None:
    """Draws with the estimation error alone are not: tau1 comes out higher and tau2 lower."""
    rng = np.random.default_rng(1)
    noise = np.repeat(0.7 * rng.standard_normal((4000, 1)), 300, axis=1)
    law = PerturbedPoissonUnsampled(rng.uniform(0.5, 6.0, 300), noise)
    drawn = [law.draw(rng) for _ in range(3000)]
    bare = np.array([[(one == 0).sum(), (1 / (1 + one)).sum()] for one in drawn])
    tau1, tau2, _ = risk_of_laws([law], rng=rng)
    for tau, values in zip((tau1, tau2), bare.T, strict=True):
        low, high = np.quantile(values, [0.025, 0.975])
        ratio = tau.estimate / values.mean()
        assert abs(ratio - 1) > 0.02
        assert (tau.low, tau.high) == pytest.approx((low * ratio, high * ratio), rel=0.1, abs=1.5)
    assert float(tau1.low).is_integer()
    assert float(tau1.high).is_integer()


def test_interval_of_many_laws_includes_the_parameters() -> None:
    sample = random_sample()
    chances = tuple(np.random.default_rng(3).beta(4, 16, 1000))
    found = assess_risk(Geometric(chances), sample)
    exact = stats.betabinom(sample.uniques, 4, 16)
    assert found.tau1 is not None
    assert found.records is not None
    assert exact.ppf(0.01) <= found.tau1.low <= exact.ppf(0.04)
    assert exact.ppf(0.96) <= found.tau1.high <= exact.ppf(0.99)
    # Without the parameters' uncertainty the interval would be far too short.
    assert found.tau1.high - found.tau1.low > 1.2 * np.ptp(stats.binom(sample.uniques, 0.2).ppf([0.025, 0.975]))
    assert found.tau1.expected_sd == pytest.approx(np.std(chances, ddof=1) * sample.uniques)
    assert found.tau1.mcse == pytest.approx(found.tau1.expected_sd / np.sqrt(1000))
    assert found.records.r1_low == pytest.approx(np.quantile(chances, 0.025), abs=1e-6)
    assert found.records.r1_high == pytest.approx(np.quantile(chances, 0.975), abs=1e-6)


def test_the_seed_decides_and_is_recorded() -> None:
    sample = random_sample()
    chances = tuple(np.random.default_rng(3).beta(4, 16, 100))
    one, same, other = (assess_risk(Geometric(chances), sample, seed=seed) for seed in (5, 5, 6))
    assert one.tau2 == same.tau2
    assert one.tau2 != other.tau2
    assert one.seed == 5


def test_an_untrusted_fit_is_marked_and_warned_about() -> None:
    worry = Diagnostic("sigma", 1.0, "untrusted", "The estimate lies on the boundary.")
    with pytest.warns(NotConverged, match="boundary"):
        found = assess_risk(Geometric(diagnostics=(worry,)), random_sample())
    assert found.status == "not-converged"
    assert "boundary" in found.verdict


def test_a_failed_fit_has_no_numbers() -> None:
    found = assess_risk(Geometric(fails=True), random_sample())
    assert (found.status, found.tau1, found.tau2, found.records) == ("failed", None, None, None)
    assert "no maximum" in found.verdict


def test_no_uniques_is_no_risk() -> None:
    sample = random_sample(records=5000, population_size=10_000)
    twice = type(sample)(
        type(sample.table)(sample.table.keys, sample.table.cells, sample.table.counts + 1), sample.population_size
    )
    found = assess_risk(Geometric(), twice)
    assert found.tau1 is not None
    assert (found.tau1.estimate, found.tau1.low, found.tau1.high) == (0, 0, 0)


def test_with_very_many_uniques_fewer_laws_are_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate still averages every law; the interval stays close to the exact one."""
    monkeypatch.setattr("keyhole.risk.assess.DRAWN_COUNTS", 1)
    sample = random_sample()
    chances = tuple(np.random.default_rng(3).beta(4, 16, 1000))
    found = assess_risk(Geometric(chances), sample)
    exact = stats.betabinom(sample.uniques, 4, 16)
    assert found.tau1 is not None
    assert found.tau1.estimate == pytest.approx(np.mean(chances) * sample.uniques)
    assert exact.ppf(0.003) <= found.tau1.low <= exact.ppf(0.06)
    assert exact.ppf(0.94) <= found.tau1.high <= exact.ppf(0.997)


def test_draws_that_are_worth_less_have_a_larger_error() -> None:
    laws = [GeometricCounts(np.full(50, chance)) for chance in (0.1, 0.2, 0.3)]
    plain, _, _ = risk_of_laws(laws, rng=np.random.default_rng(0))
    worth, _, _ = risk_of_laws(laws, effective=0.75, rng=np.random.default_rng(0))
    assert worth.mcse == pytest.approx(2 * plain.mcse)
    more, _, _ = risk_of_laws(laws, effective=1e6, rng=np.random.default_rng(0))
    assert more.mcse == plain.mcse  # the estimate is the mean of the laws there are


def test_results_cannot_be_changed() -> None:
    sample = random_sample()
    found = assess_risk(Geometric(), sample)
    assert found.records is not None
    with pytest.raises(ValueError, match="read-only"):
        found.records.r1[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        sample.table.counts[0] = 7
    assert "r1=" not in repr(found)
    assert "counts=" not in repr(sample)


def test_the_dependence_is_that_of_a_fit_that_finds_one() -> None:
    found = Dependence(("K0", "K1"), (PairDependence("K0", "K1", 0.8),), ())
    assert assess_risk(Geometric(dependence=found), random_sample()).dependence is found
    assert assess_risk(Geometric(), random_sample()).dependence is None
    assert assess_risk(Geometric(dependence=found, fails=True), random_sample()).dependence is None


def test_the_path_is_that_of_a_fit_that_was_chosen_on_one() -> None:
    found = ModelPath("term added", (PathStep("independence", None, 9.0, 12.0),), 0)
    assert assess_risk(Geometric(path=found), random_sample()).path is found
    assert assess_risk(Geometric(), random_sample()).path is None
    assert assess_risk(Geometric(path=found, fails=True), random_sample()).path is None
