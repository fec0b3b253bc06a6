"""How far is the sequential logit from the truth where strata are drawn unequally? Prints a Markdown table.

    python scripts/weights_on_real_tables.py [--seeds 10] [--jobs 2]

Samples with equally many records from each level of a key, with and without their weights. Fits are remembered in
a file, so an interrupted run goes on where it was; --jobs 0 prints what is remembered and fits nothing. Tables
that are not on this machine are skipped. Progress is on stderr.
"""

import argparse
from itertools import product
from pathlib import Path

from real_results import TauRow
from real_tables import DEFAULT_FOLDER, ROOT, is_here
from remembered_trials import run_remembered

from keyhole.validation.designs import Stratified
from keyhole.validation.measures import measure
from keyhole.validation.replicate import Trial

STRATA = {"kdd_CA10": "RACE5", "eph_CA10": "REGION"}
SIZE, MODEL = 5000, "sequential-logit"
HEAD = "true {0} | bias | error | due | covered"


def main() -> None:
    """Fit what is not remembered and print the rows."""
    parser = argparse.ArgumentParser(description="The sequential logit on samples of unequal strata.")
    parser.add_argument("--seeds", type=int, default=10, help="samples of each table")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 0 to print what is remembered")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "weights.jsonl")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the populations are")
    options = parser.parse_args()
    rows = [(name, given) for name, given in product(STRATA, (True, False)) if is_here(name, options.folder)]
    trials = {
        row: [Trial(row[0], SIZE, seed + 1, MODEL, design(*row)) for seed in range(options.seeds)] for row in rows
    }
    every = [trial for own in trials.values() for trial in own]
    found = run_remembered(every, options.folder, options.cache, options.jobs)
    print(f"| table | strata | weights | samples | {HEAD.format('tau1')} | {HEAD.format('tau2')} | seconds |")
    print("|---" * 15 + "|")
    for (name, given), own in trials.items():
        for one in measure({trial: found[trial] for trial in own if trial in found}):
            assert one.tau1 is not None
            assert one.tau2 is not None
            cells = [name, STRATA[name], "given" if given else "ignored", str(one.replicates)]
            cells += [*TauRow.of(one.tau1).columns, *TauRow.of(one.tau2).columns]
            print(f"| {' | '.join(cells)} | {one.processor_seconds_per_fit:.1f} |")


def design(name: str, given: bool) -> Stratified:
    """Equally many records from each level of the table's key, with their weights or without."""
    return Stratified((STRATA[name],), "equal", given)


if __name__ == "__main__":
    main()
