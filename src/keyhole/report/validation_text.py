"""A validation on a terminal: what came nearest, and a table of errors and coverage by model."""

from typing import TYPE_CHECKING

from keyhole.report.text import READABLE
from keyhole.report.validation_content import BySize, TauLine, ValidationReport
from keyhole.report.words import count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 100
"""Columns of a terminal that has room for the bias."""


def render_validation_text(content: ValidationReport, console: "Console") -> None:
    """Print the summary; nothing depends on colour alone."""
    from rich.padding import Padding
    from rich.text import Text

    def say(words: str, style: str = "") -> None:
        # As Text: a label with square brackets or colons must not turn into markup or emoji.
        for line in Text(words, style).wrap(console, max(20, min(console.width, READABLE) - 3)):
            line.rstrip()
            console.print(Text(" ") + line, highlight=False, soft_wrap=True)

    say(content.headline, "bold" if content.complete else "bold yellow")
    for words in content.summary:
        say(words)
    for one in content.sizes:
        console.print()
        say(f"Samples of {count(one.size)}", "bold")
        say(one.summary)
        console.print(Padding(_table(one, console.width >= WIDE), (0, 0, 0, 1), expand=False), highlight=False)
    say(
        "error: median absolute relative error; covered: share of 95% intervals that held the truth, ! where that "
        "is too few to be chance; AUC: of r1, 0.5 if it ranks no better than chance; time: median of a fit, the "
        "first ever with compilation. Three times too high and a third of the truth are equally far.",
        "dim",
    )
    for words in content.failures:
        say(f"Failed: {words}", "yellow")
    for words in content.doubts:
        say(f"Not to be trusted, and in all measures: {words}", "yellow")
    for words in content.warnings:
        say(f"Warning: {words}", "yellow")


def _table(one: BySize, wide: bool) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", no_wrap=True)
    taus = [
        f"{name} {word}" for name in ("tau1", "tau2") for word in (*(["bias"] if wide else []), "error", "covered")
    ]
    for heading in ("samples", *taus, "AUC", "time"):
        table.add_column(heading, justify="right", no_wrap=heading == "time")
    for line in one.lines:
        taus = [*_cells(line.tau1, wide), *_cells(line.tau2, wide)]
        table.add_row(*map(Text, (line.model, count(line.measures.replicates), *taus, line.auc, line.seconds)))
    return table


def _cells(tau: TauLine | None, wide: bool) -> list[str]:
    if tau is None:
        return [""] * (3 if wide else 2)
    return [*([tau.bias] if wide else []), tau.error, f"{tau.covered}{'' if tau.keeps else ' !'}"]
