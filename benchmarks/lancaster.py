"""What does the exact renormaliser c(lambda) of the Lancaster additive model cost, and what is the path worth?

Made-up people on the keys of Takemura's example (14, 2, 91, 5, 14, 7, 2, 5, 2 and 10 levels), all of them or the
first eight or nine, and on two keys of many levels; and what an estimate of the same c from sampled cells costs.
Seconds of processor time on one thread, without compilation. With ``paths``, the whole path on samples of the
bundled population beside the truth, at both orders. With ``choice``, which lambda is chosen for two keys when most
cells are empty, and tau2 there, at lambda = 1 and in truth.

    python benchmarks/lancaster.py [ORDER | paths | choice]
"""

import sys
import time
from itertools import product

import duckdb
import numpy as np

from keyhole.arrays import IntVector
from keyhole.data import census_income
from keyhole.keys.variable import KeyVariable
from keyhole.models.lancaster.margins import Margins
from keyhole.models.lancaster.model import LancasterAdditive
from keyhole.models.lancaster.path import TOLD, shrinkage_grid
from keyhole.models.lancaster.renormaliser import exact_renormaliser, sampled_renormaliser
from keyhole.population.sample import Sample
from keyhole.progress import silent
from keyhole.table.contingency import ContingencyTable

LEVELS = (14, 2, 91, 5, 14, 7, 2, 5, 2, 10)
TABLES = ((0, 2, 3, 4, 5, 6, 8), (0, 1, 2, 3, 4, 5, 6, 7, 8), tuple(range(10)))
"""Positions of the keys of each table."""

RECORDS = 9809
UNLIMITED = 10**18
WARM_UP = (0, 1, 3)
WIDE = 1600
"""Levels of each of two keys."""

PATHS = (
    ("HHREL8", "FILER6", "AGE10", "MARITAL7", "EDUC17", "WKSTAT8", "CLASSWKR9"),
    ("PARENT5", "AGE10", "SEX", "MARITAL7", "RACE5", "EDUC5", "EMP4", "INCOME2", "CITIZEN5", "VETBEN3"),
)
"""Keys of the bundled population."""

CHOICE = {"people": 6000, "records": 300, "levels": 30, "samples": 20}
"""Samples of two keys."""


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


def wide_people(seed: int = 3) -> IntVector:
    """Codes of two keys of many levels, each level with three people."""
    size = 3 * WIDE
    return np.stack([np.arange(size) % WIDE, np.random.default_rng(seed).permutation(size) % WIDE], axis=1)


def report(codes: IntVector, order: int, *, quiet: bool = False) -> None:
    """Print one line: cells, cells and branches visited, seconds, c(1); and the same for sampled cells."""
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    sizes = tuple(int(column.max()) + 1 for column in codes.T)
    margins = Margins.of(cells, counts.astype(np.float64), sizes, order)
    levels = [np.arange(size) for size in sizes]
    grid = shrinkage_grid()
    started = time.process_time()
    exact = exact_renormaliser(margins, levels, None, grid, budget=UNLIMITED, progress=silent)
    middle = time.process_time()
    sampled = sampled_renormaliser(margins, levels, None, grid, rng=np.random.default_rng(1))
    ended = time.process_time()
    assert exact is not None
    if quiet:
        return
    print(
        f"{margins.cells:12,} {exact.visited:12,} {middle - started:8.2f} {exact.value[-1]:8.4f}   "
        f"{sampled.visited:12,} {ended - middle:8.2f} {sampled.value[-1]:8.4f} {sampled.error[-1]:8.4f}",
        flush=True,
    )


def costs(order: int) -> None:
    """Print the cost of c by number of cells."""
    everyone = people(RECORDS)
    report(everyone[:, WARM_UP], order, quiet=True)
    print(f"order {order}, {RECORDS:,} records, c on {len(shrinkage_grid())} values of lambda in one pass")
    print(f"{'cells':>12} {'visited':>12} {'seconds':>8} {'c(1)':>8}   ", end="")
    print(f"{'sampled':>12} {'seconds':>8} {'c(1)':>8} {'s.e.':>8}")
    for table in TABLES:
        report(everyone[:, table], order)
    report(wide_people(), order)


