"""The bridge against chains run without each record, over many copies, and its error against independent runs."""

from collections.abc import Sequence

import numpy as np
import pytest

from keyhole.arrays import Codes, Vector
from keyhole.inference.pareto_weights import HEAVY
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.synthesis.chances import Weighed
from keyhole.synthesis.class_draws import Length
from keyhole.synthesis.generator import synthesize
from keyhole.synthesis.importance import copy_weights
from keyhole.synthesis.supports import Near
from keyhole.synthesis.weighing import weigh
from tests.synthesis.small_files import (
    assessed,
    clustered,
    normal,
    run,
    runs,
    small_file,
    variation,
    without,
)


def refit(
    sampler: LatentClassSampler, file: Codes, candidates: Codes, sweeps: int, rng: np.random.Generator
) -> Vector:
    """Predictive probabilities of candidates from a chain on a file, straight from its parameters."""
    tree = CellTree.of(sampler.sizes, file)
    order = np.lexsort(candidates.T[::-1])
    total, kept = np.zeros(len(candidates)), 0
    for crowded in (False, True):
        state = sampler.start(tree, rng, crowded=crowded)
        for sweep in range(sweeps):
            state = sampler.sweep(state, tree, rng)
            if sweep >= sweeps // 5 and sweep % 2:
                total[order] += sampler.probabilities(state, candidates[order], rng)
                kept += 1
    return total / kept


def agreement(refitted: Sequence[Vector], found: Sequence[Vector]) -> tuple[float, float, float, Vector]:
    """Of log chances: correlation, that within records, slope; and the distance of each record's chances."""
    one, other = np.concatenate(refitted), np.concatenate(found)
    inner = [np.concatenate([part - part.mean() for part in parts]) for parts in (refitted, found)]
    away = np.array([variation(np.exp(a), np.exp(b)) for a, b in zip(refitted, found, strict=True)])
    slope = float(np.polyfit(one, other, 1)[0])
    return float(np.corrcoef(one, other)[0, 1]), float(np.corrcoef(*inner)[0, 1]), slope, away


@pytest.mark.statistical
def test_the_bridge_agrees_with_chains_run_without_each_record() -> None:
    """20 records; the published estimator, and a bridge that puts in what the model expects, do not agree."""
    rng = np.random.default_rng(31)
    sizes = (3, 4, 2, 5, 3)
    codes = clustered(sizes, 300, rng)
    sampler = LatentClassSampler(sizes, 15, "marginal")
    copies = synthesize(sampler, codes, copies=2, length=Length(400, 5, 100, 2), rng=rng).copies
    asked = np.unique(codes, axis=0)
    chosen = np.sort(rng.permutation(len(asked))[:20])
    part, support = asked[chosen], Near(sizes)
    mask, candidates = support.mask(part), support.candidates(part)
    refitted = []
    for i, row in enumerate(part):
        others, cells = without(codes, row), candidates[i, mask[i]].astype(np.int64)
        before = np.log(refit(sampler, others, cells, 3_000, rng))
        log = np.zeros(len(cells))
        for copy in copies:
            log += np.log(refit(sampler, np.concatenate([others, copy]), cells, 3_000, rng)) - before
        refitted.append(np.log(normal(log)))

    drawn = runs(sampler, codes, copies, asked, Length(800, 4, 2_000, 2), seed=5)
    states = drawn[0].states[::5]
    draws = [one.draws for one in drawn]

    def log_chances(found: Weighed) -> list[Vector]:
        return [np.log(np.maximum(row[own], 1e-300)) for row, own in zip(found.chance[-1], mask, strict=True)]

    found = weigh(part, support, draws[0], draws[1:], chosen, None)
    correlation, inner, slope, away = agreement(refitted, log_chances(found))
    print(f"refits: correlation {correlation:.4f}, within records {inner:.4f}, slope {slope:.3f}")
    print(f"distance by record {away.round(3)}, error {found.error.round(3)}, k-hat {found.khat.round(2)}")
    assert correlation > 0.95
    assert inner > 0.95
    assert slope == pytest.approx(1.0, abs=0.1)
    assert np.median(away) < 0.05
    assert away.max() < 0.1

    weights = copy_weights(sampler, states, copies, rng)
    published = weigh(part, support, draws[0], (), chosen, None, published=(states, weights))
    by_importance = agreement(refitted, log_chances(published))
    print(f"published: correlation {by_importance[0]:.4f}, within records {by_importance[1]:.4f}")
    assert by_importance[0] < 0.9

    twice = weigh(part, support, draws[0], draws[1:], chosen, None, model_prior=True)
    broken = agreement(refitted, log_chances(twice))
    print(f"prior used twice: correlation {broken[0]:.4f}, within records {broken[1]:.4f}, slope {broken[2]:.3f}")
    assert broken[0] < 0.9


@pytest.mark.statistical
def test_the_error_is_the_spread_over_independent_runs() -> None:
    sampler, codes, copies = small_file(7, 120)
    length = Length(300, 3, 240, 2)
    found = [assessed(sampler, codes, copies, seed, length=length).combinations for seed in range(24)]
    spread = np.std([one.probability for one in found], axis=0, ddof=1)
    said = np.sqrt(np.mean([one.error**2 for one in found], axis=0))
    fine = np.max([one.khat for one in found], axis=0) < HEAVY
    ratio = said[fine] / spread[fine]
    print(f"error over spread: median {np.median(ratio):.2f}, {ratio.min():.2f} to {ratio.max():.2f}")
    assert fine.mean() > 0.5
    assert 0.7 < np.median(ratio) < 1.5


@pytest.mark.statistical
def test_over_copies_the_odds_against_the_truth_are_those_before() -> None:
    """E of 1 over the chance of the truth is the number of candidates: sum over x and Z of P(Z | x)."""
    rng = np.random.default_rng(17)
    sizes = (3, 2, 4)
    codes = clustered(sizes, 60, rng)
    asked = np.unique(codes, axis=0)
    sampler = LatentClassSampler(sizes, 6, "uniform")
    support, places = Near(sizes), np.arange(len(asked))
    alone = run(sampler, codes, asked, Length(300, 20, 800, 2), 1)
    odds, twice = [], []
    for copy, state in enumerate(alone.states[::20]):
        both = np.concatenate([codes, sampler.redraw(state, rng)])
        stacked = run(sampler, both, asked, Length(300, 2, 400, 2), 100 + copy).draws
        for found, by_model in ((odds, False), (twice, True)):
            chance = weigh(asked, support, alone.draws, [stacked], places, None, model_prior=by_model).chance[-1]
            found.append(float((1.0 / chance[:, 0] / support.mask(asked).sum(axis=1)).mean()))
    error = np.std(odds, ddof=1) / np.sqrt(len(odds))
    print(
        f"odds over those before {np.mean(odds):.3f} +- {error:.3f}; with a prior used twice {np.mean(twice):.3f}"
    )
    assert error < 0.05
    assert abs(np.mean(odds) - 1) < 4 * error
    assert abs(np.mean(twice) - 1) > 8 * error
