"""Maximum likelihood: where the peak is, how sharp it is, and that the draws follow it."""

import numpy as np
import pytest
from scipy import stats

from keyhole.models.catalogue import model_named
from keyhole.models.superpopulation.likelihood_fit import LikelihoodFit
from keyhole.numerics.posterior import draw_parameters, find_peak
from tests.models.samples import BY_LIKELIHOOD, sample_of, typical_sample


def fitted(name: str) -> LikelihoodFit:
    fit = model_named(name, draws=60).fit(typical_sample(), rng=np.random.default_rng(1))
    assert isinstance(fit, LikelihoodFit)
    return fit


@pytest.mark.parametrize("name", BY_LIKELIHOOD)
def test_the_gradient_vanishes_at_the_peak(name: str) -> None:
    fit = fitted(name)
    at, step = fit.peak.working, 1e-4
    assert fit.peak.curved
    for unit in np.eye(len(at)):
        up, down = fit.family.log_likelihood(np.stack([at + step * unit, at - step * unit]))
        curvature = float(unit @ fit.peak.information @ unit)
        # The distance to the stationary point, in standard errors.
        assert abs((up - down) / (2 * step)) / np.sqrt(curvature) < 1e-2


@pytest.mark.parametrize("name", BY_LIKELIHOOD)
def test_observed_information_by_other_differences(name: str) -> None:
    fit = fitted(name)
    at = fit.peak.working
    for i, unit in enumerate(np.eye(len(at))):
        step = 0.1 / np.sqrt(fit.peak.information[i, i])
        up, here, down = fit.family.log_likelihood(np.stack([at + step * unit, at, at - step * unit]))
        assert (2 * here - up - down) / step**2 == pytest.approx(fit.peak.information[i, i], rel=0.02)


def test_ewens_has_its_textbook_equations() -> None:
    """E(k) = sum of theta / (theta + i) at the maximum, and the information of log theta is Var(k)."""
    fit = fitted("ewens")
    theta = float(np.exp(fit.peak.working[0]))
    i = np.arange(fit.sample.sample_size)
    assert (theta / (theta + i)).sum() == pytest.approx(fit.sample.table.occupied, rel=1e-5)
    assert fit.peak.information[0, 0] == pytest.approx((theta * i / (theta + i) ** 2).sum(), rel=1e-3)
    error = next(line.value for line in fit.diagnostics if line.name == "theta_se")
    assert error == pytest.approx(theta / np.sqrt((theta * i / (theta + i) ** 2).sum()), rel=1e-3)


@pytest.mark.parametrize("name", BY_LIKELIHOOD)
def test_parameters_come_with_standard_errors(name: str) -> None:
    fit = fitted(name)
    lines = {line.name: line.value for line in fit.diagnostics}
    for parameter in fit.family.parameters:
        assert np.isfinite(lines[parameter])
        assert 0 < lines[f"{parameter}_se"] < np.inf
    assert lines["population_uniques"] == fit.population_uniques > 0


def test_draws_follow_a_skewed_density() -> None:
    """A log-gamma likelihood, whose posterior is known."""
    lower, upper = np.array([-20.0]), np.array([5.0])

    def log_likelihood(w: np.ndarray) -> np.ndarray:
        return 2.5 * w[:, 0] - np.exp(w[:, 0])

    peak = find_peak(log_likelihood, lower, upper)
    assert peak is not None
    assert peak.working[0] == pytest.approx(np.log(2.5), abs=1e-4)
    drawn = draw_parameters(log_likelihood, peak, lower, upper, 4000, np.random.default_rng(0))
    assert stats.kstest(np.exp(drawn.working[:, 0]), stats.gamma(2.5).cdf).statistic < 0.035


def test_draws_respect_an_edge() -> None:
    """A likelihood that falls from the edge of the box: exponential draws."""
    lower, upper = np.array([0.0, -8.0]), np.array([1.0, 8.0])

    def log_likelihood(w: np.ndarray) -> np.ndarray:
        return -40 * w[:, 0] - 0.5 * w[:, 1] ** 2

    peak = find_peak(log_likelihood, lower, upper)
    assert peak is not None
    assert peak.at_lower == (True, False)
    drawn = draw_parameters(log_likelihood, peak, lower, upper, 4000, np.random.default_rng(0))
    assert stats.kstest(drawn.working[:, 0], stats.expon(scale=1 / 40).cdf).statistic < 0.05
    assert stats.kstest(drawn.working[:, 1], stats.norm.cdf).statistic < 0.05


def test_nowhere_finite_is_no_peak() -> None:
    assert find_peak(lambda w: np.full(len(w), np.nan), np.zeros(1), np.ones(1)) is None


def test_pitman_finds_its_limit_ewens() -> None:
    """Fewer singletons than Ewens would have: the best discount is zero, and the fit says so."""
    sample = sample_of([5] * 30 + [8] * 20 + [1] * 2, 5000)
    fit = model_named("pitman", draws=60).fit(sample, rng=np.random.default_rng(0))
    assert [line.verdict for line in fit.diagnostics if line.name == "boundary"] == ["caution"]
