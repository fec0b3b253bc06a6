"""What does a sweep of the latent class sampler cost, and how does it grow with the sample?

People of latent classes on 14 keys of 2 to 7 levels, 10,000 records, at most 50 classes. A sweep is compared with
a NumPy pass over the same distinct cells that does nothing but multiply the class-conditional probabilities.
Processor seconds of one run; only the ratio means anything. Then a sweep's time for up to a million records.

    python benchmarks/latent_class.py
"""

import os
import resource
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import numpy as np

from keyhole.inference.convergence import Convergence
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.population.multinomial import MultinomialUnsampled

LEVELS = (2, 4, 6, 4, 5, 2, 7, 3, 3, 2, 2, 3, 3, 2)
RECORDS, CLASSES, PEOPLE_EACH = 10_000, 50, 20
TARGET = 2.0
"""NumPy passes that a sweep may cost."""

SIZES = (10_000, 100_000, 1_000_000)


def people(records: int, seed: int = 1) -> np.ndarray:
    """Records of twelve classes whose levels are uneven."""
    rng = np.random.default_rng(seed)
    member = rng.choice(12, records, p=rng.dirichlet(np.ones(12)))
    columns = []
    for levels in LEVELS:
        edges = rng.dirichlet(np.full(levels, 0.4), 12).cumsum(axis=1)[member]
        columns.append(np.minimum((edges < rng.random((records, 1))).sum(axis=1), levels - 1))
    return np.stack(columns, axis=1)


def seconds(work: Callable[[], object], times: int) -> float:
    """Processor seconds of one call, the first left out."""
    work()
    started = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started) / times


def numpy_pass(tree: CellTree, state: LatentClasses) -> np.ndarray:
    """The products of the class-conditional probabilities of all cells."""
    theta = np.exp(state.log_theta)
    product = np.broadcast_to(np.exp(state.log_weight), (len(tree.rows), len(state.log_weight))).copy()
    for column in tree.rows.T:
        product *= theta[column]
    return product


def settled(sampler: LatentClassSampler, tree: CellTree, sweeps: int) -> tuple[LatentClasses, np.random.Generator]:
    rng = np.random.default_rng(2)
    state = sampler.start(tree, rng, crowded=False)
    for _ in range(sweeps):
        state = sampler.sweep(state, tree, rng)
    return state, rng


def effective_draws(sampler: LatentClassSampler, codes: np.ndarray, sweeps: int) -> float:
    """Effective draws of tau1 per processor second of one chain, warm-up left out."""
    tree = CellTree.of(LEVELS, codes)
    state, rng = settled(sampler, tree, sweeps)
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    unique, values = cells[counts == 1], []
    started = time.process_time()
    for sweep in range(sweeps):
        state = sampler.sweep(state, tree, rng)
        if sweep % 5 == 0:
            law = MultinomialUnsampled(sampler.probabilities(state, unique, rng), PEOPLE_EACH * len(codes))
            values.append(float(law.prob_none().sum()))
    return Convergence.of(np.array([values])).ess / (time.process_time() - started)


def main() -> None:
    """Print the ratio, and the time by sample size."""
    sampler = LatentClassSampler(LEVELS, CLASSES)
    codes = people(RECORDS)
    tree = CellTree.of(LEVELS, codes)
    state, rng = settled(sampler, tree, 300)
    sweep = seconds(lambda: sampler.sweep(state, tree, rng), 200)
    ours, theirs = sweep, seconds(lambda: numpy_pass(tree, state), 20)
    print(f"{RECORDS:,} records, {len(tree.counts):,} distinct cells, {len(LEVELS)} keys, {CLASSES} classes")
    print(f"  a sweep {1e3 * ours:.2f} ms ({1 / ours:,.0f} a second), a NumPy pass {1e3 * theirs:.2f} ms")
    print(f"  ratio {ours / theirs:.2f} (target {TARGET:.0f})")
    print(f"  {effective_draws(sampler, codes, 1500):.1f} effective draws of tau1 a second, one chain")
    for records in SIZES:
        large = CellTree.of(LEVELS, people(records))
        state, rng = settled(sampler, large, 5)
        each = seconds(lambda: sampler.sweep(state, large, rng), 5)  # noqa: B023, called at once
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"  {records:>9,} records, {len(large.counts):>9,} cells: {1e3 * each:8.1f} ms a sweep, "
            f"{1e9 * each / records:6.0f} ns a record, peak {peak:.2f} GB"
        )


if __name__ == "__main__":
    main()
