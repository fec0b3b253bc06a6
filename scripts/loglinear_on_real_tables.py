"""How far are log-linear models from the truth on real populations? Prints a Markdown table.

    python scripts/loglinear_on_real_tables.py [--tables NAMES] [--sizes N,N] [--seeds R] [--models NAMES]
        [--sweeps N]

For every table of a real population whose truth is known, draws samples as its SOURCE.md says and prints, for each
size and model, errors and coverage of tau1 and tau2 over the samples. Fits are remembered in a file, so an
interrupted run goes on where it was; --jobs 0 prints what is remembered and fits nothing. Where no fit has ended
for --limit seconds the rest of the row is given up, with the larger samples of the same table and model, and the
row says so. Populations that are not on this machine are skipped. Progress is on stderr.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from real_tables import BY_NAME, DEFAULT_FOLDER, ROOT, is_here
from remembered_trials import run_remembered

from keyhole.models.catalogue import CATALOGUE, model_named
from keyhole.validation.replicate import Interval, Replicate, Trial

MODELS = ("independence", "two-way", "skinner-shlomo", "lasso", "lancaster", "pitman")
SIZES = (1000, 5000, 10_000)
SEEDS = 20

LIMIT = 1800.0
"""Seconds without an end of a fit after which a row is given up."""

LOOK = 1.0
"""Seconds between looks at what has been remembered."""

HEAD = (
    "| table | n | model | samples | true tau1 | error | from, to | covered"
    " | true tau2 | error | from, to | covered | seconds |"
)
RULE = "|---|---|---|---|---|---|---|---|---|---|---|---|---|"


def main() -> None:
    """Print the rows, by table, size and model."""
    options = arguments()
    print(HEAD)
    print(RULE)
    for table in options.tables:
        late: set[str] = set()
        for size in options.sizes:
            for model in options.models:
                results = fit_row(table, size, model, late, options)
                print_row(f"{table} | {size:,} | {model}", results, options.limit if model in late else None)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Log-linear models against the truth on real tables.")
    parser.add_argument("--tables", default=",".join(BY_NAME), help="names, with commas between them")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="sample sizes")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="samples of each size")
    parser.add_argument("--models", default=",".join(MODELS), help="names, with commas between them")
    parser.add_argument("--sweeps", type=int, default=0, help="the most sweeps of a chain; 0 for the models' own")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a fit; 0 for as long as it takes")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 0 to print what is remembered")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "loglinear.jsonl")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the populations are")
    options = parser.parse_args()
    for option, known in (("tables", BY_NAME), ("models", CATALOGUE)):
        named = getattr(options, option).split(",")
        unknown = sorted(set(named) - set(known))
        if unknown:
            parser.error(f"unknown {option} {', '.join(unknown)}; there are {', '.join(known)}")
        setattr(options, option, named)
    options.tables = [name for name in options.tables if is_here(name, options.folder)]
    options.sizes = sorted(map(int, options.sizes.split(",")))
    return options


def fit_row(table: str, size: int, model: str, late: set[str], options: argparse.Namespace) -> list[Replicate]:
    """What is remembered of a row after fitting what is not; a model that takes too long joins the late ones."""
    limited = options.sweeps and "most_sweeps" in model_named(model).settings
    own = (("most_sweeps", options.sweeps),) if limited else ()
    trials = [Trial(table, size, seed + 1, model, options=own) for seed in range(options.seeds)]
    if not options.limit:
        return list(run_remembered(trials, options.folder, options.cache, options.jobs).values())
    found = run_remembered(trials, options.folder, options.cache, 0)
    if options.jobs and len(found) < len(trials) and model not in late:
        if not _fitted_in_time(table, size, model, options):
            late.add(model)
        found = run_remembered(trials, options.folder, options.cache, 0)
    return list(found.values())


def _fitted_in_time(table: str, size: int, model: str, options: argparse.Namespace) -> bool:
    """Fit a row in processes of its own, which can be ended; whether they came to their end."""
    command = [
        *(sys.executable, __file__, "--limit", "0", "--tables", table, "--sizes", str(size), "--models", model),
        *("--seeds", str(options.seeds), "--jobs", str(options.jobs), "--sweeps", str(options.sweeps)),
        *("--cache", str(options.cache), "--folder", str(options.folder)),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as row:
        try:
            remembered, since = _remembered(options.cache), time.monotonic()
            while row.poll() is None:
                time.sleep(LOOK)
                if _remembered(options.cache) != remembered:
                    remembered, since = _remembered(options.cache), time.monotonic()
                if time.monotonic() - since > options.limit:
                    print(f"{model} {table} n={size:,}: given up after {options.limit:g} s.", file=sys.stderr)
                    return False
            return True
        finally:
            if row.poll() is None:
                os.killpg(row.pid, signal.SIGTERM)


def _remembered(cache: Path) -> int:
    """How much there is in the file of fits."""
    return cache.stat().st_size if cache.is_file() else 0


def print_row(start: str, results: Sequence[Replicate], limit: float | None) -> None:
    """Print a row over repeated samples, and the limit if they were not all finished within it."""
    samples = str(len(results))
    for status in ("failed", "fault", "not-converged"):
        if odd := sum(result.status == status for result in results):
            samples += f", {odd} {status}"
    if limit is not None:
        samples += f", not finished in {limit:g} s"
    fitted = [(result.tau1, result.tau2) for result in results if result.tau1 and result.tau2]
    if not fitted:
        print(f"| {start} | {samples} |" + " |" * 9, flush=True)
        return
    cells = [cell for taus in zip(*fitted, strict=True) for cell in _columns(taus)]
    seconds = np.median([result.seconds for result in results if result.tau1])
    print(f"| {start} | {samples} | {' | '.join(cells)} | {seconds:.1f} |", flush=True)


def _columns(taus: Sequence[Interval]) -> tuple[str, str, str, str]:
    """The median truth, the median relative error, the smallest and the largest, and the share covered."""
    errors = [tau.relative_error for tau in taus]
    return (
        f"{np.median([tau.truth for tau in taus]):,.0f}",
        f"{np.median(errors):+.0%}",
        f"{np.min(errors):+.0%}, {np.max(errors):+.0%}",
        f"{np.mean([tau.covers for tau in taus]):.0%}",
    )


if __name__ == "__main__":
    main()
