"""keyhole models: every model, its paper, when to use it and when it fails."""

import typer


def models() -> None:
    """List every model: name, paper, when to use it, when it fails."""
    from rich.console import Console
    from rich.padding import Padding

    from keyhole.models.catalogue import CATALOGUE

    console = Console(highlight=False)
    for entry in CATALOGUE.values():
        console.print(f"[bold]{entry.name}[/bold]  {entry.paper}")
        console.print(Padding(f"use: {entry.use}\nfails: {entry.fails}", (0, 0, 1, 4)))
    typer.echo(
        "A model's settings are given by --model-option NAME=VALUE; docs/reference/model-guide.md lists them."
    )
