"""The bridge with one class, where everything is known: products of Dirichlet-multinomial laws."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from keyhole.arrays import Codes, Vector
from keyhole.inference.pareto_weights import HEAVY
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.synthesis import bridge
from keyhole.synthesis.class_draws import ClassDraw, Length
from keyhole.synthesis.supports import Near, all_cells
from tests.synthesis.small_files import (
    SIZES,
    TOLERANCE,
    all_alike,
    by_cell,
    every_cell,
    known,
    level_counts,
    normal,
    runs,
    skewed,
    variation,
    weighed,
    without,
)


def exact_one_class(codes: Codes, copies: Sequence[Codes], asked: Codes, sizes: tuple[int, ...]) -> Vector:
    """P(record is x) for all cells: P(copies | x and the others) by Dirichlet-multinomial laws, no bridge."""
    cells = every_cell(sizes)
    log = np.zeros((len(asked), len(cells)))
    for i, row in enumerate(asked):
        others = level_counts(without(codes, row), sizes)
        for copy in copies:
            for j, made in enumerate(level_counts(copy, sizes)):
                parameter = 1.0 + others[j] + np.eye(sizes[j])
                gain = (special.gammaln(parameter + made) - special.gammaln(parameter)).sum(axis=1)
                log[i] += gain[cells[:, j]]
    return normal(log)


@pytest.mark.parametrize("sizes", [SIZES, (16,)], ids=["three-keys", "sixteen-cells"])
@pytest.mark.parametrize("copies", [1, 3])
def test_one_class_is_a_product_of_dirichlet_multinomials(sizes: tuple[int, ...], copies: int) -> None:
    rng = np.random.default_rng(5)
    codes = skewed(sizes, 40, rng)
    made = [skewed(sizes, 40, rng) for _ in range(copies)]
    asked = np.unique(codes, axis=0)
    sampler = LatentClassSampler(sizes, 1, "uniform", splits=0)
    drawn = runs(sampler, codes, made, asked, Length(1, 1, 16, 2))
    found = weighed(all_cells(sizes, None), asked, [one.draws for one in drawn])
    exact = exact_one_class(codes, made, asked, sizes)
    np.testing.assert_allclose(by_cell(found.chance[-1], asked, sizes), exact, atol=1e-9)
    assert (found.khat == 0).all()
    assert found.error.max() < 1e-9
    for number in range(copies):  # also from the first few copies
        upto = exact_one_class(codes, made[: number + 1], asked, sizes)
        np.testing.assert_allclose(by_cell(found.chance[number], asked, sizes), upto, atol=1e-9)


def dirichlet_draws(codes: Codes, sizes: tuple[int, ...], draws: int, rng: np.random.Generator) -> list[ClassDraw]:
    """Independent draws of the parameters of one class, as states of a chain."""
    theta = np.concatenate([rng.dirichlet(1 + seen, draws) for seen in level_counts(codes, sizes)], axis=1)
    one = np.zeros(1)
    mass, base = np.ones(len(sizes)), np.ones(sum(sizes))
    states = [LatentClasses(one, np.log(row)[:, None], one, mass, base, 1.0, len(codes)) for row in theta]
    return [ClassDraw.known(state, len(sizes)) for state in states]


@pytest.mark.parametrize("sizes", [SIZES, (16,)], ids=["three-keys", "sixteen-cells"])
def test_draws_of_the_parameters_come_to_the_same(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    codes = skewed(sizes, 60, rng)
    made = [skewed(sizes, 60, rng) for _ in range(2)]
    asked = np.unique(codes, axis=0)
    files = [codes, *(np.concatenate([codes, copy]) for copy in made)]
    drawn = [dirichlet_draws(file, sizes, 6_000, rng) for file in files]
    found = weighed(all_cells(sizes, None), asked, drawn)
    exact = exact_one_class(codes, made, asked, sizes)
    away = variation(by_cell(found.chance[-1], asked, sizes), exact)
    counts = np.unique(codes, axis=0, return_counts=True)[1]
    fine = found.khat < HEAVY
    assert fine.mean() > 0.5
    # 1 over the probability of a level that n people have is a weight of k-hat 1 / (n + 1): slow for one or two.
    assert away[fine & (counts > 2)].max() < TOLERANCE
    assert away[fine].max() < 3 * TOLERANCE
    truth = exact[(every_cell(sizes)[None] == asked[:, None]).all(axis=2)]
    scores = ((found.chance[-1][:, 0] - truth) / found.error)[fine]
    assert np.abs(scores).max() < 6  # the error is a jackknife of eight groups: tails of Student's t with 7


def test_kept_states_of_the_chain_come_to_the_same() -> None:
    rng = np.random.default_rng(7)
    codes, copy = skewed(SIZES, 60, rng), skewed(SIZES, 60, rng)
    asked = np.unique(codes, axis=0)
    sampler = LatentClassSampler(SIZES, 1, "uniform", splits=0)
    drawn = runs(sampler, codes, [copy], asked, Length(5, 1, 2_000, 2))
    found = weighed(all_cells(SIZES, None), asked, [known(one, 3) for one in drawn])
    away = variation(by_cell(found.chance[-1], asked, SIZES), exact_one_class(codes, [copy], asked, SIZES))
    fine = found.khat < HEAVY
    assert fine.mean() > 0.5
    assert away[fine].max() < TOLERANCE


@pytest.mark.parametrize("draws", ["expected", "known"])
def test_a_bridge_that_leaves_the_record_in_its_place_is_found_out(
    draws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    codes = skewed(SIZES, 40, rng)
    made = [skewed(SIZES, 40, rng) for _ in range(3)]
    asked = np.unique(codes, axis=0)
    files = [codes, *(np.concatenate([codes, copy]) for copy in made)]
    if draws == "known":
        drawn = [dirichlet_draws(file, SIZES, 4_000, rng) for file in files]
    else:
        sampler = LatentClassSampler(SIZES, 1, "uniform", splits=0)
        found = runs(sampler, codes, made, asked, Length(1, 1, 16, 2))
        drawn = [[replace(draw, own=None) for draw in one.draws] for one in found]
    monkeypatch.setattr(bridge, "smoothed_weights", all_alike)
    chance = weighed(all_cells(SIZES, None), asked, drawn).chance[-1]
    away = variation(by_cell(chance, asked, SIZES), exact_one_class(codes, made, asked, SIZES))
    assert away.max() > 3 * TOLERANCE


def test_two_records_of_a_combination_are_one_taken_away_and_one_left() -> None:
    """Of two alike, either may be taken away: the file without one of them is the same."""
    rng = np.random.default_rng(4)
    sizes = (2, 3)
    codes = np.repeat(skewed(sizes, 12, rng), 3, axis=0)
    copy = skewed(sizes, 36, rng)
    asked = np.unique(codes, axis=0)
    sampler = LatentClassSampler(sizes, 1, "uniform", splits=0)
    drawn = [one.draws for one in runs(sampler, codes, [copy], asked, Length(1, 1, 16, 2))]
    found = weighed(all_cells(sizes, None), asked, drawn)
    exact = exact_one_class(codes, [copy], asked, sizes)
    np.testing.assert_allclose(by_cell(found.chance[-1], asked, sizes), exact, atol=1e-9)


def test_forty_keys_with_rare_levels() -> None:
    rng = np.random.default_rng(15)
    sizes = (12,) * 40
    codes = np.minimum(rng.geometric(0.5, (30, 40)) - 1, 11)
    codes[0] = 11  # all levels rare at once
    copy = np.minimum(rng.geometric(0.5, (30, 40)) - 1, 11)
    asked = np.unique(codes, axis=0)
    sampler = LatentClassSampler(sizes, 1, "uniform", splits=0)
    drawn = [one.draws for one in runs(sampler, codes, [copy], asked, Length(1, 1, 16, 2))]
    support = Near(sizes)
    found = weighed(support, asked, drawn)
    mask, candidates = support.mask(asked), support.candidates(asked)
    made = np.array(level_counts(copy, sizes))
    for i, row in enumerate(asked):
        others = np.array(level_counts(without(codes, row), sizes))
        gain = np.log1p(made / (1.0 + others))  # (n + z + 1) / (n + 1)
        log = gain[np.arange(40), candidates[i]].sum(axis=1)
        np.testing.assert_allclose(
            found.chance[-1][i], normal(np.where(mask[i], log, -np.inf)), rtol=1e-8, atol=1e-12
        )
