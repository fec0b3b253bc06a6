"""The summary on a terminal: a risk table a data steward understands, and the verdict."""

from typing import TYPE_CHECKING

from keyhole.report.content import ModelResult, Report
from keyhole.report.words import duration, plural, rounded, shortened

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE, MEDIUM = 96, 64
"""Columns of the terminal from which all columns of the table, or those that matter most, are shown."""

READABLE = 100
"""Columns beyond which lines of prose are hard to follow."""


def render_text(report: Report, console: "Console") -> None:
    """Print the summary of a report.

    Colours, boxes and width are the console's business: Rich leaves colours out when the output is not a
    terminal or ``NO_COLOR`` is set. Nothing depends on colour alone.
    """
    from rich.padding import Padding
    from rich.text import Text

    def say(words: str, style: str = "", topic: str = "") -> None:
        # As Text: a label with square brackets or colons must not turn into markup or emoji.
        text = Text.assemble((topic, "bold"), (words, style))
        for number, line in enumerate(text.wrap(console, max(20, min(console.width, READABLE) - 3))):
            line.rstrip()
            lead = (" " if number else "-") + " " if topic else ""
            console.print(Text(f" {lead}") + line, highlight=False, soft_wrap=True)

    data = report.data
    console.print()
    say(report.title, "bold")
    say(
        f"{plural(data.records, 'record')} of a population of {data.population_size:,}, "
        f"{plural(len(data.keys), 'key')}, {plural(data.sample_uniques, 'unique record')}.",
        "dim",
    )
    console.print()
    say(report.verdict.headline, "bold")
    # The second sentence repeats the headline with its interval, which the table shows.
    for words in (*report.verdict.summary[:1], *report.verdict.summary[2:]):
        say(words)
    console.print()
    console.print(Padding(_table(report, console.width), (0, 0, 0, 1), expand=False), highlight=False)
    if any(model.recommended for model in report.models):
        say(f"* believe first. {report.reason}", "dim")
    console.print()
    for point in report.verdict.points:
        say(point.words, topic=f"{point.topic}. ")
    for warning in report.warnings:
        say(f"Warning: {warning}", "yellow")
    console.print()


def _table(report: Report, width: int) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    # A name broken in two is hard to read; the words of the result can wrap instead.
    table.add_column("model", no_wrap=width >= MEDIUM, overflow="fold" if width < MEDIUM else "ellipsis")
    table.add_column("unique in the\npopulation (tau1)", justify="right", no_wrap=width >= MEDIUM)
    table.add_column("correct\nmatches (tau2)", justify="right", no_wrap=width >= MEDIUM)
    table.add_column("result", overflow="fold")
    if width >= WIDE:
        table.add_column("misfit", justify="right")
        table.add_column("time", justify="right")
    for model in report.models:
        cells = [
            f"{shortened(model.model, 30)}{' *' if model.recommended else ''}",
            _estimate(model, "tau1", width),
            _estimate(model, "tau2", width),
            model.result,
        ]
        if width >= WIDE:
            cells.append("" if model.misfit is None else f"{model.misfit:.1f}")
            cells.append(duration(model.seconds_fit + model.seconds_risk))
        style = "bold" if model.recommended else ("dim" if model.doubtful else "")
        table.add_row(*(Text(cell) for cell in cells), style=style)
    if report.truth is not None:
        known = ["truth", f"{report.truth.tau1:,.0f}", rounded(report.truth.tau2), "known"]
        table.add_row(*(Text(cell) for cell in known), style="green")
    return table


def _estimate(model: ModelResult, measure: str, width: int) -> str:
    found = model.tau1 if measure == "tau1" else model.tau2
    if found is None:
        return "-"
    interval = f"{rounded(found.low)}-{rounded(found.high)}"
    return (
        f"{rounded(found.estimate)} ({interval})"
        if width >= MEDIUM
        else f"{rounded(found.estimate)}\n({interval})"
    )
