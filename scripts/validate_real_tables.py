"""How far is each model from the truth on every real population whose truth is known? Prints Markdown tables.

A row for each table, size and model; where auto is among the models, also auto beside each of the others.

    python scripts/validate_real_tables.py --journal FILE [--models all|A,B] [--tables NAMES] [--sizes 1000,5%]
        [--replicates 50] [--slow-replicates 20] [--jobs 2] [--max-seconds S]
        [--model-option hdp.max_seconds=600] [--zeros] [--keep]

Sample r of a table is drawn as its SOURCE.md says, with seed r. Every table and size gets its first replicates of
a model before any gets its last, quick models first, so a run that is stopped early is useful; replicates are
remembered in the journal, and the same command goes on. --jobs 0 prints what is remembered and fits nothing.
Models that take longer than --slow-seconds a fit get --slow-replicates only. Populations that are not on this
machine are skipped. With --zeros: only the tables whose structural zeros are declared, with and without these.
With --keep the rows also go into docs/reference/real-populations.csv, in the place of those from no more fits,
and the page beside it is written anew. Progress is on stderr.
"""

import argparse
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import numpy as np
from beside_auto import EXPLAINED as BESIDE_EXPLAINED
from beside_auto import HEAD as BESIDE_HEAD
from beside_auto import beside_auto
from real_results import EXPLAINED, HEAD, RULE, STORE, Row, keep_rows
from real_results_page import PAGE, page
from real_tables import BY_NAME, DECLARED, DEFAULT_FOLDER, ROOT, WITH_ZEROS, ZEROS, is_here, named_population

import keyhole
from keyhole.errors import InputError
from keyhole.models.catalogue import CATALOGUE, model_named
from keyhole.validation.assessor import assessors, settings_of, slowness
from keyhole.validation.in_words import ending_in_words
from keyhole.validation.journal import Journal
from keyhole.validation.measures import measure
from keyhole.validation.population import KnownPopulation
from keyhole.validation.replicate import Replicate, Trial
from keyhole.validation.runner import Workers, in_turn, run_trials
from keyhole.validation.sizes import sample_sizes


def main() -> None:
    """Fit what is not remembered, then print the rows and where they come from."""
    options = arguments()
    populations = {name: named_population(name, options.folder) for name in options.tables}
    journal = Journal(options.journal, origin())
    results = fit(options, populations, journal)
    keys = [trial.key(populations[trial.population]) for trial in results]
    print(provenance(journal, keys))
    print(f"\n{EXPLAINED}\n\n{HEAD}\n{RULE}")
    found = rows(options, populations, results, journal)
    for one in found:
        print(one.line)
    if beside := list(beside_auto(results)):
        print(f"\n{BESIDE_EXPLAINED}\n\n{BESIDE_HEAD}")
        for pair in beside:
            print(pair.line)
    if options.keep:
        PAGE.write_text(
            page(keep_rows(found, STORE, told=lambda words: print(words, file=sys.stderr))), encoding="utf-8"
        )


