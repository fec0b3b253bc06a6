"""keyhole synthesize: files of people who do not exist, from the latent classes of those who do."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from keyhole.cli import options

Copies = Annotated[int, typer.Option("--copies", "-m", min=1, help="Synthetic files to make.")]
Folder = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder for the copies and what belongs to them.")
]
Size = Annotated[
    int | None, typer.Option("--records", min=1, metavar="N", help="Records of each copy; as many as in DATA.")
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="A,B", help="Keys to synthesise, given the others; all of them by default."),
]
Missing = Annotated[
    Literal["level", "drop", "impute"],
    typer.Option("--missing", help="Missing values: a level of their own, drop the record, or impute them."),
]
Formula = Annotated[
    str | None,
    typer.Option("--formula", metavar="'Y ~ A + B'", help="A regression to compare on original and copies."),
]
Family = Annotated[
    Literal["logistic", "poisson"], typer.Option("--family", help="Of the regression of --formula.")
]
Success = Annotated[
    str | None, typer.Option("--success", metavar="LEVEL", help="Level of the response that counts as 1.")
]
Warmup = Annotated[int, typer.Option("--warmup", min=1, help="Sweeps of a chain that are not used.")]
Draws = Annotated[int, typer.Option("--draws", min=32, help="Draws of the chains together.")]
Thin = Annotated[int, typer.Option("--thin", min=1, help="Sweeps between two draws.")]
ChainCount = Annotated[int, typer.Option("--chains", min=1, help="Chains on each file.")]
Classes = Annotated[int, typer.Option("--classes", min=0, help="Latent classes at most; 0 for enough.")]


def synthesize(
    data: options.Data,
    keys: options.Keys,
    out: Folder,
    copies: Copies = 5,
    records: Size = None,
    only: Only = None,
    missing: Missing = "level",
    table: options.Table = None,
    zeros: options.Zeros = None,
    recode: options.Recode = None,
    levels: options.Levels = None,
    formula: Formula = None,
    family: Family = "logistic",
    success: Success = None,
    seed: options.Seed = options.SEED,
    classes: Classes = 0,
    chains: ChainCount = 2,
    warmup: Warmup = 1500,
    draws: Draws = 400,
    thin: Thin = 10,
    quiet: options.Quiet = False,
) -> None:
    """Write synthetic copies of the named columns, the draws that made them, and a page on their use.

    The copies are in the format of DATA, shuffled, with its labels. The draws and the page are for the steward:
    only the files synthetic-1, synthetic-2, ... are meant to leave the building.
    """
    from keyhole.cli.job import names, noted
    from keyhole.cli.terminal import terminal_progress
    from keyhole.synthesis.class_draws import Length
    from keyhole.synthesis.make_copies import Order, make_copies

    order = Order(
        data=data,
        keys=tuple(names(*keys)),
        copies=copies,
        records=records,
        only=tuple(names(*(only or ()))),
        missing=missing,
        table=table,
        zeros=zeros,
        recode=recode,
        levels=levels,
        formula=formula,
        family=family,
        success=success,
        seed=seed,
        classes=classes,
        length=Length(warmup, thin, draws, chains),
    )
    order.check(out)
    with terminal_progress(quiet) as progress, noted() as notes:
        made = make_copies(order, progress)
    from keyhole.report.synthesis_files import deliver_copies

    deliver_copies(made, out, notes=notes, quiet=quiet)
    if not made.converged:
        raise typer.Exit(3)
