"""keyhole validate: how well each model would have done on samples of a population that is known in full."""

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from keyhole.cli import options
from keyhole.errors import InputError

JOURNAL = "journal.jsonl"


def validate(
    population: Annotated[
        str,
        typer.Argument(
            metavar="POPULATION",
            help="A file with everybody, in any format that assess reads, or a database URL with --table.",
            show_default=False,
        ),
    ],
    keys: options.Keys,
    sample_size: Annotated[
        list[str],
        typer.Option("--sample-size", metavar="N,N|P%", help="Records of a sample, or a percentage; several."),
    ],
    replicates: Annotated[int, typer.Option("--replicates", min=1, help="Samples of each size.")] = 100,
    models: Annotated[
        list[str],
        typer.Option("--models", metavar="A,B,C", help="Names from `keyhole models`, auto, or all; several."),
    ] = ["auto"],  # noqa: B006
    design: Annotated[
        Literal["srs", "bernoulli", "stratified"],
        typer.Option("--design", help="Simple random samples, each person on their own, or by --strata."),
    ] = "srs",
    strata: Annotated[
        list[str] | None,
        typer.Option("--strata", metavar="A,B", help="Columns whose combinations are the strata."),
    ] = None,
    allocation: Annotated[
        Literal["proportional", "equal"],
        typer.Option("--allocation", help="Shares of strata: by their people, or equal with weights."),
    ] = "proportional",
    model_option: options.ModelOptions = None,
    table: options.Table = None,
    zeros: options.Zeros = None,
    recode: options.Recode = None,
    levels: options.Levels = None,
    missing: options.Missing = "level",
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Sample r, and the models that see it, have this seed + r - 1.")
    ] = options.SEED,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Processes; as many as processors by default.")
    ] = None,
    backend: Annotated[
        Literal["local", "dask"], typer.Option("--backend", help="This machine, or the workers of a Dask cluster.")
    ] = "local",
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="With --backend dask: its scheduler.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=0, help="Begin no fit after this long, and say so.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write report.html, validation.json and results.parquet; an interrupted run goes on from here.",
        ),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="DIR", help="As --out, for a run that was interrupted.")
    ] = None,
    json: options.Json = None,
    report: options.Report = None,
    quiet: options.Quiet = False,
) -> None:
    """Tell how well each model would have done: draw samples of a known population and compare with the truth.

    Error, bias, coverage and width of the intervals, calibration, false positives and negatives, time. Without an
    output option the summary goes to the terminal and validation.html to the current folder.
    """
    from keyhole.cli.job import names, settings
    from keyhole.cli.validation_run import Asked, Destination, run_validation
    from keyhole.errors import InputError
    from keyhole.validation.designs import Bernoulli, Design, SimpleRandom, Stratified
    from keyhole.validation.runner import Workers

    columns = tuple(names(*(strata or ())))
    if (design == "stratified") != bool(columns):
        raise InputError("--design stratified needs --strata, and --strata needs --design stratified.")
    if allocation == "equal" and design != "stratified":
        raise InputError("--allocation equal needs --design stratified.")
    if (backend == "dask") != (scheduler is not None):
        raise InputError("--backend dask needs --scheduler, and --scheduler needs --backend dask.")
    if resume is not None and (out is not None or not (resume / JOURNAL).is_file()):
        raise InputError(
            f"There is no interrupted run in {str(resume)!r}."
            if out is None
            else "--resume writes into the folder that it resumes; leave --out away."
        )
    designs: dict[str, Design] = {
        "srs": SimpleRandom(),
        "bernoulli": Bernoulli(),
        "stratified": Stratified(columns, allocation),
    }
    destination = Destination(
        folder=out or resume,
        json=json,
        report=report,
        quiet=quiet,
        inputs=tuple(filter(None, (Path(population), zeros, recode, levels))),
    )
    status = run_validation(
        Asked(
            population=population,
            keys=tuple(names(*keys)),
            sizes=tuple(_sizes(sample_size)),
            models=tuple(names(*models)),
            replicates=replicates,
            design=designs[design],
            strata=columns,
            options=settings(model_option),
            seed=seed,
            reading={"table": table, "zeros": zeros, "recode": recode, "levels": levels, "missing": missing},
        ),
        Workers(jobs or _processors(), scheduler, max_seconds),
        destination,
        command=shlex.join(["keyhole", *sys.argv[1:]]),
    )
    if status:
        raise typer.Exit(status)


def _sizes(texts: Sequence[str]) -> list[str]:
    """The sizes, which commas separate; 1,500 would be samples of 1 and of 500 records, and nobody means that."""
    from keyhole.cli.job import names

    for text in texts:
        if grouped := re.search(r"(?<!\d)\d{1,2},\d{3}(?!\d)", text):
            raise InputError(
                f"--sample-size: commas separate sizes, so {grouped[0]} is unclear; write "
                f"{grouped[0].replace(',', '')}, or give the option once for each size."
            )
    return names(*texts)


def _processors() -> int:
    from keyhole.inference.threads import processors

    return processors()
