"""Where results go: checked before the work starts, written privately and atomically when it is done."""

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from keyhole.cli.job import Job
from keyhole.errors import InputError
from keyhole.inference.checkpoint import kept_paths
from keyhole.report.content import Report
from keyhole.risk.compare import Comparison
from keyhole.risk.estimate import RiskAssessment
from keyhole.risk.truth import Truth

RECORD_SUFFIXES = (".csv", ".parquet")

CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Outputs:
    """What to write, as the options say; with none given, report.html in the current folder."""

    inputs: tuple[Path, ...] = ()
    out: Path | None = None
    resume: Path | None = None
    draws_out: Path | None = None
    json: str | None = None
    records: Path | None = None
    all_records: bool = False
    report: Path | None = None
    quiet: bool = False

    def check(self) -> None:
        """Refuse what could not or must not be written, before any work is done."""
        if self.records is not None and self.records.suffix.lower() not in RECORD_SUFFIXES:
            raise InputError(f"--records writes {' or '.join(RECORD_SUFFIXES)}; found {self.records.name!r}.")
        if self.all_records and self.records is None:
            raise InputError("--all-records says what --records writes; give --records PATH too.")
        if self.resume is not None and self.out is not None and self.out.resolve() != self.resume.resolve():
            raise InputError("--resume writes into the folder that it resumes; leave --out away.")
        if self.draws_out is not None and self.draws_out.suffix.lower() != ".nc":
            raise InputError(f"--draws-out writes .nc; found {self.draws_out.name!r}.")
        if self.out is not None and self.out.exists() and not self.out.is_dir():
            raise InputError(f"--out needs a folder, and {str(self.out)!r} is a file.")
        for path in self.files:
            if path.parent != self.folder and not path.resolve().parent.is_dir():
                raise InputError(f"Cannot write {str(path)!r}: its folder does not exist.")
            if path.exists() and not path.is_file():
                raise InputError(f"Cannot write {str(path)!r}: something that is not a file has that name.")
            if any(path.resolve() == given.resolve() for given in self.inputs):
                raise InputError(f"{str(path)!r} is an input of this command; it would be overwritten.")
        if len({path.resolve() for path in self.files}) < len(self.files):
            raise InputError("Two results would be written to the same file; give each a name of its own.")

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that will be written."""
        return tuple(filter(None, (self.report_path, self.json_path, self.records, self.draws_out)))

    @property
    def folder(self) -> Path | None:
        """Where everything goes that has no name of its own."""
        return self.out or self.resume

    @property
    def checkpoint(self) -> Path | None:
        """What the files of unfinished chains are called; none without a folder to put them in."""
        return None if self.folder is None else self.folder / f"{CHECKPOINT}.npz"

    def check_resumable(self, models: Collection[str]) -> None:
        """Refuse to resume what none of these models has begun."""
        if self.resume is not None and not any(map(self.kept, models)):
            whose = f" of {', '.join(models)}" if models else ": the models named have no chains"
            raise InputError(f"There is no interrupted run in {str(self.resume)!r}{whose}.")

    def kept(self, model: str) -> list[Path]:
        """The files of unfinished chains of a model."""
        return [] if self.checkpoint is None else kept_paths(self.checkpoint, model)

    def tell_how_to_go_on(self, unfinished: Sequence[RiskAssessment]) -> None:
        """Chains that did not come to their end were kept; at the limit of sweeps it takes a higher one."""
        at_limit = [one for one in unfinished if one.ending == "limit"]
        if len(at_limit) < len(unfinished):
            self.tell_kept()
        if at_limit and not self.quiet:
            names = " and ".join(one.model for one in at_limit)
            most = max(int(str(one.settings["most_sweeps"])) for one in at_limit)
            sys.stderr.write(
                f"The chains of {names} came to the limit of sweeps and are kept: {self._again}, and with a "
                f"higher limit such as --model-option most_sweeps={2 * most}, goes on.\n"
            )

    def tell_kept(self) -> None:
        """Chains can go on."""
        if not self.quiet:
            sys.stderr.write(f"The chains are not at their end and are kept: {self._again} goes on.\n")

    def tell_interrupted(self, models: Collection[str]) -> bool:
        """Chains that were kept although there is no result; false if there are none."""
        kept = any(map(self.kept, models))
        if kept:
            sys.stderr.write(
                f"keyhole: interrupted; no results were written, but the chains are kept: {self._again} goes on\n"
            )
        return kept

    def tell_ended(self, models: Collection[str]) -> None:
        """That results are of what was there by then, where no chains are kept that could go on."""
        if not self.quiet and not any(map(self.kept, models)):
            sys.stderr.write("keyhole: interrupted; results are of what had been found by then, and say so\n")

    @property
    def _again(self) -> str:
        return "the same command" + (
            f" with --resume {self.folder} instead of --out" if self.resume is None else ""
        )

    def remove_checkpoints(self, models: Collection[str]) -> None:
        """Of these models nothing is left to resume; what others left stays."""
        for model in models:
            for path in self.kept(model):
                path.unlink()

    @property
    def json_path(self) -> Path | None:
        if self.json is not None and self.json != "-":
            return Path(self.json)
        return self.folder / "result.json" if self.folder is not None else None

    @property
    def report_path(self) -> Path | None:
        if self.report is not None:
            return self.report
        if self.folder is not None:
            return self.folder / "report.html"
        return None if self.json or self.records else Path("report.html")


def deliver(
    outputs: Outputs,
    job: Job,
    comparison: Comparison,
    report: Report,
    *,
    command: str,
    truth: Truth | None = None,
) -> None:
    """Write the files that were asked for, all or none of them, then show the summary."""
    from keyhole.report.json_result import to_json, to_text
    from keyhole.report.writing import private_files

    result = to_text(to_json(comparison, command=command, truth=truth))
    documents: dict[Path, str | bytes] = {}
    if outputs.json_path is not None:
        documents[outputs.json_path] = result
    if outputs.report_path is not None:
        from keyhole.report.html import render_html

        documents[outputs.report_path] = render_html(report)
    if outputs.draws_out is not None:
        from keyhole.report.draws import draws_file

        documents[outputs.draws_out] = draws_file(comparison.assessments)
    written = list(outputs.files)
    withheld = outputs.records is not None and _left_without_answer(comparison)
    with private_files(documents):  # they take their places when the last of all is written
        if outputs.records is not None and not withheld:
            _write_records(outputs, outputs.records, job, comparison)
    if outputs.records is not None and withheld:
        written.remove(outputs.records)
        older = f" {outputs.records} is of an earlier run." if outputs.records.exists() else ""
        sys.stderr.write(f"keyhole: interrupted; there is no model yet whose risks --records could hold.{older}\n")
    if outputs.json == "-":
        sys.stdout.write(result)
    elif not outputs.quiet:
        _show(report, written)


def _left_without_answer(comparison: Comparison) -> bool:
    """Whether somebody ended the run before the model had an answer whose risks are to be given to records."""
    return comparison.interrupted and bool(comparison.not_run) and comparison.chosen is None


def _write_records(outputs: Outputs, path: Path, job: Job, comparison: Comparison) -> None:
    from keyhole.report.records import write_records

    if job.cells_of_records is None:
        return
    found = comparison.chosen or comparison.assessments[0]
    write_records(path, found, job.cells_of_records())
    if outputs.all_records and found.records is not None and found.records.r2_every_cell is None:
        sys.stderr.write(
            f"--all-records: {found.model} says nothing of records that are not unique in the sample; their risk "
            "is left empty. Other models do: sequential-logit for one.\n"
        )


def _show(report: Report, written: Sequence[Path]) -> None:
    from rich.console import Console

    from keyhole.report.text import render_text

    console = Console()
    render_text(report, console)
    for path in written:
        console.print(f"Written: {path}", highlight=False, markup=False, soft_wrap=True)
