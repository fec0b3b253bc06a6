"""Checks that every Gibbs sampler must pass, and that a broken one must fail."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import stats

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.inference.gibbs import GibbsSampler
from keyhole.keys.variable import KeyVariable
from keyhole.population.multinomial import MultinomialUnsampled
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable

BATCHES = 50


def keys_of(sizes: tuple[int, ...]) -> tuple[KeyVariable, ...]:
    return tuple(KeyVariable(f"K{j}", tuple(map(str, range(size)))) for j, size in enumerate(sizes))


def geweke_scores(
    sampler: GibbsSampler[Any],
    size: int,
    statistics: Callable[[Any, Codes], Vector],
    *,
    draws: int,
    rng: Generator,
    sweeps: int = 1,
) -> Vector:
    """z-scores between two ways to draw parameters and records together (Geweke 2004, JASA 99).

    Independent draws from the prior and the model on one side; on the other a chain that redraws the records given
    the parameters and sweeps given the records. A sampler whose sweeps leave the posterior as it is has both
    alike.
    """
    direct = []
    for _ in range(draws):
        state = sampler.draw_prior(size, rng)
        direct.append(statistics(state, sampler.redraw(state, rng)))
    chained = []
    state = sampler.draw_prior(size, rng)
    for _ in range(draws):
        records = sampler.redraw(state, rng)
        for _ in range(sweeps):
            state = sampler.sweep(state, records, rng)
        chained.append(statistics(state, records))
    first, second = np.array(direct), np.array(chained)
    batches = second[: len(second) // BATCHES * BATCHES].reshape(BATCHES, -1, second.shape[1]).mean(axis=1)
    variance = first.var(axis=0) / len(first) + batches.var(axis=0, ddof=1) / BATCHES
    return np.asarray((first.mean(axis=0) - second.mean(axis=0)) / np.sqrt(np.maximum(variance, 1e-300)))


def calibration_ranks(
    sampler: GibbsSampler[Any],
    levels: tuple[int, ...],
    *,
    people: int,
    records: int,
    replicates: int,
    warmup: int,
    draws: int,
    thin: int,
    rng: Generator,
) -> Vector:
    """Ranks of the true tau1 and tau2 among posterior draws, in (0, 1), one row per simulated population.

    Uniform if the sampler, the cell probabilities and the law of the unsampled counts are all right (Talts et al.
    2018). Ties are broken at random.
    """
    ranks = []
    while len(ranks) < replicates:
        state = sampler.draw_prior(people, rng)
        population = sampler.redraw(state, rng)
        chosen = population[rng.permutation(people)[:records]]
        sample = Sample(ContingencyTable.from_codes(keys_of(levels), chosen), people)
        truth = true_taus(sample, population)
        chain = sampler.start(chosen, rng, crowded=bool(rng.integers(2)))
        drawn = []
        for sweep in range(warmup + draws * thin):
            chain = sampler.sweep(chain, chosen, rng)
            if sweep >= warmup and (sweep - warmup) % thin == 0:
                p = sampler.probabilities(chain, sample.table.cells[sample.table.uniques], rng)
                drawn.append(taus(MultinomialUnsampled(p, sample.unsampled_size).draw(rng)))
        below = (np.array(drawn) < truth).sum(axis=0)
        equal = (np.array(drawn) == truth).sum(axis=0)
        ranks.append((below + (equal + 1) * rng.random(2)) / (draws + 1))
    return np.array(ranks)


def true_taus(sample: Sample, population: Codes) -> Vector:
    whole = ContingencyTable.from_codes(sample.table.keys, population)
    found = {row.tobytes(): count for row, count in zip(whole.cells, whole.counts, strict=True)}
    unique = sample.table.cells[sample.table.uniques].astype(whole.cells.dtype)
    return taus(np.array([found[row.tobytes()] - 1 for row in unique], dtype=np.int64))


def taus(unsampled: IntVector) -> Vector:
    return np.array([float((unsampled == 0).sum()), float((1.0 / (1.0 + unsampled)).sum())])


def uniformity(ranks: Vector, bins: int = 10) -> float:
    """The p-value of a chi-squared test that ranks are uniform."""
    counts = np.histogram(ranks, bins=bins, range=(0.0, 1.0))[0]
    return float(stats.chisquare(counts).pvalue)
