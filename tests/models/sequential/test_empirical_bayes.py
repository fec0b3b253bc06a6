"""The penalties: stationary where they should be, and better than others by the evidence."""

import numpy as np
import pytest

from keyhole.arrays import Vector
from keyhole.models.sequential import _kernels as kernels
from keyhole.models.sequential import fitting
from keyhole.models.sequential.conditional import Conditional
from keyhole.models.sequential.curvature import DenseCurvature
from keyhole.models.sequential.fitting import (
    HIGHEST_PENALTY,
    INTERCEPT_PENALTY,
    LOWEST_PENALTY,
    PRIOR_SHAPE,
    FittedConditional,
    _newton,
    fit_conditional,
    prior_rates,
)
from tests.models.sequential.people import conditionals_of, sample_of_codes, some_sample


@pytest.fixture(scope="module")
def fits() -> list[FittedConditional]:
    rng = np.random.default_rng(0)
    found = conditionals_of(some_sample(3000, 60_000), (0, 1, 2, 3, 4, 5), [(1, 2)])
    return [fit_conditional(data, rng=rng) for data in found[1:]]


def log_evidence(data: Conditional, theta: Vector, penalty: Vector) -> float:
    """Laplace: log posterior at the mode plus half the log determinants, and the prior of the penalties."""
    ridge = np.repeat(penalty, np.diff(data.offsets))
    mode, _, _ = _newton(data, theta, penalty, 1e-9, 60, np.random.default_rng(0))
    value = kernels.log_likelihood(*data.layout, *data.entries, mode)
    value -= 0.5 * float((ridge * (mode**2).sum(axis=1)).sum())
    value += 0.5 * (data.levels - 1) * np.log(ridge).sum()
    value += 0.5 * np.linalg.slogdet(DenseCurvature(data, mode, ridge).covariance)[1]
    # A Gamma prior of log lambda, as the update rule has it.
    prior = PRIOR_SHAPE * np.log(penalty) - prior_rates(data) * penalty
    return float(value + 0.5 * prior[1:].sum())


def test_penalties_are_stationary(fits: list[FittedConditional]) -> None:
    for fit in fits:
        starts = fit.data.offsets[:-1]
        squares = np.add.reduceat((fit.coefficients**2).sum(axis=1), starts)
        charged = fit.penalty * (squares + prior_rates(fit.data))
        determined = fit.determined + PRIOR_SHAPE
        free = (fit.penalty > LOWEST_PENALTY) & (fit.penalty < 100)
        assert fit.penalty[0] == INTERCEPT_PENALTY
        free[0] = False
        np.testing.assert_allclose(charged[free], determined[free], rtol=0.12)
        sizes = np.diff(fit.data.offsets) * (fit.data.levels - 1)
        assert np.all((fit.determined > -1e-6) & (fit.determined <= sizes + 1e-9))
        assert fit.converged
        # Penalties four times as strong are not stationary.
        assert not np.allclose(4 * charged[free], determined[free], rtol=0.5)


def test_the_evidence_is_largest_near_the_penalties(fits: list[FittedConditional]) -> None:
    """All penalties, or one of them, doubled or halved: never better by more than the stopping rule allows."""
    for fit in fits:
        here = log_evidence(fit.data, fit.coefficients, fit.penalty)
        blocks = [np.arange(1, len(fit.penalty)), *np.arange(1, len(fit.penalty))[:, None]]
        for chosen in blocks:
            for factor in (0.5, 2.0):
                other = fit.penalty.copy()
                other[chosen] = np.minimum(other[chosen] * factor, HIGHEST_PENALTY)
                assert log_evidence(fit.data, fit.coefficients, other) < here + 0.05, (chosen, factor)


def test_a_block_that_says_nothing_is_shrunk_away() -> None:
    """A key that is pure noise gets a strong ridge; a key that is the answer gets a weak one."""
    rng = np.random.default_rng(5)
    noise, cause = rng.integers(0, 6, 2000), rng.integers(0, 6, 2000)
    answer = np.where(rng.random(2000) < 0.7, cause % 3, rng.integers(0, 3, 2000))
    sample = sample_of_codes(np.stack([noise, cause, answer], axis=1), 10**5, (6, 6, 3))
    fit = fit_conditional(conditionals_of(sample)[-1], rng=rng)
    assert fit.penalty[1] > 20 * fit.penalty[2]
    # The prior of a penalty, a squared norm of 0.1 for a block, holds the ridge on noise back at about half.
    assert fit.determined[1] < 0.65 * 12
    assert fit.determined[2] > 8


def test_starting_elsewhere_ends_at_the_same_fit(fits: list[FittedConditional]) -> None:
    """From a draft, as after the screening of three-way terms."""
    fit = fits[-1]
    draft = fit_conditional(fit.data, draft=True, rng=np.random.default_rng(0))
    again = fit_conditional(fit.data, draft, rng=np.random.default_rng(0))
    free = fit.penalty < 50
    np.testing.assert_allclose(again.penalty[free], fit.penalty[free], rtol=0.15)
    p, same = (kernels.log_likelihood(*f.data.layout, *f.data.entries, f.coefficients) for f in (fit, again))
    assert same == pytest.approx(p, abs=1.0)


def test_maximum_likelihood_without_a_ridge(fits: list[FittedConditional]) -> None:
    data = fits[1].data
    plain = fit_conditional(data, ridge=False, rng=np.random.default_rng(0))
    slope = np.zeros_like(plain.coefficients)
    value = kernels.gradient(*data.layout, *data.entries, plain.coefficients, slope)
    assert np.abs(slope).max() < 0.01
    assert value > kernels.log_likelihood(*data.layout, *data.entries, fits[1].coefficients)


def test_three_way_terms_that_are_chance_keep_less_than_two_way_terms_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A term that people of independent keys do not have, under its own prior and under that of two-way terms."""
    codes = np.random.default_rng(8).integers(0, (6, 5, 4), (1500, 3))
    (data,) = conditionals_of(sample_of_codes(codes, 30_000, (6, 5, 4)), (0, 1, 2), [(0, 1)])[2:]
    assert [len(block.keys) for block in data.blocks] == [0, 1, 1, 2]
    assert prior_rates(data).tolist() == [0.1, 0.1, 0.1, 0.01]
    kept = fit_conditional(data, rng=np.random.default_rng(0)).determined[-1]
    monkeypatch.setattr(fitting, "PAIR_RATE", 0.1)
    as_two_way = fit_conditional(data, rng=np.random.default_rng(0)).determined[-1]
    assert 0.0 < kept < 0.75 * as_two_way
