"""keyhole zeros suggest: combinations that look impossible, for somebody who knows to confirm."""

from functools import partial
from typing import Annotated

import typer

from keyhole.cli import options

zeros = typer.Typer(
    name="zeros",
    help="Combinations that nobody can have.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@zeros.callback()
def group() -> None:
    """Combinations that nobody can have."""


@zeros.command()
def suggest(
    data: options.Data,
    keys: options.Keys,
    expected: Annotated[
        float,
        typer.Option(
            "--expected",
            min=1,
            metavar="E",
            help="Records that a missing pair would have if keys were independent.",
        ),
    ] = 20.0,
    table: options.Table = None,
    recode: options.Recode = None,
    levels: options.Levels = None,
    missing: options.Missing = "level",
) -> None:
    """List pairs of levels that no record has although chance alone would have given them some.

    The list is a file of structural zeros: keep the lines that are true of everybody, delete the others, and
    give it to --zeros. What is merely rare must go: declared impossible, its risk is understated.
    """
    from keyhole.cli.job import names, prepare
    from keyhole.population.loading import load_sample
    from keyhole.table.zero_suggestions import suggest_zeros

    load = partial(
        load_sample,
        data,
        names(*keys),
        sampling_fraction=1.0,
        table=table,
        recode=recode,
        levels=levels,
        missing=missing,
    )
    sample = prepare(load).sample
    found = suggest_zeros(sample.table, expected)
    for one in found:
        typer.echo(f"{one.rule}  # about {one.expected:,.0f} records expected, none seen")
    if not found:
        words = f"No pair of levels is missing although {expected:g} records of it were expected"
        typer.echo(f"{words}: there is nothing to give to --zeros.", err=True)
