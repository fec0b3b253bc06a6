"""Clusters of effects: exact enumeration, Geweke's comparison, Neal's algorithm 3, and broken samplers."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from scipy import integrate, special, stats

from keyhole.arrays import IntVector, Vector
from keyhole.models.mixed_loglinear import clustered
from keyhole.models.mixed_loglinear.base_measure import BaseMeasure
from keyhole.models.mixed_loglinear.clustered import COMMON, ClusteredSampler, Clusters
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.models.mixed_loglinear.summed_cells import SummedCells
from keyhole.numerics.concentration import GammaPrior
from tests.models.mixed_loglinear.neal import Algorithm3
from tests.sampler_checks import geweke_scores

BASES = [
    BaseMeasure("log-gamma", 1.5, 1.0),
    BaseMeasure("normal", 0.2, 0.8),
    BaseMeasure("inverse-gaussian", 1.2, 1.5),
]
MASS = GammaPrior(2.0, 1.0)
COUNTS = np.array([0, 2, 1, 0, 9])
LOG_XI = np.log([0.8, 2.0, 0.5, 3.0, 2.5])


class Watching(ClusteredSampler):
    """Remembers who was where at the end of a sweep."""

    def _split_and_merged(self, state: Clusters, z: IntVector, *arguments: object) -> Clusters:  # type: ignore[override]
        found = super()._split_and_merged(state, z, *arguments)  # type: ignore[arg-type]
        vars(self)["seen"] = z.copy()
        return found


class Unexposed(BaseMeasure):
    """Effects that forget how often they could have been seen."""

    def given(self, counts: IntVector, exposures: Vector, rng: np.random.Generator) -> Vector:
        return super().given(counts, 0.5 * exposures, rng)


def five_cells(base: BaseMeasure, common: float = COMMON) -> Watching:
    table = FullTable((5,), None, COUNTS, 1.0)
    return Watching(table, 100, base, FixedEffects((5,), ()), LOG_XI, MASS, common=common)


def partitions(cells: int) -> Iterator[tuple[int, ...]]:
    """All of them, each cell with the number of its cluster, clusters numbered as they appear."""

    def grow(begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(begun) == cells:
            yield begun
            return
        for label in range(max(begun, default=-1) + 2):
            yield from grow((*begun, label))

    return grow(())


def log_marginal(base: BaseMeasure, count: int, exposure: float) -> float:
    """log of the integral of omega^f exp(-x omega) over the base, by adaptive quadrature."""
    A, B, C, D, centre = base.coefficients

    def density(t: float, count: int, exposure: float) -> float:
        return float(np.exp((A + count) * t - (B + exposure) * np.exp(t) - C * np.exp(-t) - D * (t - centre) ** 2))

    whole, prior = (
        integrate.quad(density, -25, 12, args=args, limit=400, epsabs=0)[0]
        for args in ((count, exposure), (0, 0.0))
    )
    return float(np.log(whole / prior))


def exact(base: BaseMeasure) -> dict[tuple[int, ...], float]:
    """The posterior of all partitions of the five cells, the mass integrated out."""
    found = {}
    for labels in partitions(5):
        label = np.array(labels)
        clusters = label.max() + 1

        def mass_density(m: float, clusters: int = clusters) -> float:
            log = special.gammaln(m) - special.gammaln(m + 5) + clusters * np.log(m)
            return float(np.exp(log + (MASS.shape - 1) * np.log(m) - MASS.rate * m))

        value = np.log(integrate.quad(mass_density, 0, 60)[0])
        for c in range(clusters):
            here = label == c
            value += special.gammaln(here.sum())
            value += log_marginal(base, int(COUNTS[here].sum()), float(np.exp(LOG_XI[here]).sum()))
        found[labels] = value
    top = max(found.values())
    weights = {labels: np.exp(value - top) for labels, value in found.items()}
    return {labels: weight / sum(weights.values()) for labels, weight in weights.items()}


def scores(sampler: Watching, expected: dict[tuple[int, ...], float], sweeps: int, seed: int = 3) -> Vector:
    """By how many standard errors each frequent partition is visited too often."""
    rng = np.random.default_rng(seed)
    state = sampler.start(sampler.table, rng, crowded=False)
    place = {labels: i for i, labels in enumerate(expected)}
    visits = np.zeros((sweeps, len(expected)))
    for sweep in range(sweeps):
        state = sampler.sweep(state, sampler.table, rng)
        names: dict[int, int] = {}
        labels = tuple(names.setdefault(int(c), len(names)) for c in vars(sampler)["seen"])
        visits[sweep, place[labels]] = 1.0
    wanted = np.array(list(expected.values()))
    often = wanted > 0.01
    batches = visits[sweeps // 40 :, often].reshape(39, -1, often.sum()).mean(axis=1)
    error = np.sqrt(batches.var(axis=0, ddof=1) / 39)
    return np.asarray((batches.mean(axis=0) - wanted[often]) / error)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.kind)
def test_partitions_are_visited_as_often_as_they_must(base: BaseMeasure) -> None:
    assert np.abs(scores(five_cells(base), exact(base), 8_000)).max() < 4


def test_partitions_are_visited_as_often_where_pairs_of_clusters_move() -> None:
    assert np.abs(scores(five_cells(BASES[2], common=0.0), exact(BASES[2]), 3_000)).max() < 4


class Blind(SummedCells):
    """Pairs of clusters that move as if there were no cells."""

    @classmethod
    def of(cls, *arguments: object) -> SummedCells:  # type: ignore[override]
        once = SummedCells.of(*arguments)  # type: ignore[arg-type]
        return SummedCells(once.people, once.x, 0.0 * once.cells)


def test_effects_that_forget_their_exposure_are_rejected() -> None:
    broken = Unexposed("log-gamma", 1.5, 1.0)
    assert np.abs(scores(five_cells(broken), exact(BASES[0]), 8_000)).max() > 5


class Hasty(Watching):
    """Splits clusters as if the process had more of them."""

    def _split_and_merged(self, state: Clusters, *arguments: object) -> Clusters:  # type: ignore[override]
        found = super()._split_and_merged(replace(state, mass=4.0 * state.mass), *arguments)  # type: ignore[arg-type]
        return replace(found, mass=state.mass)


def test_splits_by_another_mass_are_rejected() -> None:
    broken = Hasty(*(getattr(five_cells(BASES[0]), one.name) for one in fields(ClusteredSampler)))
    assert np.abs(scores(broken, exact(BASES[0]), 8_000)).max() > 5


@dataclass(frozen=True, eq=False)
class Careless(ClusteredSampler):
    """Fixed effects that move by another prior than their own."""

    def _move(self, *arguments: object) -> Vector:  # type: ignore[override]
        return ClusteredSampler._move(replace(self, variance=3.0), *arguments)  # type: ignore[arg-type]


def statistics(state: Clusters, records: FullTable) -> Vector:
    counts = np.log1p(records.counts)
    return np.array(
        [
            *state.beta,
            *state.beta**2,
            np.log(state.mass),
            float(len(state.effect)),
            state.own.mean(),
            (state.own**2).mean(),
            (state.own[0] - state.own[1]) ** 2,
            counts.mean(),
            (counts**2).mean(),
            (records.counts == 0).mean(),
            state.beta[0] * counts[0],
            state.own[0] * counts[0],
        ]
    )


def joint(kind: type[ClusteredSampler], base: BaseMeasure, draws: int, common: float = COMMON) -> Vector:
    table = FullTable((2, 3), None, np.ones(6, dtype=np.int64), 0.5)
    fixed = FixedEffects.of((2, 3), ((0,), (1,)))
    sampler = kind(table, 100, base, fixed, None, MASS, variance=0.7, adapts=False, common=common)
    return geweke_scores(sampler, 6, statistics, draws=draws, sweeps=1, rng=np.random.default_rng(5))


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.kind)
def test_a_short_look_at_the_joint_law(base: BaseMeasure) -> None:
    assert np.abs(joint(ClusteredSampler, base, 1_000)).max() < 4.5


@pytest.mark.statistical
@pytest.mark.parametrize("base", BASES, ids=lambda base: base.kind)
@pytest.mark.parametrize("common", [0.0, COMMON])
def test_sweeps_leave_the_joint_law_as_it_is(base: BaseMeasure, common: float) -> None:
    assert np.abs(joint(ClusteredSampler, base, 20_000, common)).max() < 4


def test_fixed_effects_with_another_prior_are_rejected() -> None:
    assert np.abs(joint(Careless, BASES[0], 1_500)).max() > 5


class Weightless(BaseMeasure):
    """Effects whose level moves as if any were as likely."""

    def at(self, effect: Vector) -> Vector:
        return np.array([[0.0], [0.0], [1.0]]) * super().at(effect)


def levels_of_one_cluster(base: BaseMeasure) -> Vector:
    """The effect of all cells where nothing but their level can move."""
    table = FullTable((2, 2), None, np.array([1, 0, 2, 0]), 0.5)
    fixed = FixedEffects.of((2, 2), ((0,), (1,)))
    sampler = ClusteredSampler(table, 100, base, fixed, variance=1e-8)
    state = Clusters(np.zeros(2), np.zeros(1), np.array([0.9]), 0.1, 1.0, np.zeros(2))
    rng, found = np.random.default_rng(4), []
    for _ in range(2_000):
        sampler._move(state, 1, np.zeros(4, dtype=np.int32), table, rng)
        found.append(state.effect[0])
    return np.exp(found[100::10])


def test_a_level_has_the_law_of_its_cluster() -> None:
    base = BaseMeasure("log-gamma", 4.0, 2.0)
    law = stats.gamma(4.0 + 3.0, scale=1 / (2.0 + 4 * 0.5))
    assert stats.kstest(levels_of_one_cluster(base), law.cdf).pvalue > 1e-3
    assert stats.kstest(levels_of_one_cluster(Weightless("log-gamma", 4.0, 2.0)), law.cdf).pvalue < 1e-6


def apart_from_algorithm_3(cells: int, common: float) -> Vector:
    """Clusters, mass and effects by two samplers that share no line, in standard errors of the difference."""
    rng = np.random.default_rng(8)
    log_xi = rng.normal(0.0, 1.0, cells)
    counts = rng.poisson(np.exp(log_xi + rng.choice([-1.5, 1.0], cells)))
    table = FullTable((cells,), None, counts, 1.0)
    base = BaseMeasure("log-gamma", 1.0, 0.5)
    sampler = ClusteredSampler(table, 1000, base, FixedEffects((cells,), ()), log_xi, MASS, common=common)
    state = sampler.start(table, rng, crowded=False)
    reference = Algorithm3(counts, np.exp(log_xi), 1.0, 0.5, MASS)
    ours, theirs = [], []
    for sweep in range(1_200):
        state = sampler.sweep(state, table, rng)
        reference.sweep(rng)
        if sweep >= 200:
            own = reference.log_effect[sampler.occupied]
            ours.append([len(state.effect), np.log(state.mass), state.own.std(), *state.own[:6]])
            theirs.append([reference.clusters, np.log(reference.mass), own.std(), *own[:6]])
    batches = [np.array(one).reshape(25, 40, -1).mean(axis=1) for one in (ours, theirs)]
    error = np.sqrt(sum(one.var(axis=0, ddof=1) / 25 for one in batches))
    return np.asarray((batches[0].mean(axis=0) - batches[1].mean(axis=0)) / error)


@pytest.mark.parametrize("common", [2.0, COMMON])
@pytest.mark.parametrize("cells", [40, pytest.param(200, marks=pytest.mark.statistical)])
def test_the_posterior_is_that_of_algorithm_3(cells: int, common: float) -> None:
    assert np.abs(apart_from_algorithm_3(cells, common)).max() < 4


def test_pairs_that_do_not_see_the_cells_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustered, "SummedCells", Blind)
    assert np.abs(apart_from_algorithm_3(40, 2.0)).max() > 6


@pytest.mark.parametrize("effect", [3000 / 0.15, 1000.0], ids=["near", "far"])
def test_a_cell_with_very_many_people_finds_its_cluster(effect: float) -> None:
    """The effect that would suit it best, 60,000, is one that the base never has: nothing must wait for it."""
    table = FullTable((3,), None, np.array([3000, 5, 0]), 0.05)
    sampler = ClusteredSampler(table, 100_000, BaseMeasure(), FixedEffects((3,), ()))
    state = Clusters(np.empty(0), np.log([effect, 1.0]), np.array([0.3, 0.3]), 0.4, 30.0, np.zeros(2))
    z, found = sampler._allocated(state, table.counts, np.full(3, 0.05), np.random.default_rng(1))
    assert z[0] == 0
    assert 0.0 <= found.left < 0.4
