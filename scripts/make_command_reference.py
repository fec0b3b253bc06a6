"""Write docs/reference/command-line.md from the commands themselves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "command-line.md"

HEAD = """# Commands and options

Made by `python scripts/make_command_reference.py` from the commands' own help.

Exit status: 0 done; 1 a fault of Keyhole itself, or the reader of its output went away; 2 bad usage or bad input
(the reason on standard error, nothing written); 3 finished but not to be trusted (results are written and marked
so); 130 interrupted. Results go to standard output, progress to standard error; a pipe or `NO_COLOR` turns colours
and bars off; `validate` then tells of a fit in a line now and then. Every file is written atomically and readable
by its owner alone. Without an output option, `assess` and `compare` write `report.html` into the current folder.
"""


def command_reference() -> str:
    """The page, as the present commands describe themselves."""
    import typer

    from keyhole.cli.main import app

    group = typer.main.get_group(app)
    context = typer.Context(group, info_name="keyhole")
    parts = [HEAD]
    parts += [part for name, command in group.commands.items() for part in _described(name, command, context)]
    return "\n".join(parts)


def _described(name: str, command: Any, parent: Any) -> Iterator[str]:
    """The help of a command, or of each command of a group."""
    import typer

    context = typer.Context(command, info_name=name, parent=parent)
    if hasattr(command, "commands"):
        for inner, its in command.commands.items():
            yield from _described(inner, its, context)
    else:
        yield f"## {context.command_path}\n\n```text\n{command.get_help(context).strip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(command_reference())
    print(f"wrote {PAGE}")
