"""The work behind validate: read the population, run the trials with progress, write what came of them."""

import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyhole.cli.outputs import Outputs
from keyhole.cli.terminal import PLAIN_EVERY, terminal_progress
from keyhole.errors import DisclosureRiskWarning, InputError
from keyhole.validation.designs import Design
from keyhole.validation.in_words import ending_in_words
from keyhole.validation.journal import Journal
from keyhole.validation.population import KnownPopulation, LoadedPopulation, load_population
from keyhole.validation.replicate import Replicate, Trial
from keyhole.validation.runner import Ended, Workers, nobody
from keyhole.validation.sizes import sample_sizes
from keyhole.validation.study import Study, Validation, validate

JOURNAL, ROWS, RESULT, PAGE = "journal.jsonl", "results.parquet", "validation.json", "report.html"
UNTRUSTED, INTERRUPTED = 3, 130


@dataclass(frozen=True)
class Asked:
    """The population and the study, as the options say."""

    population: str
    keys: tuple[str, ...]
    sizes: tuple[str, ...]
    models: tuple[str, ...]
    replicates: int
    design: Design
    strata: tuple[str, ...]
    options: Mapping[str, str]
    seed: int
    reading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Destination:
    """Where results go; with nothing given, validation.html in the current folder."""

    folder: Path | None = None
    json: str | None = None
    report: Path | None = None
    quiet: bool = False
    inputs: tuple[Path, ...] = ()

    @property
    def page(self) -> Path | None:
        if self.report is not None:
            return self.report
        if self.folder is not None:
            return self.folder / PAGE
        return None if self.json is not None else Path("validation.html")

    @property
    def result(self) -> Path | None:
        if self.json is not None and self.json != "-":
            return Path(self.json)
        return None if self.folder is None else self.folder / RESULT

    def check(self) -> None:
        """Refuse what could not or must not be written, before any work is done."""
        rows = None if self.folder is None else self.folder / ROWS
        Outputs(
            inputs=self.inputs,
            out=self.folder,
            json=None if self.result is None else str(self.result),
            records=rows,
            report=self.page,
        ).check()


def run_validation(asked: Asked, workers: Workers, destination: Destination, *, command: str) -> int:
    """Validate and deliver; the exit status."""
    destination.check()
    # Before the population is read: names and options that do not exist are soon told.
    Study((1,), asked.models, asked.replicates, asked.design, asked.seed, asked.options).trials()
    with terminal_progress(destination.quiet) as progress:
        progress("reading", 0)
        loaded, told = _load(asked)
    people = loaded.population
    sizes = sample_sizes(asked.sizes, len(people))
    study = Study(sizes, asked.models, asked.replicates, asked.design, asked.seed, asked.options)
    for size in sizes:
        Trial("", size, asked.seed, "", asked.design).sampled(people)  # a design that cannot be drawn says so now
    journal = None
    if destination.folder is not None:
        from keyhole.report.writing import private_folder

        journal = Journal(private_folder(destination.folder) / JOURNAL)
        journal.begin()
        if len(journal) and not journal.knows(people.digest):
            raise InputError(
                f"The folder {str(destination.folder)!r} holds a validation on another population, or with other "
                "keys or strata; choose another folder."
            )
    if journal is not None and not destination.quiet:
        _tell_what_is_known(study, people, journal)
    try:
        with _telling(destination.quiet) as ended:
            found = validate(study, people, journal=journal, workers=workers, ended=ended)
        _deliver(found, loaded.source, told, destination, command)
    except KeyboardInterrupt:
        kept = (
            f"fits that had ended are kept: the same command with --out {destination.folder} goes on"
            if journal is not None
            else "nothing was written; with --out DIR a run can go on"
        )
        print(f"keyhole: interrupted; {kept}", file=sys.stderr)
        return INTERRUPTED
    return 0 if found.trusted else UNTRUSTED


def _load(asked: Asked) -> tuple[LoadedPopulation, tuple[str, ...]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DisclosureRiskWarning)
        loaded = load_population(asked.population, asked.keys, strata=asked.strata, **asked.reading)
    told = [str(note.message) for note in caught if issubclass(note.category, DisclosureRiskWarning)]
    if loaded.dropped:
        told.append(f"{loaded.dropped:,} records have a missing key and were dropped from the population.")
    return loaded, tuple(told)


def _tell_what_is_known(study: Study, people: KnownPopulation, journal: Journal) -> None:
    """That fits are taken from the folder, and that what it said of others is replaced."""
    keys = [trial.key(people) for trial in study.trials()]
    known = sum(journal.get(key) is not None for key in keys)
    if known:
        print(f"{known:,} of {len(keys):,} fits are taken from {journal.path.parent}.", file=sys.stderr)
    if len(journal) > known:
        print(
            f"{journal.path.parent} holds {len(journal) - known:,} fits of other models, samples or options: they "
            "stay in its journal, and its results are replaced by those of this run.",
            file=sys.stderr,
        )


@contextmanager
def _telling(quiet: bool) -> Iterator[Ended]:
    """On a terminal a line that changes; else a plain line now and then; what failed always."""
    if quiet:
        yield nobody
        return
    with terminal_progress(quiet) as progress:
        terminal = sys.stderr.isatty()
        last = time.monotonic()

        def ended(trial: Trial, replicate: Replicate, done: int, total: int) -> None:
            nonlocal last
            words = ending_in_words(trial, replicate)
            if terminal:
                progress("fits", done, total, words)
            if replicate.tau1 is None or (not terminal and time.monotonic() - last >= PLAIN_EVERY):
                last = time.monotonic()
                print(f"{done:,} of {total:,} fits; {words}", file=sys.stderr, flush=True)

        yield ended


def _deliver(
    found: Validation, source: str, told: tuple[str, ...], destination: Destination, command: str
) -> None:
    from keyhole.report.json_result import to_text
    from keyhole.report.validation_content import compose_validation
    from keyhole.report.validation_html import render_validation_html
    from keyhole.report.validation_json import validation_json
    from keyhole.report.validation_rows import write_rows
    from keyhole.report.writing import private_files

    content = compose_validation(found, source=source, command=command, warnings=told)
    result = to_text(validation_json(found))
    documents: dict[Path, str | bytes] = {}
    if destination.page is not None:
        documents[destination.page] = render_validation_html(content)
    if destination.result is not None:
        documents[destination.result] = result
    rows = None if destination.folder is None else destination.folder / ROWS
    with private_files(documents):  # they take their places when the last of all is written
        if rows is not None:
            write_rows(rows, found.results, found.study.seed)
    if destination.json == "-":
        sys.stdout.write(result)
    elif not destination.quiet:
        from rich.console import Console

        from keyhole.report.validation_text import render_validation_text

        console = Console()
        render_validation_text(content, console)
        for path in (*documents, *([] if rows is None else [rows])):
            console.print(f"Written: {path}", highlight=False, markup=False, soft_wrap=True)
