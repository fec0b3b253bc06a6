"""Trials on real tables, spread over processes and remembered in a file."""

import sys
from collections.abc import Sequence
from pathlib import Path

from real_tables import named_population

from keyhole.validation.in_words import ending_in_words
from keyhole.validation.journal import Journal
from keyhole.validation.replicate import Replicate, Trial
from keyhole.validation.runner import Workers, run_trials


def run_remembered(trials: Sequence[Trial], folder: Path, cache: Path, jobs: int) -> dict[Trial, Replicate]:
    """What came of the trials: remembered ones first, the others fitted and remembered; with no jobs none is."""
    names = dict.fromkeys(trial.population for trial in trials)
    populations = {name: named_population(name, folder) for name in names}
    cache.parent.mkdir(parents=True, exist_ok=True)
    return run_trials(trials, populations, journal=Journal(cache), workers=Workers(jobs), ended=_tell)


def _tell(trial: Trial, replicate: Replicate, done: int, total: int) -> None:
    print(f"{done}/{total} {ending_in_words(trial, replicate)}", file=sys.stderr, flush=True)
