"""The law of log p at the uniques of a sample, against draws from the exact posterior of all coefficients."""

from functools import cache

import numpy as np
from scipy import special

from keyhole.arrays import Vector
from keyhole.models.sequential.cell_posterior import CellPosterior
from keyhole.models.sequential.joint import Moment
from keyhole.models.sequential.model import SequentialLogit, SequentialLogitFit
from keyhole.population.poisson import PoissonUnsampled
from tests.models.sequential.exact_posterior import log_p_draws
from tests.models.sequential.people import some_sample

DRAWS, EVERY = 500, 4
OTHERS = 100_000
"""Unsampled people: so many that a unique is alone only where its probability is far below its mean."""


@cache
def fitted() -> tuple[SequentialLogitFit, Vector]:
    """A fit to 300 records, and exact draws (DRAWS, uniques) of log p, one conditional after the other."""
    fit = SequentialLogit(orders=1, nested=0, draws=2).fit(some_sample(300), rng=np.random.default_rng(0))
    rng, unique = np.random.default_rng(1), fit.sample.table.uniques
    total = np.zeros((DRAWS, len(unique)))
    for factor in fit.laws[0].factors:
        total += log_p_draws(factor, DRAWS, EVERY, rng)[:, factor.data.entry[unique]]
    return fit, total


def taus(draws: Vector) -> Vector:
    """tau1 and tau2, expected over draws of log p."""
    laws = [PoissonUnsampled(OTHERS * np.exp(one)) for one in draws]
    return np.array([[law.prob_none().sum(), law.mean_match().sum()] for law in laws]).mean(axis=0)


def law_taus(cells: CellPosterior) -> Vector:
    """Likewise over the law of each cell."""
    parts = [(weight, PoissonUnsampled(OTHERS * np.exp(log_p))) for weight, log_p in cells.nodes()]
    return np.array(
        [
            sum(weight * law.prob_none().sum() for weight, law in parts),
            sum(weight * law.mean_match().sum() for weight, law in parts),
        ]
    )


def test_mean_and_variance_of_log_p() -> None:
    fit, draws = fitted()
    cells = fit.posterior
    error = draws.std(axis=0) / np.sqrt(DRAWS / 4)
    assert np.abs(((draws.mean(axis=0) - cells.mean) / error).mean()) < 0.5
    ratio = (cells.deviation**2).sum() / draws.var(axis=0).sum()
    curved = fit.laws[0].moments[fit.sample.table.uniques, Moment.CURVED].sum() / draws.var(axis=0).sum()
    print(f"variance over the exact one: {ratio:.3f}, by the curvature at the mode {curved:.3f}")
    assert abs(ratio - 1) < 0.15
    assert curved < 0.95


def test_skewness_of_log_p() -> None:
    """The mean over the uniques; a normal law has none, one gamma variable for the whole product too much."""
    fit, draws = fitted()
    centred = (draws - draws.mean(axis=0)) / draws.std(axis=0)
    exact = (centred**3).mean()
    error = (centred**3).mean(axis=1).std() / np.sqrt(DRAWS / 4)

    def skewness(shape: Vector) -> float:
        return float((special.polygamma(2, shape) / special.polygamma(1, shape) ** 1.5).mean())

    whole = 1.0 / fit.laws[0].moments[fit.sample.table.uniques, Moment.CURVED]
    found = skewness(fit.posterior.shape)
    print(f"skewness: exact {exact:.3f} +- {error:.3f}, cells {found:.3f}, one gamma {skewness(whole):.3f}")
    assert abs(found - exact) < 4 * error
    assert abs(exact) > 4 * error
    assert abs(skewness(whole) - exact) > 4 * error


def test_people_who_are_alone() -> None:
    """One gamma variable for the product of all conditionals has too long a lower tail, and far too many alone."""
    fit, draws = fitted()
    exact, found = taus(draws), law_taus(fit.posterior)
    halves = np.array([taus(draws[: DRAWS // 2]), taus(draws[DRAWS // 2 :])])
    noise = np.abs(np.diff(halves, axis=0))[0]
    shape = 1.0 / fit.laws[0].moments[fit.sample.table.uniques, Moment.CURVED]
    whole = CellPosterior(fit.posterior.mean, np.sqrt(special.polygamma(1, shape)), shape)
    print(
        f"tau1, tau2: exact {exact.round(2)} (halves differ by {noise.round(2)}), cells {found.round(2)},", end=" "
    )
    print(f"one gamma variable {law_taus(whole).round(2)}")
    assert np.all(np.abs(found / exact - 1) < [0.08, 0.03])
    assert law_taus(whole)[0] / exact[0] > 1.2
