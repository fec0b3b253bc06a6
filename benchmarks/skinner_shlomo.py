"""How long does the forward search of Skinner and Shlomo take on a table of 3,600,000 cells?

Ten keys of 10, 10, 2, 6, 5, 5, 3, 10, 2 and 2 levels and 10,000 records out of a million people, each key
depending on three of those before it. The literature reports nine hours for a search on a table of this size::

    python benchmarks/skinner_shlomo.py                 # pairs
    python benchmarks/skinner_shlomo.py --largest 3     # pairs, then triples
"""

import argparse
import resource
import time

import numpy as np
from dependent_people import dependent_people

from keyhole.keys.variable import KeyVariable
from keyhole.models.loglinear.search import search_terms
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable

LEVELS = (10, 10, 2, 6, 5, 5, 3, 10, 2, 2)
PEOPLE, RECORDS = 1_000_000, 10_000
STRENGTH, PARENTS = 0.7, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    keys = tuple(
        KeyVariable(f"K{key}", tuple(f"level {code}" for code in range(n))) for key, n in enumerate(LEVELS)
    )
    rng = np.random.default_rng(options.seed)
    everybody = dependent_people(PEOPLE, LEVELS, parents=PARENTS, strength=STRENGTH, rng=rng)
    table = ContingencyTable.from_codes(keys, everybody[:RECORDS])
    population = ContingencyTable.from_codes(keys, everybody)
    size = population.counts[population.find(table.cells[table.uniques])]
    print(f"{table.size:,} cells, {table.records:,} records, {len(table.uniques):,} sample uniques")
    print(f"in the population: tau1 {np.count_nonzero(size == 1)}, tau2 {(1 / size).sum():.1f}")
    began, spent = time.perf_counter(), time.process_time()

    def tell(task: str, done: int, total: int | None = None, note: str = "") -> None:
        print(f"  {time.perf_counter() - began:6.1f} s  {done} terms, {note}", flush=True)

    path = search_terms(Sample(table, PEOPLE), largest=options.largest, progress=tell)
    elapsed, busy = time.perf_counter() - began, time.process_time() - spent
    print(f"{'term':14s} {'tau1':>8s} {'tau2':>8s} {'b1':>7s} {'b2':>7s}")
    for place, (step, shown) in enumerate(zip(path.steps, path.model_path.steps, strict=True)):
        mark = "  chosen" if place == path.chosen else ""
        print(f"{shown.label:14s} {step.tau1:8.1f} {step.tau2:8.1f} {step.b1:7.2f} {step.b2:7.2f}{mark}")
    print(f"ended: {path.ending}", *path.warnings, sep="\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{elapsed:.1f} s, {busy:.1f} s of processor time, peak {peak:.2f} GB")


if __name__ == "__main__":
    main()
