"""Probabilities of cells: the mean over spread memberships, the exact sum over tables, and people drawn."""

import numpy as np
import pytest
from scipy import integrate, stats

from keyhole.arrays import Vector
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.models.membership.state import Memberships
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
from tests.models.membership import twins
from tests.sampler_checks import keys_of
from tests.table.brute_force import all_cells

LEVELS = (3, 2, 4, 2)
CELLS = all_cells(LEVELS)
ZEROS = StructuralZeros(
    keys_of(LEVELS), parse_zero_rules('- {K0: "0", K1: "1"}\n- {K1: "0", K3: "1", K2: ["1", "2"]}')
)


def state_of(components: int, seed: int = 1) -> Memberships:
    rng = np.random.default_rng(seed)
    K = components or 5
    weights = rng.dirichlet(np.ones(K))
    left = 0.0 if components else 1e-6
    theta = np.concatenate([rng.dirichlet(np.ones(levels) * 0.5, K).T for levels in LEVELS])
    sampler = MembershipSampler(LEVELS, components)
    mass, base = sampler.level_prior.flat()
    z = np.zeros((40, 4), dtype=np.int16)
    alpha = np.ones(40) if not components else np.array([1.7])
    return Memberships(z, theta, weights * (1 - left), left, alpha, 1.0, mass, base)


def moments(components: int) -> Vector:
    """E[alpha^m Gamma(alpha)/Gamma(alpha + J)], m = 0 .. J."""
    if components:
        return 1.7 ** np.arange(5) / np.prod(1.7 + np.arange(4))

    def mean(m: int) -> float:
        return float(
            integrate.quad(lambda a: stats.gamma.pdf(a, 2) * a**m / np.prod(a + np.arange(4)), 0, 60, limit=200)[0]
        )

    return np.array([0.0, *(mean(m) for m in range(1, 5))])


@pytest.mark.parametrize("components", [0, 4])
def test_cells_have_their_exact_probability(components: int) -> None:
    state, sampler = state_of(components), MembershipSampler(LEVELS, components)
    start = sampler.rows.start[:-1]
    powers = moments(components)
    exact = np.array([twins.exact_probability(state.theta, state.g0, cell + start, powers) for cell in CELLS])
    assert exact.sum() == pytest.approx(1.0, abs=1e-4)
    rng = np.random.default_rng(2)
    found = np.array([sampler.probabilities(state, CELLS, rng) for _ in range(12)])
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)
    error = found.std(axis=0, ddof=1) / np.sqrt(12)
    assert np.abs((found.mean(axis=0) - exact) / error).max() < 6
    # Each is close by itself, and closer than as many independent memberships would be.
    close = np.median(np.abs(found[0] / exact - 1))
    g = rng.dirichlet(state.g0 * 1.7, 2048) if components else None
    assert close < 0.03
    if g is not None:
        plain = np.prod([state.theta[CELLS[:, j] + start[j]] @ g.T for j in range(4)], axis=0).mean(axis=1)
        assert close < np.median(np.abs(plain / exact - 1))


@pytest.mark.parametrize("components", [0, 4])
@pytest.mark.parametrize("zeros", [None, ZEROS], ids=["all", "zeros"])
def test_people_fall_into_cells_as_often_as_they_must(components: int, zeros: StructuralZeros | None) -> None:
    state, sampler = state_of(components), MembershipSampler(LEVELS, components, zeros=zeros)
    rng = np.random.default_rng(3)
    possible = CELLS if zeros is None else CELLS[~zeros.contains(CELLS)]
    p = np.mean([sampler.probabilities(state, possible, rng) for _ in range(8)], axis=0)
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    people = 40_000
    state.z, state.alpha = (
        np.zeros((people, 4), dtype=np.int16),
        np.ones(people) if not components else state.alpha,
    )
    records = sampler.redraw(state, rng)
    assert zeros is None or not zeros.contains(records).any()
    number = {tuple(cell): c for c, cell in enumerate(possible.tolist())}
    counts = np.bincount([number[tuple(record)] for record in records.tolist()], minlength=len(possible))
    often = p * people > 5
    assert stats.chisquare(counts[often], p[often] * counts[often].sum() / p[often].sum()).pvalue > 1e-3
    wrong = np.roll(p[often], 1)
    assert stats.chisquare(counts[often], wrong * counts[often].sum() / wrong.sum()).pvalue < 1e-6


def test_what_is_left_is_broken_into_new_profiles() -> None:
    state, sampler = state_of(0), MembershipSampler(LEVELS, 0)
    state.left, state.g0 = 0.5, state.g0 / state.g0.sum() / 2
    rng = np.random.default_rng(4)
    found = np.array([sampler.probabilities(state, CELLS, rng) for _ in range(40)])
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)
    # New profiles differ from draw to draw, which the prior's mean in their place would not.
    assert np.median(found.std(axis=0) / found.mean(axis=0)) > 0.1
