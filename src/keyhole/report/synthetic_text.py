"""The risk of synthetic files on a terminal: the verdict, the chances with and without the copies, the matches."""

from typing import TYPE_CHECKING

from keyhole.report.synthetic_content import ImportanceLine, SyntheticReport
from keyhole.report.synthetic_pictures import plural_copies
from keyhole.report.synthetic_verdict import shown_khat
from keyhole.report.text import READABLE
from keyhole.report.words import count, percent, plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def render_synthetic_text(content: SyntheticReport, console: "Console") -> None:
    """Print the summary of the page.

    Colours and width are the console's business; nothing depends on colour alone. No combination is named here,
    whatever the page shows.
    """
    from rich.padding import Padding
    from rich.text import Text

    def say(words: str, style: str = "") -> None:
        # As Text: a label with square brackets or colons must not turn into markup or emoji.
        for line in Text(words, style).wrap(console, max(20, min(console.width, READABLE) - 3)):
            line.rstrip()
            console.print(Text(" ") + line, highlight=False, soft_wrap=True)

    say(content.title, "bold")
    say(
        f"{plural(content.records, 'record')} with {plural(content.combinations, 'combination')} of "
        f"{plural(len(content.keys), 'key')}, {plural_copies(content.copies)}.",
        "dim",
    )
    console.print()
    say(content.verdict.headline, "bold" if content.trusted else "bold yellow")
    for words in content.verdict.summary:
        say(words)
    console.print()
    console.print(Padding(_table(content), (0, 0, 0, 1), expand=False), highlight=False)
    say(_importance(content.importance), "dim")
    if content.matches:
        lines = [f"{line.name} {line.value}" for line in content.matches]
        say(f"By matches alone: {', '.join(lines)}.")
    for warning in content.warnings:
        say(f"Warning: {warning}", "yellow")


def _importance(found: ImportanceLine) -> str:
    worth = "enough to go by" if found.trusted else "not to be relied on"
    return (
        f"The published importance sampler: at least {found.effective[0]:.1f} effective draws of "
        f"{count(found.draws)}, k-hat up to {shown_khat(found.khat[1])}: {worth}, "
        f"{'and used' if found.used else 'not used'}."
    )


def _table(content: SyntheticReport) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("the truth")
    table.add_column("with the copies", justify="right")
    table.add_column("without", justify="right")
    rows = [
        ("mean chance", percent(content.chance.mean), percent(content.chance.mean_before)),
        ("highest chance", percent(content.chance.highest), ""),
        ("comes first", count(content.top_ranked), f"{count(round(content.by_chance))} by luck"),
        ("among the first three", count(content.top_three), ""),
        ("chance more than doubled", count(content.above_twice), ""),
    ]
    if content.known is not None:
        rows.append(("mean chance if parameters were known", percent(content.known.mean), ""))
    if content.learned is not None:
        learned = content.learned
        rows.append(("mean chance of the keys to learn", percent(learned.mean), percent(learned.mean_before)))
    for row in rows:
        table.add_row(*map(Text, row))
    return table
