"""Concentrations are drawn from their laws, and so is everything else that is log-concave."""

import numpy as np
import pytest
from scipy import stats

from keyhole.numerics._log_concave_kernels import draw_of
from keyhole.numerics.concentration import GammaPrior, draw_above, draw_common


def test_concentrations_are_drawn_from_their_laws() -> None:
    rng = np.random.default_rng(4)
    prior, longer = GammaPrior(2.0, 1.0), np.array([12, 12, 9])
    grid = np.geomspace(1e-6, 60, 200_001)
    logs = np.log(grid)
    common = 2.0 * logs - grid + 20 * logs - sum(count * np.log(grid + c) for c, count in enumerate(longer))
    above = 2.0 * logs - grid + 5 * logs - sum(np.log(grid + c) for c in range(40))
    for log_density, draw in (
        (common, lambda: draw_common(prior, 20, longer, rng)),
        (above, lambda: draw_above(prior, 5, 40, rng)),
    ):
        cdf = np.cumsum(np.exp(log_density - log_density.max()))
        ranks = np.interp([draw() for _ in range(1500)], grid, cdf / cdf[-1])
        assert stats.kstest(ranks, "uniform").pvalue > 1e-3
        assert stats.kstest(ranks**1.2, "uniform").pvalue < 1e-3


@pytest.mark.parametrize(
    ("law", "exact"),
    [
        ((3.0, 0.5, 0.0, 0.0, 0.0), stats.gamma(3.0, scale=2.0)),
        ((0.0, 0.0, 0.0, 0.5, 1.5), stats.lognorm(1.0, scale=np.exp(1.5))),
        ((-0.5, 0.05, 5.0, 0.0, 0.0), stats.invgauss(1.0, scale=10.0)),
    ],
)
def test_effects_are_drawn_from_their_laws(law: tuple[float, ...], exact: stats.distributions.rv_frozen) -> None:
    rng = np.random.default_rng(6)
    nobody = np.zeros(0, dtype=np.int64)
    ranks = exact.cdf([draw_of((*law, nobody, 0), rng) for _ in range(1500)])
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3
    assert stats.kstest(ranks**1.2, "uniform").pvalue < 1e-3
