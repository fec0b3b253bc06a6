"""What does a sweep over all cells of a table cost, where effects of cells fall into clusters?

844,800 cells of 7 keys, as in the larger table of Carota et al., main effects at their maximum likelihood, twenty
clusters to begin with. A sweep of ``np-i-emp`` is compared with the NumPy evaluation of the exponentials of all
cells and clusters, and with Neal's algorithm 3, in NumPy on some of the cells and compiled on all of them.
Processor seconds of one run; only ratios mean anything. A sweep of ``np-i``, which learns main effects as well,
and peak memory come last.

    python benchmarks/mixed_loglinear.py
"""

import os
import resource
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import numpy as np
from peers.neal_algorithm3 import Seats, reseat, reseat_compiled

from keyhole.models.mixed_loglinear.base_measure import BaseMeasure
from keyhole.models.mixed_loglinear.clustered import ClusteredSampler, Clusters
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.models.mixed_loglinear.starts import independent_means

LEVELS = (11, 8, 10, 8, 5, 4, 6)
CLUSTERS, RECORDS, PEOPLE = 20, 45_000, 900_000
BASE = BaseMeasure("log-gamma", 1.0, 0.1)
SOME = 3_000
"""Cells that the NumPy algorithm 3 moves."""

EXPONENTIALS, ALGORITHM_3 = 3.0, 50.0
"""The most NumPy passes that a sweep may cost, and the least times that algorithm 3 must cost more."""


def people(seed: int = 1) -> FullTable:
    """Counts of all cells: uneven main effects, and twenty effects of cells."""
    rng = np.random.default_rng(seed)
    share = np.ones(1)
    for levels in LEVELS:
        share = np.multiply.outer(share, rng.dirichlet(np.full(levels, 0.8))).ravel()
    share *= np.exp(rng.normal(0.0, 1.5, CLUSTERS))[rng.integers(0, CLUSTERS, len(share))]
    counts = rng.poisson(RECORDS * share / share.sum())
    return FullTable(LEVELS, None, counts, RECORDS / PEOPLE)


def seconds(work: Callable[[], object], times: int) -> float:
    """Processor seconds of one call, the first left out."""
    work()
    started = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started) / times


def twenty(sampler: ClusteredSampler, rng: np.random.Generator) -> Clusters:
    """A state with twenty clusters, spread as effects are."""
    state = sampler.start(sampler.table, rng, crowded=False)
    state.effect = state.effect + np.linspace(-3.0, 3.0, CLUSTERS)
    state.weight, state.left, state.mass = np.full(CLUSTERS, 0.999 / CLUSTERS), 0.001, 1.0
    return state


def exponentials(x: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """exp(-x omega) of all cells and clusters, some cells at a time."""
    total = np.zeros(len(x))
    for part in np.array_split(np.arange(len(x)), 100):
        total[part] = np.exp(-np.outer(x[part], omega)).sum(axis=1)
    return total


def main() -> None:
    """Print costs and ratios."""
    table, rng = people(), np.random.default_rng(2)
    known = independent_means(table) - np.log(table.fraction)
    sampler = ClusteredSampler(table, PEOPLE, BASE, FixedEffects(LEVELS, ()), known)
    state = twenty(sampler, rng)
    sweep = seconds(lambda: sampler.sweep(state, table, rng), 20)
    x = np.exp(known) * table.fraction
    passes = seconds(lambda: exponentials(x, np.exp(state.effect)), 3)
    occupied = int((table.counts > 0).sum())
    print(f"{len(table):,} cells, {occupied:,} occupied by {table.counts.sum():,} records, {CLUSTERS} clusters")
    print(f"  a sweep of np-i-emp {1e3 * sweep:.0f} ms, the exponentials in NumPy {1e3 * passes:.0f} ms")
    print(f"  ratio {sweep / passes:.2f} (target at most {EXPONENTIALS:g})")

    seats = Seats.of(rng.integers(0, CLUSTERS, len(table)), table.counts, x, 2 * CLUSTERS)
    base = (BASE.first, BASE.second)
    spread = np.linspace(0, len(table) - 1, SOME).astype(np.int64)
    some = Seats.of(seats.z[spread], table.counts[spread], x[spread], 2 * CLUSTERS)
    cell = seconds(lambda: reseat(some, table.counts[spread], x[spread], base, 1.0, rng), 1) / SOME
    plain = cell * len(table)
    print(f"  algorithm 3 in NumPy {1e6 * cell:.0f} us a cell, {plain:.0f} s a sweep")
    print(f"  ratio {plain / sweep:.0f} (target at least {ALGORITHM_3:g})")
    arrays = (seats.z, seats.cells, seats.held, seats.exposed, table.counts, x, base, 1.0, rng)
    compiled = seconds(lambda: reseat_compiled(*arrays), 1)
    print(f"  algorithm 3 compiled {1e3 * compiled:.0f} ms a sweep, ratio {compiled / sweep:.1f}")

    fixed = FixedEffects.of(LEVELS, tuple((j,) for j in range(len(LEVELS))), overall=False)
    learning = ClusteredSampler(table, PEOPLE, BASE, fixed)
    begun = twenty(learning, rng)
    whole = seconds(lambda: learning.sweep(begun, table, rng), 5)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  a sweep of np-i, {fixed.number} main effects learned, {1e3 * whole:.0f} ms; peak {peak:.2f} GB")


if __name__ == "__main__":
    main()
