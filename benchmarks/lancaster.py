"""What does the exact renormaliser c(lambda) of the Lancaster additive model cost, by number of cells?

Made-up people on the keys of Takemura's example (14, 2, 91, 5, 14, 7, 2, 5, 2 and 10 levels), all of them or the
first eight or nine; and what an estimate of the same c from sampled cells costs. Seconds of processor time on one
thread, without compilation.

    python benchmarks/lancaster.py [ORDER]
"""

import sys
import time

import numpy as np

from keyhole.arrays import IntVector
from keyhole.models.lancaster.margins import Margins
from keyhole.models.lancaster.path import shrinkage_grid
from keyhole.models.lancaster.renormaliser import exact_renormaliser, sampled_renormaliser
from keyhole.progress import silent

LEVELS = (14, 2, 91, 5, 14, 7, 2, 5, 2, 10)
TABLES = ((0, 2, 3, 4, 5, 6, 8), (0, 1, 2, 3, 4, 5, 6, 7, 8), tuple(range(10)))
"""Positions of the keys of each table."""

RECORDS = 9809
UNLIMITED = 10**18
WARM_UP = (0, 1, 3)


def people(size: int, seed: int = 1) -> IntVector:
    """Codes of people of sixteen kinds, each kind with its own common levels; every level occurs."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(16, size, p=rng.dirichlet(np.full(16, 0.8)))
    columns = []
    for levels in LEVELS:
        law = 0.98 * rng.dirichlet(np.full(levels, 0.3), 16) + 0.02 / levels
        column = (law.cumsum(axis=1)[kind] < rng.random((size, 1))).sum(axis=1)
        column[:levels] = np.arange(levels)
        columns.append(np.minimum(column, levels - 1))
    return np.stack(columns, axis=1)


def report(codes: IntVector, keys: tuple[int, ...], order: int) -> None:
    """Print one line: cells, cells and branches visited, seconds, c(1); and the same for sampled cells."""
    cells, counts = np.unique(codes[:, keys], axis=0, return_counts=True)
    sizes = tuple(LEVELS[key] for key in keys)
    margins = Margins.of(cells, counts.astype(np.float64), sizes, order)
    levels = [np.arange(size) for size in sizes]
    grid = shrinkage_grid()
    started = time.process_time()
    exact = exact_renormaliser(margins, levels, None, grid, budget=UNLIMITED, progress=silent)
    middle = time.process_time()
    sampled = sampled_renormaliser(margins, levels, None, grid, rng=np.random.default_rng(1))
    ended = time.process_time()
    assert exact is not None
    if keys == WARM_UP:
        return
    print(
        f"{margins.cells:12,} {exact.visited:12,} {middle - started:8.2f} {exact.value[-1]:8.4f}   "
        f"{sampled.visited:12,} {ended - middle:8.2f} {sampled.value[-1]:8.4f} {sampled.error[-1]:8.4f}",
        flush=True,
    )


if __name__ == "__main__":
    given = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    everyone = people(RECORDS)
    report(everyone, WARM_UP, given)
    print(f"order {given}, {RECORDS:,} records, c on {len(shrinkage_grid())} values of lambda in one pass")
    print(f"{'cells':>12} {'visited':>12} {'seconds':>8} {'c(1)':>8}   ", end="")
    print(f"{'sampled':>12} {'seconds':>8} {'c(1)':>8} {'s.e.':>8}")
    for table in TABLES:
        report(everyone, table, given)
