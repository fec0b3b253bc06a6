"""Fixed effects that move with clusters summed over, beside the exact posterior of two cells."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from keyhole.arrays import IntVector, Vector
from keyhole.models.mixed_loglinear.base_measure import BaseMeasure
from keyhole.models.mixed_loglinear.clustered import ClusteredSampler, Clusters
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.numerics.concentration import GammaPrior

SHAPE, RATE, VARIANCE = 0.7, 0.1, 4.0
MASS = GammaPrior(40.0, 40.0)
FIXED = FixedEffects.of((2,), ((0,),))


def exact(counts: IntVector) -> Vector:
    """E beta, E beta^2 and the chance of one cluster, by a sum over a grid of beta."""
    beta = np.linspace(-12.0, 12.0, 4801)
    x = np.exp(np.outer(beta, FIXED.contrasts[0][:, 0]))

    def marginal(held: int, exposed: Vector) -> Vector:
        one = SHAPE * np.log(RATE) - gammaln(SHAPE) + gammaln(SHAPE + held)
        return np.asarray(one - (SHAPE + held) * np.log(RATE + exposed))

    together = integrate.quad(lambda m: stats.gamma.pdf(m, 40.0, scale=1 / 40.0) / (1.0 + m), 0.0, 20.0)[0]
    likelihood = (counts * np.log(x)).sum(axis=1) - beta**2 / (2 * VARIANCE)
    same = together * np.exp(likelihood + marginal(int(counts.sum()), x.sum(axis=1)))
    apart = (1 - together) * np.exp(likelihood + marginal(counts[0], x[:, 0]) + marginal(counts[1], x[:, 1]))
    total = (same + apart).sum()
    return np.array([beta @ (same + apart), beta**2 @ (same + apart), same.sum()]) / total


class Early(ClusteredSampler):
    """Sums over the clusters that cells had before they were dealt out: which these are tells of beta."""

    def sweep(self, state: Clusters, records: FullTable, rng: np.random.Generator) -> Clusters:
        x = np.exp(self.log_xi(state.beta)) * records.fraction
        old = len(state.effect)
        z, state = self._allocated(state, records.counts, x, rng)
        x = self._move(state, old, z, records, rng)
        state = self._redrawn(state, z, records.counts, x, rng)
        state = self._split_and_merged(state, z, records.counts, x, rng)
        state.own = state.effect[z[self.occupied]]
        return state


@dataclass(frozen=True)
class Case:
    counts: tuple[int, int]
    sweeps: int


def scores(kind: type[ClusteredSampler], case: Case, common: float, seed: int = 3) -> Vector:
    """How many standard errors, by batch means, a long run is from the exact posterior."""
    counts = np.array(case.counts)
    table = FullTable((2,), None, counts, 1.0)
    base = BaseMeasure("log-gamma", SHAPE, RATE)
    sampler = kind(table, 1000, base, FIXED, variance=VARIANCE, mass_prior=MASS, adapts=False, common=common)
    rng = np.random.default_rng(seed)
    state = sampler.start(table, rng, crowded=False)
    state.log_step = 0.3
    found = np.empty((case.sweeps, 3))
    for sweep in range(case.sweeps):
        state = sampler.sweep(state, table, rng)
        found[sweep] = state.beta[0], state.beta[0] ** 2, float(len(state.effect) == 1)
    batches = found[case.sweeps // 50 :]
    batches = batches[: len(batches) // 50 * 50].reshape(50, -1, 3).mean(axis=1)
    return np.asarray((batches.mean(axis=0) - exact(counts)) / (batches.std(axis=0, ddof=1) / np.sqrt(50)))


@pytest.mark.parametrize("common", [0.0, 1.0])
def test_fixed_effects_have_their_posterior(common: float) -> None:
    assert np.abs(scores(ClusteredSampler, Case((0, 5), 4_000), common)).max() < 4.5


@pytest.mark.statistical
@pytest.mark.parametrize("counts", [(0, 5), (1, 1), (3, 40)])
def test_fixed_effects_have_their_posterior_in_long_runs(counts: tuple[int, int]) -> None:
    for common in (0.0, 1.0):
        assert np.abs(scores(ClusteredSampler, Case(counts, 60_000), common)).max() < 4


@pytest.mark.statistical
def test_clusters_that_tell_of_the_effects_are_not_to_be_summed_over() -> None:
    assert np.abs(scores(Early, Case((0, 5), 100_000), 0.0)).max() > 4.5
