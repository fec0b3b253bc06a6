"""Ranks of the true tau1 and tau2 among posterior draws, over tables drawn from the prior."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.models.mixed_loglinear.base_measure import BaseMeasure
from keyhole.models.mixed_loglinear.clustered import ClusteredSampler
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.models.mixed_loglinear.parametric import ParametricSampler
from tests.sampler_checks import taus, uniformity

LEVELS, FRACTION = (6, 4), 0.3
BASES = [
    BaseMeasure("log-gamma", 1.5, 0.8),
    BaseMeasure("normal", 0.3, 0.9),
    BaseMeasure("inverse-gaussian", 1.2, 2.0),
]
REPLICATES, WARMUP, DRAWS, THIN = 120, 60, 19, 4


def sampler_of(kind: type, base: BaseMeasure, table: FullTable) -> Any:
    fixed = FixedEffects.of(LEVELS, ((0,), (1,)), overall=kind is ParametricSampler)
    return kind(table, 1_000, base, fixed, variance=0.7)


def ranks_of(kind: type, base: BaseMeasure, believed: BaseMeasure, rng: Generator) -> Vector:
    """Everybody is drawn from the prior with base ``base``, a sample from everybody; ``believed`` is fitted."""
    cells = int(np.prod(LEVELS))
    whole = sampler_of(kind, base, FullTable(LEVELS, None, np.ones(cells, dtype=np.int64), 1.0))
    ranks = []
    for replicate in range(REPLICATES):
        everybody = whole.redraw(whole.draw_prior(cells, rng), rng).counts
        counts = rng.binomial(everybody, FRACTION)
        table = FullTable(LEVELS, None, counts, FRACTION)
        occupied = np.flatnonzero(counts)
        unique = counts[occupied] == 1
        truth = taus(everybody[occupied][unique] - 1)
        fitted = sampler_of(kind, believed, table)
        state = fitted.start(table, rng, crowded=bool(replicate % 2))
        drawn = []
        for sweep in range(WARMUP + DRAWS * THIN):
            state = fitted.sweep(state, table, rng)
            if sweep >= WARMUP and (sweep - WARMUP) % THIN == 0:
                mean = fitted.people * fitted.probabilities(state, np.zeros((len(occupied), 2)), rng)[unique]
                drawn.append(taus(rng.poisson((1.0 - FRACTION) * mean)))
        below, equal = ((np.array(drawn) < truth).sum(axis=0), (np.array(drawn) == truth).sum(axis=0))
        ranks.append((below + (equal + 1) * rng.random(2)) / (DRAWS + 1))
    return np.array(ranks)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [ClusteredSampler, ParametricSampler])
@pytest.mark.parametrize("base", BASES, ids=lambda base: base.kind)
def test_ranks_are_uniform(kind: type, base: BaseMeasure) -> None:
    ranks = ranks_of(kind, base, base, np.random.default_rng(8))
    assert min(uniformity(ranks[:, 0]), uniformity(ranks[:, 1])) > 0.001


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [ClusteredSampler, ParametricSampler])
def test_another_base_is_noticed(kind: type) -> None:
    """Effects that are believed to be large and much alike."""
    believed = replace(BASES[0], first=60.0, second=0.8)
    ranks = ranks_of(kind, BASES[0], believed, np.random.default_rng(9))
    assert min(uniformity(ranks[:, 0]), uniformity(ranks[:, 1])) < 1e-4
