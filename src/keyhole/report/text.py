"""The summary on a terminal: a risk table a data steward understands, and the verdict."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keyhole.report.agreement import misfit_figure
from keyhole.report.content import Report
from keyhole.report.words import duration, plural, rounded, shortened, wrapped
from keyhole.risk.estimate import RiskEstimate

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 96
"""Columns of the terminal from which the table also shows misfits and times."""

WIDE_HEADS = ("unique in the\npopulation (tau1)", "correct\nmatches (tau2)")
NARROW_HEADS = ("unique in\npopulation\n(tau1)", "correct\nmatches\n(tau2)")

MEANINGS = {
    "held on real samples": "Held on real samples: its intervals nearly always covered the truth where that is "
    "known.",
    "fits poorly / does not fit": "Fits poorly, does not fit: it does not reproduce how many records share a "
    "combination in the file.",
    "use with caution": "Use with caution: it raised a doubt, told in the report under Checks.",
    "not to be trusted": "Not to be trusted: its own checks failed.",
    "not checked": "Not checked: how well it fits the file could not be checked.",
}

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
    if explained := _explained(report):
        say(explained, "dim")
    console.print()
    for point in report.verdict.points:
        if point.words in report.reason:
            continue  # said below the table, as the reason to believe the model first
        say(point.words, topic=f"{point.topic}. ")
    if report.dependence is not None:
        say(report.dependence.in_words, topic="How the keys go together. ")
    for path in report.paths:
        say(path.in_words(), topic=f"{path.title}. ")
    for warning in report.warnings:
        say(f"Warning: {warning}", "yellow")
    console.print()


def _table(report: Report, width: int) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns, fits = _columns(report, width)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(
            column.head,
            justify="right" if column.numbers and column.head != "model" else "left",
            # Where all columns have their place only the words of the result wrap, and they do between words.
            no_wrap=fits and column.head != "result",
            overflow="fold",
        )
    styles = ["bold" if model.recommended else ("dim" if model.doubtful else "") for model in report.models]
    rows = zip(*(column.cells for column in columns), strict=True)
    for row, style in zip(rows, [*styles, *(["green"] if report.truth else [])], strict=True):
        table.add_row(*(Text(cell) for cell in row), style=style)
    return table


@dataclass(frozen=True, slots=True)
class _Column:
    head: str
    cells: tuple[str, ...]
    numbers: bool = True

    @property
    def least(self) -> int:
        """The columns of the terminal it needs; the words of the result may stand one below the other."""
        from rich.cells import cell_len

        words = (self.head, *self.cells)
        return max(
            cell_len(part) for cell in words for part in (cell.splitlines() if self.numbers else cell.split())
        )


def _columns(report: Report, width: int) -> tuple[list[_Column], bool]:
    """The columns in the most compact of four layouts that is needed, and whether even that one fits."""
    from rich.cells import cell_len

    names = [shortened(model.model, 30) + (" *" if model.recommended else "") for model in report.models]
    results = [model.result.replace(" against the file", "") for model in report.models]
    if report.truth is not None:
        names.append("truth")
        results.append("known")
    for between, inside, whole in ((" ", "-", True), ("\n", "-", True), ("\n", "-", False), ("\n", "-\n", False)):
        heads = WIDE_HEADS if inside == "-" else NARROW_HEADS
        others = [
            _Column(heads[0], _estimates(report, "tau1", between, inside)),
            _Column(heads[1], _estimates(report, "tau2", between, inside)),
            _Column("result", tuple(results), numbers=False),
            *(_extras(report) if width >= WIDE else ()),
        ]
        room = width - 1 - 2 * (len(others) + 1) - sum(column.least for column in others)
        longest = max(map(cell_len, names))
        lines = [[name] if whole else _name_lines(name, min(room, longest)) for name in names]
        fits = max(cell_len(line) for name in lines for line in name) <= room
        if fits:
            break
    return [_Column("model", tuple("\n".join(name) for name in lines)), *others], fits


def _name_lines(name: str, room: int) -> list[str]:
    # The mark of the recommended model stays beside the last part of its name.
    lines = wrapped(name.replace(" *", "\N{NO-BREAK SPACE}*"), room)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _estimates(report: Report, measure: str, between: str, inside: str) -> tuple[str, ...]:
    cells = [
        _estimate(model.tau1 if measure == "tau1" else model.tau2, between, inside) for model in report.models
    ]
    if report.truth is not None:
        cells.append(f"{report.truth.tau1:,.0f}" if measure == "tau1" else rounded(report.truth.tau2))
    return tuple(cells)


def _estimate(found: RiskEstimate | None, between: str, inside: str) -> str:
    if found is None:
        return "-"
    low, high = rounded(found.low), rounded(found.high)
    return rounded(found.estimate) + (f"{between}({low}{inside}{high})" if low != high else "")


def _extras(report: Report) -> tuple[_Column, _Column]:
    known = ("",) if report.truth is not None else ()
    misfits = ["" if model.misfit is None else misfit_figure(model.misfit) for model in report.models]
    times = [duration(model.seconds_fit + model.seconds_risk) for model in report.models]
    return _Column("misfit", (*misfits, *known)), _Column("time", (*times, *known))


def _explained(report: Report) -> str:
    """What the results of the table mean, where they are not plain."""
    results = " / ".join(model.result for model in report.models)
    return " ".join(
        meaning for words, meaning in MEANINGS.items() if any(word in results for word in words.split(" / "))
    )
