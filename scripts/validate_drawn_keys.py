"""Do models hold on keys that nobody chose? Prints a Markdown table.

Tables of two populations by keys drawn at random (`drawn_keys.py`), other ones than those on which constants of
the sequential logit were learned; one sample of each size of each table, all of different people.

    python scripts/validate_drawn_keys.py [--tables 25] [--sizes 1000,5000] [--models auto] [--jobs 2]
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from drawn_keys import FILES, drawn_tables
from real_results import TauRow
from real_tables import DEFAULT_FOLDER, ROOT, read_population
from validate_real_tables import origin, tell

from keyhole.validation.assessor import assessors
from keyhole.validation.journal import Journal
from keyhole.validation.measures import measure
from keyhole.validation.replicate import Replicate, Trial
from keyhole.validation.runner import Workers, in_turn, run_trials

KEYS_SEED, FIRST_SEED = 2, 5001


def main() -> None:
    """Fit what is not remembered, then print a row for each population, size and model."""
    parser = argparse.ArgumentParser(description="Models against the truth on keys drawn at random.")
    parser.add_argument("--tables", type=int, default=25, help="of each population")
    parser.add_argument("--sizes", default="1000,5000")
    parser.add_argument("--models", default="auto", help="names, with commas between them")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--journal", type=Path, default=ROOT / ".cache" / "drawn-keys.jsonl")
    options = parser.parse_args()
    options.journal.parent.mkdir(parents=True, exist_ok=True)
    tables = [
        table
        for source, file in FILES.items()
        if (DEFAULT_FOLDER / file).is_file()
        for table in drawn_tables(source, options.tables, KEYS_SEED, DEFAULT_FOLDER)
    ]
    sizes, models = [int(size) for size in options.sizes.split(",")], assessors(options.models.split(","))
    trials = [
        Trial(table.name, size, FIRST_SEED + place, model)
        for (place, (table, size)), model in product(enumerate(product(tables, sizes)), models)
    ]
    populations = {table.name: read_population(table, DEFAULT_FOLDER) for table in tables}
    journal = Journal(options.journal, origin())
    results = run_trials(in_turn(trials), populations, journal=journal, workers=Workers(options.jobs), ended=tell)
    print_rows(results, sizes, models)


def print_rows(results: dict[Trial, Replicate], sizes: Sequence[int], models: Sequence[str]) -> None:
    """All tables of a population as if they were samples of one."""
    print(
        "| keys of | n | model | tables | true tau1 | bias | error | due | covered | true tau2 | bias | error ",
        end="",
    )
    print("| due | covered |\n" + "|---" * 14 + "|")
    together = {
        replace(trial, population=f"{trial.population[:3]}", seed=place): replicate
        for place, (trial, replicate) in enumerate(results.items())
    }
    found = {(one.population, one.size, one.model): one for one in measure(together)}
    for place in product(FILES, sizes, models):
        one = found.get(place)
        if one is not None and one.tau1 is not None and one.tau2 is not None:
            cells = [*TauRow.of(one.tau1).columns, *TauRow.of(one.tau2).columns]
            start = [one.population, f"{one.size:,}", one.model, str(one.replicates)]
            print(f"| {' | '.join(start + cells)} |")


if __name__ == "__main__":
    main()
