"""The keyhole command: its sub-commands, and how errors and interruptions end."""

import os
import sys
import warnings
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, NoReturn

import typer

from keyhole.cli.assess import assess
from keyhole.cli.demo import demo
from keyhole.cli.keys import keys
from keyhole.cli.models import models
from keyhole.cli.synthesize import synthesize
from keyhole.cli.synthetic_risk import synthetic_risk
from keyhole.cli.validate import validate
from keyhole.cli.zeros import zeros
from keyhole.errors import DisclosureRiskError

FAULT, BAD_INPUT, INTERRUPTED = 1, 2, 130

SHOW_TRACEBACK = "KEYHOLE_TRACEBACK"

app = typer.Typer(
    name="keyhole",
    help="Who in this file could be recognised, how surely, and what would help.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo)
app.command()(assess)
app.command("compare", help="Run several models on the same file and show where they agree.")(assess)
app.command()(validate)
app.command()(synthesize)
app.command("synthetic-risk")(synthetic_risk)
app.command()(models)
app.command()(keys)
app.add_typer(zeros)


def _version(asked: bool) -> None:
    if asked:
        from keyhole import __version__

        typer.echo(f"keyhole {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Who in this file could be recognised, how surely, and what would help."""


def main() -> NoReturn:
    """Run the command line; errors of the user become one line on standard error and exit status 2."""
    # What a user should know is collected and shown by the commands; anything else would only be noise.
    warnings.simplefilter("ignore")
    try:
        app()
    except DisclosureRiskError as error:
        print(f"keyhole: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except Exception as fault:
        if os.environ.get(SHOW_TRACEBACK):
            raise
        # A traceback may quote what it was working on, and must be safe to paste into a public issue.
        place = extract_tb(fault.__traceback__)[-1]
        print(
            f"keyhole: a fault of Keyhole itself, {type(fault).__name__} at "
            f"{Path(place.filename).name}:{place.lineno}; please report it. "
            f"{SHOW_TRACEBACK}=1 shows the whole traceback, which may quote your data.",
            file=sys.stderr,
        )
        sys.exit(FAULT)
    except KeyboardInterrupt:
        _say_interrupted()
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        # Typer turns an interruption into this exit without a word; interrupted chains say so themselves.
        if end.code == INTERRUPTED and isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            _say_interrupted()
        raise
    sys.exit(0)


def _say_interrupted() -> None:
    print("keyhole: interrupted; nothing was written", file=sys.stderr)
