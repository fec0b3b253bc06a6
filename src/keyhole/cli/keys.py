"""keyhole keys: which columns make records unique, to choose keys or what to coarsen from."""

from typing import Annotated

import typer

from keyhole.cli import options


def keys(
    data: options.Data,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys", metavar="A,B,C", help="Keys chosen already; rank what each other column would add."
        ),
    ] = None,
    table: options.Table = None,
    top: Annotated[int, typer.Option("--top", min=1, metavar="N", help="How many columns to show.")] = 20,
) -> None:
    """Rank the columns of a file by the sample uniques they create."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from keyhole.cli.job import names
    from keyhole.io import read
    from keyhole.keys.ranking import rank_columns

    given = names(keys or "")
    microdata = read(data, table=table)
    ranks = rank_columns(microdata, given=given)
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False)
    shown.add_column("column")
    for heading in ("levels", "uniques alone", *(["uniques added"] if given else [])):
        shown.add_column(heading, justify="right")
    for rank in ranks[:top]:
        counts = [rank.levels, rank.uniques, *([rank.uniques_gained] if given else [])]
        shown.add_row(Text(rank.name), *(f"{count:,}" for count in counts))
    console = Console(highlight=False)
    beside = f", beside {', '.join(given)}" if given else ""
    console.print(Text(f"{microdata.records:,} records of {microdata.source}{beside}"))
    console.print(shown)
    if len(ranks) > top:
        console.print(f"{len(ranks) - top} more columns; --top shows them.")