def rows(
    options: argparse.Namespace,
    populations: dict[str, KnownPopulation],
    results: dict[Trial, Replicate],
    journal: Journal,
) -> list[Row]:
    """A row for each table, size and model, with the origin of its last replicate."""
    order = {name: place for place, name in enumerate(CATALOGUE)}
    last = {(trial.population, trial.size, trial.model): trial for trial in results}
    found = []
    for one in measure(results):
        trial = last[one.population, one.size, one.model]
        origin = journal.origin_of(trial.key(populations[one.population]))
        usual = model_named(one.model).settings
        own = settings_of(one.model, dict(trial.options)).items()
        told = " ".join(f"{name}={value}" for name, value in own if usual[name] != value)
        found.append(Row.of(one, told, origin))
    return sorted(found, key=lambda row: (options.tables.index(row.table), row.n, order[row.model]))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Every model against the truth on real tables.")
    parser.add_argument("--journal", type=Path, default=ROOT / ".cache" / "validation.jsonl")
    parser.add_argument("--models", default="all", help="names, with commas between them")
    parser.add_argument("--model-option", action="append", default=[], metavar="MODEL.NAME=VALUE")
    parser.add_argument("--tables", default=",".join(DECLARED), help="names, with commas between them")
    parser.add_argument("--zeros", action="store_true", help="tables with structural zeros, with and without them")
    parser.add_argument("--sizes", default="1000,5000,10000,5%", help="numbers, or percentages of the population")
    parser.add_argument("--replicates", type=int, default=50, help="samples of each size")
    parser.add_argument("--slow-replicates", type=int, default=20, help="samples where a model is slow")
    parser.add_argument(
        "--slow-seconds", type=float, default=10.0, help="a fit that takes more processor time is slow"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes; 0 to print what is remembered")
    parser.add_argument("--max-seconds", type=float, help="begin no fit after so long")
    parser.add_argument("--keep", action="store_true", help="put the rows into the documentation")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the populations are")
    options = parser.parse_args()
    options.tables = options.tables.split(",")
    if options.zeros:
        chosen = [name for name in options.tables if name in ZEROS]
        options.tables = [f"{name}{suffix}" for name in chosen for suffix in ("", WITH_ZEROS)]
    known = [*BY_NAME, *(f"{name}{WITH_ZEROS}" for name in ZEROS)]
    if unknown := sorted(set(options.tables) - set(known)):
        parser.error(f"unknown tables {', '.join(unknown)}; there are {', '.join(known)}")
    try:
        options.models = assessors(options.models.split(","))
    except InputError as error:
        parser.error(str(error))
    for given in options.model_option:
        if given.partition(".")[0] not in options.models or "=" not in given:
            parser.error(f"--model-option {given}: not MODEL.NAME=VALUE of a model that is fitted")
    options.tables = [name for name in options.tables if is_here(name, options.folder)]
    options.journal.parent.mkdir(parents=True, exist_ok=True)
    return options


def fit(
    options: argparse.Namespace, populations: dict[str, KnownPopulation], journal: Journal
) -> dict[Trial, Replicate]:
    """Group by group, quick models first: as many replicates as slow models get, then the others of quick ones."""
    begun = monotonic()

    def run(places: Sequence[tuple[str, int, str]], seeds: range) -> dict[Trial, Replicate]:
        left = None if options.max_seconds is None else options.max_seconds - (monotonic() - begun)
        trials = in_turn(trial(options, *place, seed) for place in places for seed in seeds)
        return run_trials(
            trials, populations, journal=journal, workers=Workers(options.jobs, None, left), ended=tell
        )

    first = min(options.slow_replicates, options.replicates)
    results: dict[Trial, Replicate] = {}
    for group in sorted({slowness(model) for model in options.models}):
        places = [
            (name, size, model)
            for name, population in populations.items()
            for size in sample_sizes(options.sizes.split(","), len(population))
            for model in options.models
            if slowness(model) == group
        ]
        begin = run(places, range(1, first + 1))
        quick = {
            (one.population, one.size, one.model)
            for one in measure(begin)
            if one.processor_seconds_per_fit is not None and one.processor_seconds_per_fit <= options.slow_seconds
        }
        further = run([place for place in places if place in quick], range(first + 1, options.replicates + 1))
        results |= begin | further
    return results


def trial(options: argparse.Namespace, name: str, size: int, model: str, seed: int) -> Trial:
    own = [given.removeprefix(f"{model}.") for given in options.model_option if given.startswith(f"{model}.")]
    pairs = tuple((one.partition("=")[0], one.partition("=")[2]) for one in own)
    return Trial(name, size, seed, model, options=pairs)


def tell(trial: Trial, replicate: Replicate, done: int, total: int) -> None:
    print(f"{done}/{total} {ending_in_words(trial, replicate)}", file=sys.stderr, flush=True)


def origin() -> dict[str, str]:
    """Where a replicate that is run now comes from."""
    return {"commit": commit(), "when": datetime.now(UTC).strftime("%Y-%m-%d"), "machine": machine()}


def commit() -> str:
    """The commit of this folder, with a mark where files of the package differ from it."""
    try:
        head = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", "src")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}-dirty" if changed else head


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def machine() -> str:
    names = [line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")]
    cores = f"{len(names)} cores" if names else "cores unknown"
    return f"{names[0] if names else platform.machine()}, {cores}, {platform.system()}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.is_file() else []


def provenance(journal: Journal, keys: Sequence[str]) -> str:
    """What was run, when, where and by which code."""
    origins = [journal.origin_of(key) for key in keys]
    told = {name: sorted({one[name] for one in origins if name in one}) for name in ("commit", "when", "machine")}
    return (
        f"Keyhole {keyhole.__version__}, Python {platform.python_version()}, NumPy {np.__version__}; replicates "
        f"of commit {', '.join(told['commit'])}, run on {' and '.join(told['when'])}; "
        f"{'; '.join(told['machine'])}. Sample r is drawn with seed r = 1, 2, ...; {len(keys):,} replicates. "
        f"Printed by `{shlex.join(['python', 'scripts/validate_real_tables.py', *sys.argv[1:]])}`."
    )


if __name__ == "__main__":
    main()
