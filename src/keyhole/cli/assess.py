"""keyhole assess and keyhole compare: the disclosure risk of one file, by one model or by several."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from keyhole.cli import options


def assess(
    context: typer.Context,
    data: options.Data,
    keys: options.Keys,
    population_size: options.PopulationSize = None,
    sampling_fraction: options.SamplingFraction = None,
    weights: options.Weights = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="A name from `keyhole models`, or auto; may be repeated."),
    ] = None,
    models: Annotated[
        str | None, typer.Option("--models", metavar="A,B,C", help="Several models at once, or all.")
    ] = None,
    model_option: options.ModelOptions = None,
    effort: options.Effort = "normal",
    table: options.Table = None,
    zeros: options.Zeros = None,
    recode: options.Recode = None,
    levels: options.Levels = None,
    missing: options.Missing = "level",
    seed: options.Seed = options.SEED,
    chains: options.Chains = None,
    draws: options.Draws = None,
    warmup: options.Warmup = None,
    target_ess: options.TargetEss = None,
    max_seconds: options.MaxSeconds = None,
    resume: options.Resume = None,
    kappa1: options.Kappa1 = 0.5,
    kappa2: options.Kappa2 = 0.1,
    out: options.Out = None,
    json: options.Json = None,
    records: options.Records = None,
    all_records: options.AllRecords = False,
    report: options.Report = None,
    draws_out: options.DrawsOut = None,
    quiet: options.Quiet = False,
) -> None:
    """Estimate how many records, and which, could be recognised by the key variables.

    Without an output option the summary goes to the terminal and report.html to the current folder.
    """
    from keyhole.cli.job import names
    from keyhole.cli.outputs import Outputs
    from keyhole.cli.run import Choice, run
    from keyhole.errors import InputError
    from keyhole.population.loading import load_sample

    if max_seconds is not None and not max_seconds > 0:
        raise InputError(f"--max-seconds must be above 0, found {max_seconds:g}; without it there is no limit.")
    load = partial(
        load_sample,
        data,
        names(*keys),
        population_size=population_size,
        sampling_fraction=sampling_fraction,
        weights=weights,
        table=table,
        zeros=zeros,
        recode=recode,
        levels=levels,
        missing=missing,
    )
    asked = (*(model or ()), *names(models or ""))
    limits = {
        "chains": chains,
        "draws": draws,
        "warmup": warmup,
        "target_ess": target_ess,
        "max_seconds": max_seconds,
    }
    run(
        load,
        Choice(
            context.info_name or "assess",
            asked,
            model_option,
            seed,
            kappa1,
            kappa2,
            weights is not None,
            {name: value for name, value in limits.items() if value is not None},
            effort,
        ),
        Outputs(
            inputs=tuple(filter(None, (Path(data), zeros, recode, levels))),
            out=out,
            resume=resume,
            draws_out=draws_out,
            json=json,
            records=records,
            all_records=all_records,
            report=report,
            quiet=quiet,
        ),
    )
