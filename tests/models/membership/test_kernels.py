"""Each kernel against its slow twin."""

from collections.abc import Callable
from itertools import product
from types import ModuleType

import numpy as np
import pytest
from scipy import integrate

from keyhole.models.membership import _kernels as kernels
from keyhole.models.membership import sampler as sampling
from keyhole.models.membership.concentration import ConcentrationLaws, _log_density
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.models.membership.state import Memberships
from keyhole.numerics.concentration import GammaPrior
from tests.models.membership import twins

LEVELS = (3, 2, 4)


def people(size: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, size)
    return np.stack([(kind + rng.integers(0, 2, size)) % levels for levels in LEVELS], axis=1).astype(np.int32)


@pytest.mark.parametrize("components", [0, 4])
@pytest.mark.parametrize(
    ("where", "name", "twin"),
    [
        (kernels, "allocate", twins.allocate),
        (sampling, "move_tables", twins.move_tables),
        (sampling, "split_or_merge", twins.split_or_merge),
    ],
)
def test_a_sweep_is_its_twin(
    components: int, where: ModuleType, name: str, twin: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = people(150)
    sampler = MembershipSampler(LEVELS, components)

    def run() -> tuple[Memberships, ...]:
        rng = np.random.default_rng(3)
        state = sampler.start(records, rng, crowded=components == 0)
        state.left, state.g0 = (0.4, 0.6 * state.g0 / state.g0.sum()) if components == 0 else (0.0, state.g0)
        return tuple(state := sampler.sweep(state, records, rng) for _ in range(12))

    compiled = run()
    if not components:
        assert max(state.profiles for state in compiled) > 30  # more than the columns that were spare
    compiled = run()[-1]
    monkeypatch.setattr(where, name, twin)
    slow = run()[-1]
    np.testing.assert_array_equal(compiled.z, slow.z)
    np.testing.assert_allclose(compiled.alpha, slow.alpha, rtol=1e-12)
    np.testing.assert_allclose(compiled.theta, slow.theta, rtol=1e-12)


def test_alias_tables_hold_the_weights() -> None:
    rng = np.random.default_rng(1)
    theta, g0 = rng.dirichlet(np.ones(5) * 0.2, 7).T, rng.dirichlet(np.ones(7))
    whole, keep, other = np.zeros(5), np.zeros((5, 7)), np.zeros((5, 7), dtype=np.int64)
    kernels.share_tables(theta, g0, 7, whole, keep, other)
    np.testing.assert_allclose(whole, theta @ g0)
    for r in range(5):
        mass = keep[r] + np.bincount(other[r], 1 - keep[r], minlength=7)
        np.testing.assert_allclose(mass / 7, theta[r] * g0 / whole[r], atol=1e-12)


@pytest.mark.parametrize(("customers", "a"), [(1, 0.5), (3, 0.5), (40, 2.0), (5000, 0.01), (5000, 30.0)])
def test_tables_of_a_restaurant(customers: int, a: float) -> None:
    rng = np.random.default_rng(2)
    drawn = np.array([kernels.tables_of(customers, a, rng) for _ in range(4000)])
    chance = a / (a + np.arange(customers))
    mean, variance = chance.sum(), (chance * (1 - chance)).sum()
    assert abs(drawn.mean() - mean) <= 4 * np.sqrt(variance / 4000)
    assert abs(drawn.var() - variance) <= 0.15 * variance
    # Without the thinning there would be a table for each customer with a candidate.
    c = np.arange(2, customers)
    unthinned = chance[:2].sum() + (1 - ((c - 1) / c) ** a).sum()
    assert a < 1 or abs(drawn.mean() - unthinned) > 4 * np.sqrt(variance / 4000)


@pytest.mark.parametrize("prior", [GammaPrior(), GammaPrior(0.5, 3.0)])
def test_tabulated_laws_are_the_laws(prior: GammaPrior) -> None:
    laws = ConcentrationLaws.of(prior, 6)
    for tables in (0, 1, 3, 6):

        def density(alpha: float, tables: int = tables) -> float:
            return float(np.exp(_log_density(np.float64(alpha), prior, tables, 6)))

        whole = integrate.quad(density, 0, np.inf, epsabs=0, limit=200)[0]
        for u in (1e-4, 0.03, 0.5, 0.9, 0.9999):
            value = kernels.draw_from_law(tables, u, *laws.arrays)
            assert value == pytest.approx(twins.quantile(tables, u, laws.knot, laws.curve), rel=1e-12)
            below = integrate.quad(density, 0, value, epsabs=0, limit=200)[0] / whole
            assert below == pytest.approx(u, rel=1e-3)
            assert 1 - below == pytest.approx(1 - u, rel=1e-2)


def test_products_are_means_over_memberships() -> None:
    rng = np.random.default_rng(5)
    start = np.array([0, 3, 5, 9])
    mixed = rng.random((9, 700))
    cells = np.array(list(product(range(3), range(2), range(4))), dtype=np.int32)[rng.permutation(24)[:15]]
    for given in (cells, cells[np.lexsort(cells.T[::-1])]):
        found = np.empty(15)
        kernels.mean_products(given, start, mixed, 512, found)
        np.testing.assert_allclose(found, [mixed[start[:-1] + cell].prod(axis=0).mean() for cell in given])
