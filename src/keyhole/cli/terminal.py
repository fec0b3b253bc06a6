"""Progress on the terminal: one line on standard error that erases itself, and what is worth saying at once."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from keyhole.progress import Progress, silent, throttled


@dataclass(frozen=True, slots=True)
class Terminal:
    """Shows where the work is; ``say`` puts a line above that stays."""

    show: Progress
    say: Callable[[str], None]

    def __call__(self, task: str, done: int, total: int | None = None, note: str = "") -> None:
        self.show(task, done, total, note)


@contextmanager
def terminal_progress(quiet: bool) -> Iterator[Terminal]:
    """A progress line while the block runs; nothing at all when quiet or when nobody is watching."""
    if quiet or not sys.stderr.isatty():
        yield Terminal(silent, lambda line: None)
        return
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    console = Console(stderr=True)
    # Rich's status line honours NO_COLOR and cleans up after itself, also when interrupted.
    with Status("reading", console=console) as status:

        def show(task: str, done: int, total: int | None = None, note: str = "") -> None:
            count = f" {done:,} of {total:,}" if total else ""
            # As Text: the name of a key must not turn into markup.
            status.update(Text(f"{task}{count}{f': {note}' if note else ''}"))

        yield Terminal(throttled(show, time.monotonic), lambda line: console.print(Text(f" {line}"), style="dim"))
