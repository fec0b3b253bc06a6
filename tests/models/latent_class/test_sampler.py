"""The latent class sampler against exact enumeration, its own prior, and a sampler broken on purpose."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

from keyhole.arrays import Codes, Vector
from keyhole.models.latent_class._split_kernels import split_or_merge
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import zero_rules_from
from tests.sampler_checks import calibration_ranks, geweke_scores, keys_of, uniformity

SIZES = (2, 3)
RECORDS = np.array([[0, 0], [0, 2], [1, 1], [0, 0]])
CONCENTRATION = (3.0, 2.0)


ZEROS = StructuralZeros(keys_of(SIZES), zero_rules_from([{"K0": "0", "K1": "1"}, {"K0": "1", "K1": "2"}]))
CELLS = np.array(list(product(*map(range, SIZES))))
POSSIBLE = CELLS[~ZEROS.contains(CELLS)]


def small(**options: object) -> LatentClassSampler:
    return LatentClassSampler(
        SIZES,
        classes=3,
        concentration_prior=CONCENTRATION,
        **options,  # type: ignore[arg-type]
    )


def enumerated() -> tuple[float, Vector]:
    """The exact chance that all records share a class, and the exact predictive probability of each cell."""
    grid = np.linspace(1e-4, 20, 4000)
    prior = stats.gamma.pdf(grid, CONCENTRATION[0], scale=1 / CONCENTRATION[1])
    prior /= prior.sum()
    cells = list(product(*map(range, SIZES)))
    together, predicted, whole = 0.0, np.zeros(len(cells)), 0.0
    for member in product(range(3), repeat=len(RECORDS)):
        sizes = np.bincount(member, minlength=3)
        log_allocation = np.zeros(len(grid))
        share = np.ones((3, len(grid)))
        for k in range(2):
            beyond = sizes[k + 1 :].sum()
            log_allocation += special.betaln(1 + sizes[k], grid + beyond) - special.betaln(1, grid)
            mean = (1 + sizes[k]) / (1 + sizes[k] + grid + beyond)
            share[k] *= mean
            share[k + 1 :] *= 1 - mean
        likelihood, chance = 1.0, np.ones((3, len(cells)))
        for k in range(3):
            own = RECORDS[np.array(member) == k]
            for j, levels in enumerate(SIZES):
                counts = np.bincount(own[:, j], minlength=levels)
                likelihood *= np.exp(
                    special.gammaln(levels)
                    - special.gammaln(levels + len(own))
                    + special.gammaln(1 + counts).sum()
                )
                chance[k] *= (1 + counts[[cell[j] for cell in cells]]) / (levels + len(own))
        weight = likelihood * prior * np.exp(log_allocation)
        whole += weight.sum()
        together += weight.sum() * (sizes.max() == len(RECORDS))
        predicted += (share @ weight) @ chance
    return together / whole, predicted / whole


def weighed_prior(sampler: LatentClassSampler, draws: int) -> tuple[Vector, Vector]:
    """Posterior means of the cells' probabilities from draws of the prior, weighed by their likelihood."""
    rng = np.random.default_rng(11)
    weights, found = np.empty(draws), np.empty((draws, len(POSSIBLE)))
    rows = [POSSIBLE.tolist().index(record) for record in RECORDS.tolist()]
    for i in range(draws):
        found[i] = sampler.probabilities(sampler.draw_prior(len(RECORDS), rng), POSSIBLE, rng)
        weights[i] = found[i, rows].prod()
    weights /= weights.sum()
    mean = weights @ found
    return mean, np.sqrt((weights**2) @ (found - mean) ** 2)


def long_run(sampler: LatentClassSampler, sweeps: int, cells: Codes = CELLS) -> tuple[Vector, Vector]:
    """Whether all records share a class, and the cells' probabilities, sweep by sweep."""
    rng = np.random.default_rng(3)
    tree = CellTree.of(SIZES, RECORDS)
    state = sampler.start(tree, rng, crowded=True)
    together, found = [], []
    for _ in range(sweeps):
        state = sampler.sweep(state, tree, rng)
        together.append(state.occupied == 1)
        found.append(sampler.probabilities(state, cells, rng))
    return np.array(together), np.array(found)


