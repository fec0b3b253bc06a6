"""Progress on standard error: a line that erases itself on a terminal, elsewhere a plain line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from keyhole.progress import Progress, silent, throttled

PLAIN_EVERY = 10.0
"""Seconds between two lines where nobody watches a terminal; shorter work says nothing there."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Shows where the work is; ``say`` puts a line above that stays."""

    show: Progress
    say: Callable[[str], None]

    def __call__(self, task: str, done: int, total: int | None = None, note: str = "") -> None:
        self.show(task, done, total, note)


@contextmanager
def terminal_progress(quiet: bool, clock: Callable[[], float] = time.monotonic) -> Iterator[Terminal]:
    """Progress while the block runs; nothing at all when quiet."""
    if quiet:
        yield Terminal(silent, lambda line: None)
        return
    in_words = _InWords()
    if not sys.stderr.isatty():
        yield _plain(in_words, clock)
        return
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    console = Console(stderr=True)
    # Rich's status line honours NO_COLOR and cleans up after itself, also when interrupted.
    with Status("reading", console=console) as status:

        def show(task: str, done: int, total: int | None = None, note: str = "") -> None:
            # As Text: the name of a key must not turn into markup.
            status.update(Text(in_words(task, done, total, note)))

        yield Terminal(throttled(show, clock), lambda line: console.print(Text(f" {line}"), style="dim"))


class _InWords:
    """Where the work is, in one line that names the model that is at work."""

    def __init__(self) -> None:
        self._model = ""

    def __call__(self, task: str, done: int, total: int | None = None, note: str = "") -> str:
        count = f" {done:,} of {total:,}" if total else ""
        words = f"{task}{count}{f': {note}' if note else ''}"
        if task == "models":
            self._model = note
            return words
        if self._model and task.startswith(f"{self._model.partition(':')[0]}: "):
            self._model = task  # a model of a pool
            return words
        return f"{self._model}: {words}" if self._model else words


def _plain(in_words: _InWords, clock: Callable[[], float]) -> Terminal:
    """Lines for a log; what is said is held back until the work has taken long enough for a first one."""
    due = clock() + PLAIN_EVERY
    held: list[str] | None = []

    def write(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def show(task: str, done: int, total: int | None = None, note: str = "") -> None:
        nonlocal due, held
        words = in_words(task, done, total, note)
        if clock() < due:
            return
        for line in held or ():
            write(line)
        held = None
        due = clock() + PLAIN_EVERY
        write(words)

    def say(line: str) -> None:
        if held is None:
            write(line)
        else:
            held.append(line)

    return Terminal(show, say)
