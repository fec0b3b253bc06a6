"""The bridge with several classes: against all allocations of few records."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

from keyhole.arrays import Codes, Vector
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.synthesis import bridge
from keyhole.synthesis.class_draws import ClassDraw, Length, expected_weights
from keyhole.synthesis.supports import all_cells
from tests.synthesis.small_files import (
    TOLERANCE,
    by_cell,
    every_cell,
    normal,
    runs,
    variation,
    weighed,
    without,
)

CONCENTRATION = (3.0, 2.0)


def log_marginal(
    codes: Codes, classes: int, sizes: tuple[int, ...], hyper: tuple[Vector, Vector, Vector], log_weight: Vector
) -> float:
    """log P(file): a sum over all allocations and a mean over a, M and b, given by rows of ``hyper``."""
    concentration, mass, base = hyper
    key_of = np.repeat(np.arange(len(sizes)), sizes)
    member = np.array(list(product(range(classes), repeat=len(codes))))
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    ones = np.zeros((len(codes), sum(sizes)))
    ones[np.arange(len(codes))[:, None], codes + begins] = 1
    people = np.stack([(member == k).sum(axis=1) for k in range(classes)], axis=1)
    seen = np.stack([(member == k) @ ones for k in range(classes)], axis=1)
    kinds, many = np.unique(
        np.concatenate([people, seen.reshape(len(member), -1)], axis=1), axis=0, return_counts=True
    )
    total = np.full(len(concentration), -np.inf)
    for kind, count in zip(kinds, many, strict=True):
        group, tally = kind[:classes], kind[classes:].reshape(classes, -1)
        log = np.full(len(concentration), np.log(count))
        for k in range(classes - 1):
            beyond = group[k + 1 :].sum()
            log += special.betaln(1 + group[k], concentration + beyond) - special.betaln(1, concentration)
        for k in range(classes):
            if group[k]:
                log += (special.gammaln(mass) - special.gammaln(mass + group[k])).sum(axis=1)
                there = tally[k] > 0
                prior = (mass[:, key_of] * base)[:, there]
                log += (special.gammaln(prior + tally[k, there]) - special.gammaln(prior)).sum(axis=1)
        total = np.logaddexp(total, log)
    return float(special.logsumexp(total, b=log_weight))


def hyperparameters(prior: str, sizes: tuple[int, ...]) -> tuple[tuple[Vector, Vector, Vector], Vector]:
    """Points and weights to average over what is above the classes."""
    shape, rate = CONCENTRATION
    if prior == "uniform":
        nodes, weight = special.roots_genlaguerre(40, shape - 1)
        mass = np.tile(np.array(sizes, dtype=float), (40, 1))
        base = np.tile(np.concatenate([np.full(size, 1 / size) for size in sizes]), (40, 1))
        return (nodes / rate, mass, base), weight / weight.sum()
    keys = len(sizes)
    uniform = stats.qmc.Sobol(1 + keys + sum(sizes), seed=1).random_base2(11)
    mass = -np.log1p(-uniform[:, 1 : 1 + keys])
    gaps = -np.log1p(-uniform[:, 1 + keys :])
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    base = gaps / np.repeat(np.add.reduceat(gaps, begins, axis=1), sizes, axis=1)
    points = stats.gamma.ppf(uniform[:, 0], shape, scale=1 / rate), np.maximum(mass, 1e-9), base
    return points, np.full(len(uniform), 1 / len(uniform))


def enumerated(
    codes: Codes, copies: Sequence[Codes], asked: Codes, classes: int, sizes: tuple[int, ...], prior: str
) -> tuple[Vector, Vector]:
    """p(x | the others), and P(record is x | copies) by Bayes' rule from P(copies | x, the others)."""
    points, weight = hyperparameters(prior, sizes)
    cells = every_cell(sizes)
    predicted, chance = np.empty((len(asked), len(cells))), np.zeros((len(asked), len(cells)))
    for i, row in enumerate(asked):
        others = without(codes, row)
        for c, cell in enumerate(cells):
            file = np.concatenate([others, cell[None]])
            predicted[i, c] = log_marginal(file, classes, sizes, points, weight)
            for copy in copies:
                both = np.concatenate([file, copy])
                chance[i, c] += log_marginal(both, classes, sizes, points, weight) - predicted[i, c]
    return normal(predicted), normal(chance)


SMALL = np.array([[0, 0], [0, 2], [1, 1], [0, 0], [1, 1]])
COPIES = (np.array([[0, 0], [1, 1]]), np.array([[0, 2], [1, 0]]))