def path(names: tuple[str, ...], size: int, order: int) -> None:
    """Print the path of one sample of the bundled population."""
    columns = duckdb.sql(f"SELECT {', '.join(names)} FROM '{census_income.path()}'").fetchnumpy()
    coded = [np.unique(np.asarray(columns[name]).astype(str), return_inverse=True) for name in names]
    keys = [KeyVariable(name, tuple(levels)) for name, (levels, _) in zip(names, coded, strict=True)]
    codes = np.stack([code for _, code in coded], axis=1)
    population = ContingencyTable.from_codes(keys, codes)
    chosen = np.random.default_rng(1).choice(len(codes), size, replace=False)
    sample = Sample(ContingencyTable.from_codes(keys, codes[chosen]), len(codes))
    truth = population.counts[population.find(sample.table.cells[sample.table.uniques])]
    fit = LancasterAdditive(order=order).fit(sample, rng=np.random.default_rng(1))
    found = fit.shrinkage_path
    print(
        f"\n{' '.join(names)}\n{sample.table.size:,} cells, {size:,} records, {sample.uniques:,} uniques, ", end=""
    )
    print(f"truth {(truth == 1).sum()} and {(1 / truth).sum():.1f}, order {order}, chosen {fit.shrinkage:g}")
    print(f"{'lambda':>6} {'c':>7} {'tau1':>7} {'plain':>7} {'tau2':>7} {'plain':>7} ", end="")
    print(f"{'p<=0':>5} {'score':>8} {'missed':>7}")
    for g in (found.place(shrinkage) for shrinkage in TOLD):
        print(
            f"{found.shrinkage[g]:6.1f} {found.renormaliser.value[g]:7.3f} {found.tau1[g]:7.1f} "
            f"{found.tau1_plain[g]:7.1f} {found.tau2[g]:7.1f} {found.tau2_plain[g]:7.1f} "
            f"{found.without_probability[g]:5} {found.held_out.score[g]:8.3f} {found.held_out.missed[g]:7.4f}",
            flush=True,
        )


def choice(equal: float, seed: int = 11) -> None:
    """Print the choice for two keys of many levels that are equal for a share of the people, else independent."""
    rng = np.random.default_rng(seed)
    levels, rows = CHOICE["levels"], []
    keys = [KeyVariable(name, tuple(map(str, range(levels)))) for name in "AB"]
    for _ in range(CHOICE["samples"]):
        people = rng.integers(0, levels, (CHOICE["people"], 2))
        alike = rng.random(len(people)) < equal
        people[alike, 1] = people[alike, 0]
        population = ContingencyTable.from_codes(keys, people)
        sample = Sample(ContingencyTable.from_codes(keys, people[: CHOICE["records"]]), len(people))
        truth = population.counts[population.find(sample.table.cells[sample.table.uniques])]
        found = (fit := LancasterAdditive().fit(sample, rng=rng)).shrinkage_path
        tau2 = found.tau2[found.place(fit.shrinkage)]
        rows.append((fit.shrinkage, found.held_out.missed[-1], tau2, found.tau2[-1], (1 / truth).sum()))
    chosen, missed, tau2, full, true = np.array(rows).T
    print(
        f"equal for {equal:.0%}: lambda {chosen.min():g} to {chosen.max():g}, tau2 {tau2.mean():.1f}, "
        f"at lambda = 1 {full.mean():.1f} with {missed.mean():.0%} missed, truth {true.mean():.1f}"
    )


if __name__ == "__main__":
    if "choice" in sys.argv:
        for share in (0.0, 0.4):
            choice(share)
    elif "paths" in sys.argv:
        for table in PATHS:
            for records, order in product((1000, 10_000), (2, 3)):
                path(table, records, order)
    else:
        costs(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
