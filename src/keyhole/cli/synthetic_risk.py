"""keyhole synthetic-risk: what synthetic copies give away about the people of a file."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from keyhole.cli import options
from keyhole.cli.synthesize import ChainCount, Classes, Draws, Thin, Warmup


def synthetic_risk(
    data: options.Data,
    synthetic: Annotated[
        Path,
        typer.Option("--synthetic", metavar="DIR", help="Folder with the synthetic copies, made by any program."),
    ],
    keys: Annotated[
        list[str] | None,
        typer.Option("--keys", metavar="A,B,C", help="Columns to judge by; those of the synthesis by default."),
    ] = None,
    support: Annotated[
        Literal["one-change", "two-change", "all", "search"] | None,
        typer.Option(
            "--support",
            help="Combinations an intruder weighs for a record: one-change by default, all if he knows some keys.",
        ),
    ] = None,
    estimator: Annotated[
        Literal["bridge", "importance"],
        typer.Option("--estimator", help="Ratios of predictions, or the published importance sampler."),
    ] = "bridge",
    prior: Annotated[
        str,
        typer.Option("--prior", metavar="uniform|model|FILE", help="What the intruder believes beforehand."),
    ] = "uniform",
    knows: Annotated[
        list[str] | None,
        typer.Option("--knows", metavar="A,B", help="Keys of the target that the intruder knows as well."),
    ] = None,
    learns: Annotated[
        list[str] | None, typer.Option("--learns", metavar="A,B", help="Keys whose levels he wants to learn.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="KEY", help="The secret key of measures without a model; else the last."),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", metavar="N,N", help="Tell the risk also for copies of so many records."),
    ] = None,
    data_only: Annotated[bool, typer.Option("--data-only", help="Only measures that need no model.")] = False,
    show_combinations: Annotated[
        bool, typer.Option("--show-combinations", help="Name the combinations at risk in the report.")
    ] = False,
    table: options.Table = None,
    zeros: options.Zeros = None,
    recode: options.Recode = None,
    levels: options.Levels = None,
    missing: options.Missing = "level",
    seed: options.Seed = options.SEED,
    classes: Classes = 0,
    chains: ChainCount = 2,
    warmup: Warmup = 1500,
    draws: Draws = 400,
    thin: Thin = 10,
    json: options.Json = None,
    records: options.Records = None,
    report: options.Report = None,
    quiet: options.Quiet = False,
) -> None:
    """Tell how well an intruder who knows everybody else could guess a record from the synthetic copies.

    For every distinct combination of the file: its chance, rank and ratio to the chance beforehand, with Monte
    Carlo error; beside it, measures that only look for matches. Without an output option the summary goes to the
    terminal and synthetic-risk.html to the current folder; with --data-only there is no page.
    """
    from keyhole.cli.job import names, noted
    from keyhole.cli.outputs import Outputs
    from keyhole.cli.terminal import terminal_progress
    from keyhole.errors import InputError
    from keyhole.report.synthesis_files import deliver_judgement
    from keyhole.synthesis.assess_copies import Inquiry, judge_copies
    from keyhole.synthesis.class_draws import Length

    if data_only and (report is not None or records is not None):
        raise InputError("--data-only has no page and no risk of records: leave --report and --records away.")
    page = report
    if not data_only and report is None and json is None and records is None:
        page = Path("synthetic-risk.html")
    Outputs(inputs=(Path(data),), json=json, records=records, report=page, quiet=quiet).check()
    try:
        smaller = tuple(int(size) for size in names(sizes or ""))
    except ValueError:
        raise InputError(f"--sizes takes numbers of records like 1000,5000; found {sizes!r}.") from None
    if any(size < 1 for size in smaller):
        raise InputError("--sizes takes positive numbers of records.")
    inquiry = Inquiry(
        data=data,
        synthetic=synthetic,
        keys=tuple(names(*(keys or ()))),
        support=support,
        estimator=estimator,
        prior=prior,
        knows=tuple(names(*(knows or ()))),
        learns=tuple(names(*(learns or ()))),
        target=target,
        sizes=smaller,
        data_only=data_only,
        table=table,
        zeros=zeros,
        recode=recode,
        levels=levels,
        missing=missing,
        seed=seed,
        classes=classes,
        length=Length(warmup, thin, draws, chains),
    )
    with terminal_progress(quiet) as progress, noted() as notes:
        found = judge_copies(inquiry, progress)
    deliver_judgement(
        replace(found, warnings=(*notes, *found.warnings)),
        page=page,
        json=json,
        records=records,
        command=shlex.join(["keyhole", *sys.argv[1:]]),
        show_combinations=show_combinations,
        quiet=quiet,
    )
    if found.risk is not None and not found.risk.trusted:
        raise typer.Exit(3)
