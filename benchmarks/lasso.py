"""How far is the lasso on part of the cells from the lasso on all of them, and how long do both take?

Seven keys of 10, 8, 6, 5, 4, 4 and 5 levels, 192,000 cells, and 3,000 records out of 300,000 people, each key
depending on two of those before it::

    python benchmarks/lasso.py
    python benchmarks/lasso.py --draws 20000 --draws 100000
"""

import argparse
import time

import numpy as np
from dependent_people import dependent_people

from keyhole.keys.variable import KeyVariable
from keyhole.models.loglinear.lasso import fit_lasso
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable

LEVELS = (10, 8, 6, 5, 4, 4, 5)
PEOPLE, RECORDS = 300_000, 3_000
STRENGTH, PARENTS = 0.8, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, action="append")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    keys = tuple(KeyVariable(f"K{key}", tuple(map(str, range(n)))) for key, n in enumerate(LEVELS))
    rng = np.random.default_rng(options.seed)
    everybody = dependent_people(PEOPLE, LEVELS, parents=PARENTS, strength=STRENGTH, rng=rng)
    table = ContingencyTable.from_codes(keys, everybody[:RECORDS])
    population = ContingencyTable.from_codes(keys, everybody)
    size = population.counts[population.find(table.cells[table.uniques])]
    print(f"{table.size:,} cells, {table.records:,} records, {len(table.uniques):,} sample uniques")
    print(f"in the population: tau1 {np.count_nonzero(size == 1)}, tau2 {(1 / size).sum():.1f}")
    print(f"{'draws':>9s} {'cells':>9s} {'lambda':>7s} {'tau1':>8s} {'tau2':>8s} {'noise':>6s} {'cpu':>7s}")
    for draws in (None, *(options.draws or (20_000, 100_000))):
        spent = time.process_time()
        most, drawn = (table.size, 0) if draws is None else (0, draws)
        rng = np.random.default_rng(options.seed)
        path = fit_lasso(Sample(table, PEOPLE), folds=options.folds, most_cells=most, cells_drawn=drawn, rng=rng)
        spent, step, said = time.process_time() - spent, path.steps[path.chosen], path.approximation
        print(
            f"{'all' if draws is None else f'{draws:,}':>9s} {len(path.fitted.cells):9,d} {step.penalty:7.2f} "
            f"{step.tau1:8.1f} {step.tau2:8.1f} {0.0 if said is None else said.noise:6.0%} {spent:5.1f} s"
        )


if __name__ == "__main__":
    main()