@dataclass(frozen=True)
class Forgetful(LatentClassSampler):
    """Broken on purpose: level probabilities are drawn as if half of the records had not been seen."""

    seen = 2

    def _draw_parameters(self, state, sizes, counts, rng, *, first=False):  # type: ignore[no-untyped-def]
        super()._draw_parameters(state, sizes, counts // self.seen, rng, first=first)


class Oblivious(Forgetful):
    """Only one record in ten is seen, since ranks of tau1 and tau2 do not tell much."""

    seen = 10


@pytest.mark.parametrize("splits", [0, 2])
def test_long_runs_agree_with_exact_enumeration(splits: int) -> None:
    share, predicted = enumerated()
    together, found = long_run(small(prior="uniform", splits=splits), 6_000)
    error = np.sqrt(together.reshape(50, -1).mean(axis=1).var() / 50)
    assert abs(together.mean() - share) < 4 * error
    errors = np.sqrt(found.reshape(50, -1, len(predicted)).mean(axis=1).var(axis=0) / 50)
    assert (np.abs(found.mean(axis=0) - predicted) < 4 * errors).all()


def test_enumeration_rejects_a_broken_sampler() -> None:
    broken = Forgetful(SIZES, classes=3, concentration_prior=CONCENTRATION, prior="uniform")
    _, predicted = enumerated()
    _, found = long_run(broken, 5_000)
    errors = np.sqrt(found.reshape(50, -1, len(predicted)).mean(axis=1).var(axis=0) / 50)
    assert (np.abs(found.mean(axis=0) - predicted) > 6 * errors).any()


@pytest.mark.parametrize("prior", [pytest.param("uniform", marks=pytest.mark.statistical), "marginal"])
def test_with_structural_zeros_long_runs_agree_with_the_weighed_prior(prior: str) -> None:
    sampler = small(prior=prior, diagram=ZEROS.small_diagram)
    expected, error = weighed_prior(sampler, 20_000)
    _, found = long_run(sampler, 8_000, POSSIBLE)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    errors = np.sqrt(found.reshape(50, -1, len(POSSIBLE)).mean(axis=1).var(axis=0) / 50 + error**2)
    assert (np.abs(found.mean(axis=0) - expected) < 4 * errors).all()
    # Without the division by the admissible mass the answer is another one.
    _, blind = long_run(small(prior=prior), 4_000, POSSIBLE)
    assert (np.abs((blind / blind.sum(axis=1, keepdims=True)).mean(axis=0) - expected) > 5 * errors).any()


@dataclass(frozen=True)
class Augmented(LatentClassSampler):
    """The sampler with imaginary records: those a class would have given until all of its own were admissible."""

    def _draw_parameters(self, state, sizes, counts, rng, *, first=False):  # type: ignore[no-untyped-def]
        counts = counts.copy()
        theta = np.exp(state.log_theta)
        if not first and sizes.any():
            for k in np.flatnonzero(sizes):
                for _ in range(rng.negative_binomial(sizes[k], np.exp(state.log_admissible[k]))):
                    rows = self._impossible(theta[:, k], rng)
                    counts[rows, k] += 1
        super()._draw_parameters(state, sizes, counts, rng, first=True)

    def _impossible(self, theta: Vector, rng: np.random.Generator) -> Vector:
        """The rows of an impossible cell of a class."""
        while True:
            cell = np.array(
                [rng.choice(size, p=theta[b : b + size]) for b, size in zip(self.begins, self.sizes, strict=False)]
            )
            if ZEROS.contains(cell[None])[0]:
                return np.asarray(self.begins[:-1] + cell)


@pytest.mark.statistical
def test_imaginary_records_lead_to_the_same_posterior() -> None:
    """With the flat prior: learned masses make classes with next to no admissible cell, and no end of records."""
    exact = small(prior="uniform", diagram=ZEROS.small_diagram)
    reference = Augmented(SIZES, 3, "uniform", CONCENTRATION, diagram=ZEROS.small_diagram)
    found, expected = (long_run(sampler, 5_000, POSSIBLE)[1] for sampler in (exact, reference))
    variances = [one.reshape(50, -1, len(POSSIBLE)).mean(axis=1).var(axis=0) / 50 for one in (found, expected)]
    apart = np.abs(found.mean(axis=0) - expected.mean(axis=0)) / np.sqrt(sum(variances))
    assert apart.max() < 4


def statistics(state: LatentClasses, records: Codes) -> Vector:
    weight = np.exp(state.log_weight)
    theta = np.exp(state.log_theta)
    first = theta[0] @ weight
    return np.array(
        [
            state.concentration,
            (weight**2).sum(),
            weight[0],
            first,
            (theta[0] ** 2) @ weight,
            (first - (records[:, 0] == 0).mean()) ** 2,
            np.log(state.mass).mean(),
            np.log(state.mass[1]) * state.base[3],
            state.base[2],
            (state.base[2:] ** 2).sum(),
        ]
    )


@pytest.mark.parametrize(
    ("prior", "zeros"),
    [
        ("marginal", True),
        pytest.param("marginal", False, marks=pytest.mark.statistical),
        pytest.param("uniform", True, marks=pytest.mark.statistical),
        pytest.param("uniform", False, marks=pytest.mark.statistical),
    ],
)
def test_geweke(prior: str, zeros: bool) -> None:
    diagram = ZEROS.small_diagram if zeros else None
    sampler = small(prior=prior, splits=1, diagram=diagram)
    scores = geweke_scores(sampler, 6, statistics, draws=4_000, rng=np.random.default_rng(4))
    assert np.abs(scores).max() < 4.0
    broken = Forgetful(
        SIZES,
        classes=3,
        concentration_prior=CONCENTRATION,
        prior=prior,  # type: ignore[arg-type]
        diagram=diagram,
    )
    scores = geweke_scores(broken, 6, statistics, draws=3_000, rng=np.random.default_rng(4))
    assert np.abs(scores).max() > 5.0


@pytest.mark.statistical
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("prior", ["uniform", "marginal"])
def test_calibration_of_tau1_and_tau2(prior: str, zeros: bool) -> None:
    levels = (3, 4, 3, 2)
    rules = zero_rules_from([{"K0": "0", "K1": ["1", "2"]}, {"K2": "2", "K3": "1"}])
    diagram = StructuralZeros(keys_of(levels), rules).small_diagram if zeros else None
    right = LatentClassSampler(levels, 8, prior, (2.0, 2.0), diagram=diagram)  # type: ignore[arg-type]
    broken = Oblivious(levels, 8, prior, (2.0, 2.0), diagram=diagram)  # type: ignore[arg-type]

    def ranks(sampler: LatentClassSampler) -> Vector:
        return calibration_ranks(
            sampler,
            levels,
            people=400,
            records=40,
            replicates=400,
            warmup=300,
            draws=60,
            thin=20,
            rng=np.random.default_rng(8),
        )

    found, wrong = ranks(right), ranks(broken)
    assert min(uniformity(found[:, i]) for i in range(2)) > 1e-3
    assert min(uniformity(wrong[:, i]) for i in range(2)) < 1e-4


def test_no_cell_is_surer_than_its_class_where_logarithms_are_nothing_but_rounding() -> None:
    levels = (4, 4, 4, 4)
    pairs = ({f"K{i}": str(x), f"K{j}": str(x)} for i in range(4) for j in range(i) for x in range(4))
    zeros = StructuralZeros(keys_of(levels), zero_rules_from(list(pairs)))
    cells = np.array(list(product(*map(range, levels))))
    possible = cells[~zeros.contains(cells)]
    rng = np.random.default_rng(4)
    sampler = LatentClassSampler(levels, classes=40, diagram=zeros.small_diagram)
    state = sampler.draw_prior(10, rng)
    state.mass[:] = np.exp(-39.0)
    sampler._draw_parameters(state, np.zeros(40, np.int64), sampler._no_counts(), rng)
    assert (state.log_admissible < -1e15).any()
    rows = state.log_theta[possible + sampler.begins[:-1]]
    uncapped = (((rows[:, 0] - state.log_admissible) + rows[:, 1]) + rows[:, 2]) + rows[:, 3]
    assert (state.log_weight + uncapped).max() > 1.0
    found = sampler.probabilities(state, possible, rng)
    assert found.max() <= 1.0 + 1e-9
    assert found.sum() > 0.5


def test_a_split_and_a_merge_leave_the_tallies_right() -> None:
    rng = np.random.default_rng(2)
    sampler = LatentClassSampler((3, 4, 2), classes=6)
    codes = np.column_stack([rng.integers(0, size, 60) for size in (3, 4, 2)])
    tree = CellTree.of(sampler.sizes, codes)
    state = sampler.start(tree, rng, crowded=False)
    accepted = 0
    member, sizes, counts = sampler.allocation(state, tree, rng)
    cell_of = np.repeat(np.arange(len(tree.counts)), tree.counts)
    parameters = sampler._parameters(state), state.mass[sampler.key_of[tree.rows[0]]]
    for _ in range(300):
        accepted += split_or_merge(tree.rows, cell_of, *parameters, 1.0, rng, member, sizes, counts)
        np.testing.assert_array_equal(np.bincount(member, minlength=6), sizes)
        again = np.zeros_like(counts)
        np.add.at(again, (tree.rows[cell_of], member[:, None]), 1)
        np.testing.assert_array_equal(again, counts)
    assert accepted > 10


def twin_allocation(tree: CellTree, state: LatentClasses, uniforms: Vector) -> list[int]:
    """The class of each record by the definition, one uniform a record."""
    classes, turn = [], 0
    for rows, count in zip(tree.rows, tree.counts, strict=True):
        masses = np.exp(state.log_weight + state.log_theta[rows].sum(axis=0))
        edges = np.cumsum(masses)
        own = [int(np.searchsorted(edges, uniforms[turn + i] * masses.sum())) for i in range(count)]
        classes += own if count == 1 else sorted(own)
        turn += count
    return classes


def test_allocation_and_its_numpy_twin() -> None:
    rng = np.random.default_rng(5)
    sampler = LatentClassSampler((3, 4, 2, 5), classes=7)
    codes = np.column_stack([rng.integers(0, size, 300) for size in sampler.sizes])
    tree = CellTree.of(sampler.sizes, codes)
    state = sampler.start(tree, rng, crowded=True)
    stream = np.random.default_rng(9)
    uniforms = np.random.default_rng(9).random(tree.records)
    member, sizes, _ = sampler.allocation(state, tree, stream)
    assert member.tolist() == twin_allocation(tree, state, uniforms)
    np.testing.assert_array_equal(sizes, np.bincount(member, minlength=7))


def test_cells_with_many_records_are_split_by_the_same_law() -> None:
    rng = np.random.default_rng(6)
    sampler = LatentClassSampler((2, 2), classes=3, prior="uniform")
    codes = np.repeat([[0, 0], [1, 1]], [5000, 3], axis=0)
    tree = CellTree.of(sampler.sizes, codes)
    state = sampler.start(tree, rng, crowded=True)
    masses = np.exp(state.log_weight + state.log_theta[tree.rows[0]].sum(axis=0))
    member, sizes, _ = sampler.allocation(state, tree, rng)
    assert sizes.sum() == 5003
    assert stats.chisquare(np.bincount(member[:5000], minlength=3), 5000 * masses / masses.sum()).pvalue > 1e-4


def test_probabilities_of_all_cells_add_up_to_one() -> None:
    rng = np.random.default_rng(7)
    sampler = LatentClassSampler((3, 4, 2), classes=9)
    state = sampler.draw_prior(10, rng)
    cells = np.array(list(product(range(3), range(4), range(2))))
    assert sampler.probabilities(state, cells, rng).sum() == pytest.approx(1.0)


def test_cells_so_unlikely_that_products_vanish_are_still_allocated() -> None:
    rng = np.random.default_rng(8)
    sampler = LatentClassSampler((2,) * 4, classes=3)
    tree = CellTree.of(sampler.sizes, np.array([[0, 0, 0, 0], [1, 1, 1, 1]]))
    state = sampler.start(tree, rng, crowded=True)
    state.log_theta[:] = -400.0
    state.log_theta[:, 1] = -399.0
    member, _, _ = sampler.allocation(state, tree, rng)
    assert set(member.tolist()) <= {0, 1, 2}
    assert np.isfinite(member).all()


def test_odds_beyond_the_largest_number_deal_records_where_they_belong() -> None:
    """A hundred keys make odds that no number holds; two kinds of records must not be dealt into mixed halves."""
    rng = np.random.default_rng(9)
    sampler = LatentClassSampler((2,) * 120, classes=3, prior="uniform")
    tree = CellTree.of(sampler.sizes, np.repeat([[0] * 120, [1] * 120], 2, axis=0))
    cell_of = np.repeat(np.arange(2), tree.counts)
    parameters, mass = np.full(240, 0.0005), np.full(120, 0.001)
    for _ in range(200):
        member, sizes = np.zeros(4, dtype=np.int64), np.array([4, 0, 0])
        counts = np.zeros((240, 3), dtype=np.int64)
        np.add.at(counts, (tree.rows[cell_of], member[:, None]), 1)
        split_or_merge(tree.rows, cell_of, parameters, mass, 1.0, rng, member, sizes, counts)
        assert len(set(zip(cell_of.tolist(), member.tolist(), strict=True))) < 4
