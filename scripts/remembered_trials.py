"""Trials on real tables, spread over processes and remembered in a file."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from real_tables import BY_NAME, read_population

from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
from keyhole.validation.in_words import ending_in_words
from keyhole.validation.journal import Journal
from keyhole.validation.population import KnownPopulation
from keyhole.validation.replicate import Replicate, Trial
from keyhole.validation.runner import Workers, run_trials

ZEROS = " with zeros"
"""What follows a table's name where its structural zeros are declared."""


def run_remembered(
    trials: Sequence[Trial], folder: Path, cache: Path, jobs: int, zeros: Mapping[str, str] | None = None
) -> dict[Trial, Replicate]:
    """What came of the trials: remembered ones first, the others fitted and remembered; with no jobs none is.

    ``zeros`` are rules in YAML by table, for the trials whose population is called so.
    """
    names = dict.fromkeys(trial.population for trial in trials)
    populations = {name: _population(name, folder, zeros or {}) for name in names}
    cache.parent.mkdir(parents=True, exist_ok=True)
    return run_trials(trials, populations, journal=Journal(cache), workers=Workers(jobs), ended=_tell)


def _population(name: str, folder: Path, zeros: Mapping[str, str]) -> KnownPopulation:
    table = name.removesuffix(ZEROS)
    population = read_population(BY_NAME[table], folder)
    if table == name:
        return population
    rules = parse_zero_rules(zeros[table], f"the rules of {table}")
    return replace(population, zeros=StructuralZeros(population.keys, rules))


def _tell(trial: Trial, replicate: Replicate, done: int, total: int) -> None:
    print(f"{done}/{total} {ending_in_words(trial, replicate)}", file=sys.stderr, flush=True)
