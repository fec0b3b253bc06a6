"""How far is the sequential logit from the truth on real populations? Prints Markdown tables.

    python scripts/sequential_logit_on_real_tables.py [--compare] [--zeros] [--weights] [--tables NAMES]

Without a part: errors and coverage over repeated samples of every table. With --compare: other models beside it on
one sample of each table. With --zeros: what declared structural zeros change. With --weights: samples with equally
many records from each level of a key, with and without their weights. Fits are remembered in a file, so an
interrupted run goes on where it was; --jobs 0 prints what is remembered and fits nothing. Populations that are not
on this machine are skipped. Progress is on stderr.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from real_tables import BY_NAME, DEFAULT_FOLDER, ROOT, WITH_ZEROS, ZEROS, is_here, population_size
from remembered_trials import run_remembered

from keyhole.validation.designs import Stratified
from keyhole.validation.measures import calibration_by_chance, calibration_error
from keyhole.validation.per_record import BINS
from keyhole.validation.replicate import Interval, Replicate, Trial
from keyhole.validation.sizes import sample_size

SIZES = "1000,5000,10000,5%"
SEEDS, ZEROS_SEEDS, WEIGHTS_SEEDS = 20, 10, 10
COMPARED = ("sequential-logit", "two-way", "latent-class", "pitman")
COMPARED_SIZE, COMPARED_SEED = 5000, 1
ZEROS_SIZES = ("1000", "5000")
STRATA = {"kdd_CA10": "RACE5", "eph_CA10": "REGION"}
WEIGHTS_SIZE = 5000
MODEL = "sequential-logit"

MEDIAN_OF_ABSOLUTE_NORMAL = 0.6745
"""The median of |Z|: what a median absolute error is in standard deviations."""


def main() -> None:
    """Print the parts that were asked for."""
    options = arguments()
    if not options.compare and not options.zeros and not options.weights:
        report_validation(options)
    if options.compare:
        report_comparison(options)
    if options.zeros:
        report_zeros(options)
    if options.weights:
        report_weights(options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The sequential logit against the truth on real tables.")
    parser.add_argument("--compare", action="store_true", help="other models beside it, on one sample a table")
    parser.add_argument("--zeros", action="store_true", help="with and without declared structural zeros")
    parser.add_argument("--weights", action="store_true", help="stratified samples, with and without weights")
    parser.add_argument("--tables", default=",".join(BY_NAME), help="names, with commas between them")
    parser.add_argument("--sizes", default=SIZES, help="sample sizes, or percentages of the population")
    parser.add_argument("--seeds", type=int, help=f"samples of each size (default {SEEDS}; zeros {ZEROS_SEEDS})")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 0 to print what is remembered")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "sequential_logit.jsonl")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the populations are")
    options = parser.parse_args()
    unknown = set(options.tables.split(",")) - set(BY_NAME)
    if unknown:
        parser.error(f"unknown tables {', '.join(sorted(unknown))}; there are {', '.join(BY_NAME)}")
    options.tables = tuple(filter(lambda name: is_here(name, options.folder), options.tables.split(",")))
    return options


def report_validation(options: argparse.Namespace) -> None:
    """Errors and coverage by table and size, then by size."""
    seeds = options.seeds or SEEDS
    sizes = options.sizes.split(",")
    number = {(name, size): _people(name, size, options.folder) for size in sizes for name in options.tables}
    # Small samples first: they are soon done.
    places = sorted(number, key=lambda place: number[place])
    trials = [Trial(name, number[name, size], seed + 1, MODEL) for name, size in places for seed in range(seeds)]
    found = run_remembered(trials, options.folder, options.cache, options.jobs)
    by_place: dict[tuple[str, str], list[Replicate]] = {
        (name, size): [one for trial, one in found.items() if _of(trial, name, number[name, size])]
        for name in options.tables
        for size in sizes
    }
    print(HEAD.format("table | n"))
    print(RULE.format("---|---"))
    for (name, size), results in by_place.items():
        print_row(f"{name} | {number[name, size]:,}", results)
    print(f"\nAll tables together:\n\n{HEAD.format('n')}\n{RULE.format('---')}")
    for size in sizes:
        pooled = [result for (_, its_size), results in by_place.items() if its_size == size for result in results]
        print_row(f"{int(size):,}" if size.isdecimal() else size, pooled, truth=False)


def _of(trial: Trial, name: str, size: int) -> bool:
    return trial.population == name and trial.size == size


def _people(name: str, size: str, folder: Path) -> int:
    """The sample size that a number, or a percentage of the population, stands for."""
    return sample_size(size, population_size(BY_NAME[name], folder))


HEAD = (
    "| {} | samples | true tau1 | error | from, to | floor | mean log error | covered"
    " | true tau2 | error | mean log error | covered | seconds |"
)
RULE = "|{}|---|---|---|---|---|---|---|---|---|---|---|---|"


def print_row(start: str, results: Sequence[Replicate], truth: bool = True) -> None:
    """Print a row over repeated samples; ``truth`` is left out where different populations are pooled."""
    fitted = [result for result in results if result.tau1 is not None]
    if not fitted:
        print(f"| {start} | {_samples(results)} |" + " |" * 11)
        return
    one, two = _taus(fitted)
    cells = [
        *(_median_truth(one) if truth else ("",)),
        _error(one),
        _range(one),
        f"{floor(fitted):.1%}",
        _log_error(one),
        _covered(one),
        *(_median_truth(two) if truth else ("",)),
        _error(two),
        _log_error(two),
        _covered(two),
        f"{np.median([result.seconds for result in fitted]):.1f}",
    ]
    print(f"| {start} | {_samples(results)} | {' | '.join(cells)} |", flush=True)


def floor(fitted: Sequence[Replicate]) -> float:
    """The median absolute relative error of tau1 that knowing its expectation exactly would leave.

    The spread of the truth over the samples will not do: it also holds which uniques were drawn, which an
    estimate follows. Given the sample, tau1 is a sum of independent events of probability r1; so the floor is
    0.6745 sqrt(sum r1 (1 - r1)) / tau1, with the model's own r1 and estimate. It is as good as they are, and a
    little high, because r1 (1 - r1) of a posterior mean also holds the doubt about r1 itself.
    """
    shares = [r.chance / r.tau1.estimate for r in fitted if r.tau1 and r.chance is not None and r.tau1.estimate]
    return MEDIAN_OF_ABSOLUTE_NORMAL * float(np.median(shares))


def _taus(fitted: Iterable[Replicate]) -> tuple[list[Interval], list[Interval]]:
    both = [(result.tau1, result.tau2) for result in fitted]
    return [one for one, _ in both if one is not None], [two for _, two in both if two is not None]


def _samples(results: Sequence[Replicate]) -> str:
    odd = {status: sum(r.status == status for r in results) for status in ("failed", "fault", "not-converged")}
    words = [f"{count} {status}" for status, count in odd.items() if count]
    return f"{len(results)} ({', '.join(words)})" if words else str(len(results))


def _median_truth(taus: Sequence[Interval]) -> tuple[str]:
    return (f"{np.median([tau.truth for tau in taus]):,.0f}",)


def _error(taus: Sequence[Interval]) -> str:
    return f"{np.nanmedian([abs(tau.relative_error) for tau in taus]):.1%}"


def _range(taus: Sequence[Interval]) -> str:
    errors = [tau.relative_error for tau in taus]
    return f"{np.nanmin(errors):+.0%}, {np.nanmax(errors):+.0%}"


def _log_error(taus: Sequence[Interval]) -> str:
    return f"{np.nanmean([tau.log_error for tau in taus]):+.3f}"


def _covered(taus: Sequence[Interval]) -> str:
    return f"{np.mean([tau.covers for tau in taus]):.0%}"


def report_comparison(options: argparse.Namespace) -> None:
    """All compared models on one sample of each table: tau, ranking and calibration."""
    trials = [
        Trial(name, COMPARED_SIZE, COMPARED_SEED, model) for model in COMPARED[::-1] for name in options.tables
    ]
    found = run_remembered(trials, options.folder, options.cache, options.jobs)
    places = {(trial.population, trial.model): result for trial, result in found.items()}
    ordered = [(place, places[place]) for place in _by_table(options.tables) if place in places]
    print("| table | model | tau1 | interval | truth | error | tau2 | interval | truth | error", end="")
    print(" | AUC | calibration error | by chance | seconds |\n" + "|---" * 14 + "|")
    for (name, model), result in ordered:
        print(f"| {name} | {model} | {_compared(result)} |")
    print("\nCalibration: mean r1 / share of population uniques (sample uniques), by r1:")
    print(f"\n| table | model | {' | '.join(_tenths())} |\n|---|---|{'---|' * BINS}")
    for (name, model), result in ordered:
        if result.calibration_r1:
            print(f"| {name} | {model} | {_binned(result.calibration_r1)} |")
    for model in COMPARED:
        bins = [
            result.calibration_r1
            for (_, its_model), result in ordered
            if its_model == model and result.calibration_r1
        ]
        if bins:
            pooled = np.sum(bins, axis=0)
            print(f"| all | {model} | {_binned(pooled.tolist())} |")


def _by_table(tables: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((name, model) for name in tables for model in COMPARED)


def _compared(result: Replicate) -> str:
    if result.tau1 is None or result.tau2 is None or result.auc_r1 is None:
        return f"{result.status}: {result.verdict}" + " |" * 11
    taus = (
        f"{tau.estimate:,.0f} | {tau.low:,.0f}-{tau.high:,.0f} | {tau.truth:,.0f} | {tau.relative_error:+.0%}"
        for tau in (result.tau1, result.tau2)
    )
    error, by_chance = calibration_error(result.calibration_r1), calibration_by_chance(result.calibration_r1)
    found = f"{result.auc_r1:.3f} | {error:.4f} | {by_chance:.4f} | {result.seconds:.1f}"
    return " | ".join((*taus, found))


def _binned(bins: Iterable[Sequence[float]]) -> str:
    return " | ".join(
        f"{r / size:.2f} / {ones / size:.2f} ({size:,.0f})" if size else "" for size, r, ones in bins
    )


def _tenths() -> list[str]:
    return [f"{tenth / BINS:.1f}-{(tenth + 1) / BINS:.1f}" for tenth in range(BINS)]


def report_zeros(options: argparse.Namespace) -> None:
    """The same samples with and without declared structural zeros."""
    seeds = options.seeds or ZEROS_SEEDS
    tables = [name for name in options.tables if name in ZEROS]
    trials = [
        Trial(f"{name}{suffix}", int(size), seed + 1, MODEL)
        for size in ZEROS_SIZES
        for name in tables
        for suffix in ("", WITH_ZEROS)
        for seed in range(seeds)
    ]
    found = run_remembered(trials, options.folder, options.cache, options.jobs)
    print(HEAD.format("table | n | zeros"))
    print(RULE.format("---|---|---"))
    for name in tables:
        for size in ZEROS_SIZES:
            for words, suffix in (("none", ""), ("declared", WITH_ZEROS)):
                results = [r for trial, r in found.items() if _of(trial, f"{name}{suffix}", int(size))]
                print_row(f"{name} | {int(size):,} | {words}", results)
    print("\n```yaml")
    for name in tables:
        print(f"# {name}{ZEROS[name]}", end="")
    print("```")


def report_weights(options: argparse.Namespace) -> None:
    """Stratified samples of equal sizes, the weights given or not."""
    seeds = options.seeds or WEIGHTS_SEEDS
    tables = [name for name in options.tables if name in STRATA]
    trials = [
        Trial(name, WEIGHTS_SIZE, seed + 1, MODEL, Stratified((STRATA[name],), "equal", weighted))
        for name in tables
        for weighted in (True, False)
        for seed in range(seeds)
    ]
    found = run_remembered(trials, options.folder, options.cache, options.jobs)
    print(HEAD.format("table | strata | weights"))
    print(RULE.format("---|---|---"))
    for name in tables:
        for words, weighted in (("given", True), ("ignored", False)):
            design = Stratified((STRATA[name],), "equal", weighted)
            results = [r for trial, r in found.items() if trial.population == name and trial.design == design]
            print_row(f"{name} | {STRATA[name]} | {words}", results)


if __name__ == "__main__":
    main()