def checked_by_enumeration(prior: str, classes: int, length: Length) -> tuple[float, float, float]:
    """Distances of predictive means and of chances, and the worst score of a chance against its error."""
    sizes = (2, 3)
    asked = np.unique(SMALL, axis=0)
    sampler = LatentClassSampler(sizes, classes, prior, concentration_prior=CONCENTRATION)  # type: ignore[arg-type]
    drawn = [one.draws for one in runs(sampler, SMALL, COPIES, asked, length, seed=21)]
    predicted, exact = enumerated(SMALL, COPIES, asked, classes, sizes, prior)
    support = all_cells(sizes, None)
    sums, _ = bridge.predictions(asked, support, drawn[0], np.arange(len(asked)))
    mean = by_cell(sums.sum(axis=0), asked, sizes)
    found = weighed(support, asked, drawn)
    truth = exact[(every_cell(sizes)[None] == asked[:, None]).all(axis=2)]
    return (
        float(variation(mean / mean.sum(axis=1, keepdims=True), predicted).max()),
        float(variation(by_cell(found.chance[-1], asked, sizes), exact).max()),
        float(np.abs((found.chance[-1][:, 0] - truth) / found.error).max()),
    )


def test_two_classes_agree_with_all_allocations() -> None:
    predictive, chance, score = checked_by_enumeration("uniform", 2, Length(50, 1, 1_000, 2))
    assert predictive < TOLERANCE
    assert chance < TOLERANCE
    assert score < 6


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("prior", "classes", "tolerance"),
    [
        ("uniform", 2, TOLERANCE / 2),
        ("uniform", 3, TOLERANCE / 2),
        # With five records and a learned prior, weights of a record that alone has a level average out slowly.
        ("marginal", 2, 6 * TOLERANCE),
    ],
)
def test_long_runs_agree_with_all_allocations(prior: str, classes: int, tolerance: float) -> None:
    predictive, chance, score = checked_by_enumeration(prior, classes, Length(500, 3, 8_000, 2))
    print(f"{prior} {classes}: predictive {predictive:.4f}, chance {chance:.4f}, score {score:.1f}")
    assert predictive < TOLERANCE
    assert chance < tolerance
    assert score < 6


def test_expected_weights_are_means_of_broken_sticks() -> None:
    rng = np.random.default_rng(2)
    sizes, concentration = np.array([[4, 0, 2, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 9]]), 0.7
    for row, found in zip(sizes, expected_weights(sizes, concentration), strict=True):
        beyond = row.sum() - row.cumsum()
        stick = rng.beta(1 + row[:-1], concentration + beyond[:-1], (200_000, 4))
        left = np.column_stack([np.ones(len(stick)), (1 - stick).cumprod(axis=1)])
        weight = np.column_stack([stick, np.ones(len(stick))]) * left
        error = weight.std(axis=0) / np.sqrt(len(stick))
        assert (np.abs(weight.mean(axis=0) - found) < 5 * error).all()
        assert found.sum() == pytest.approx(1)


def test_expected_draws_are_means_of_parameters_given_classes() -> None:
    """One draw with the record taken away, against parameters drawn given the classes of the others."""
    rng = np.random.default_rng(3)
    sizes = (2, 3)
    sampler = LatentClassSampler(sizes, 4, "uniform")
    tree = CellTree.of(sizes, SMALL)
    state = sampler.start(tree, rng, crowded=True)
    state.concentration = 0.6
    member = np.array([0, 0, 2, 3, 3])
    rows = np.repeat(tree.rows.astype(np.int64), tree.counts, axis=0)
    counts = np.zeros((5, 4), dtype=np.int64)
    np.add.at(counts, (rows, member[:, None]), 1)
    asked = (rows - sampler.begins[:-1])[[0, 2, 4]]
    own = member[[0, 2, 4]]  # the second is alone in its class
    draw = ClassDraw.expected(state, np.bincount(member, minlength=4), counts, sampler.key_of, own)
    assert draw.own is not None
    found = by_cell(all_cells(sizes, None).probabilities(asked, draw.own, draw), asked, sizes)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    cells = every_cell(sizes)
    for i, gone in enumerate((0, 2, 4)):
        fewer = counts.copy()
        np.subtract.at(fewer, (rows[gone], member[gone]), 1)
        left = np.bincount(np.delete(member, gone), minlength=4)
        beyond = left.sum() - left.cumsum()
        stick = rng.beta(1 + left[:-1], 0.6 + beyond[:-1], (40_000, 3))
        weight = np.column_stack([stick, np.ones(len(stick))])
        weight *= np.column_stack([np.ones(len(stick)), (1 - stick).cumprod(axis=1)])
        total = np.zeros((len(stick), len(cells)))
        for k in range(4):
            first = rng.dirichlet(1 + fewer[:2, k], len(stick))
            second = rng.dirichlet(1 + fewer[2:, k], len(stick))
            total += weight[:, [k]] * first[:, cells[:, 0]] * second[:, cells[:, 1]]
        error = total.std(axis=0) / np.sqrt(len(total))
        assert (np.abs(total.mean(axis=0) - found[i]) < 5 * error).all()
