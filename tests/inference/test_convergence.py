"""What draws are worth: their mean and their tails."""

import numpy as np
from arviz_stats.base import array_stats

from keyhole.inference.convergence import Convergence


def test_independent_draws_are_worth_their_number() -> None:
    found = Convergence.of(np.random.default_rng(1).normal(size=(4, 1_000)))
    assert 3_000 < found.ess < 5_500
    assert found.rhat < 1.01


def test_tails_that_are_rarely_visited_count() -> None:
    """A mean that is known at once, and a spread that changes every 200 draws."""
    rng = np.random.default_rng(2)
    spread = np.repeat(np.exp(rng.normal(size=(4, 5))), 200, axis=1)
    values = rng.normal(size=(4, 1_000)) * spread
    bulk = float(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk"))
    assert Convergence.of(values).ess < 0.2 * bulk
