"""Progress on the terminal: one line on standard error that erases itself."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from keyhole.progress import Progress, silent, throttled


@contextmanager
def terminal_progress(quiet: bool) -> Iterator[Progress]:
    """A progress line while the block runs; nothing at all when quiet or when nobody is watching."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    # Rich's status line honours NO_COLOR and cleans up after itself, also when interrupted.
    with Status("reading", console=Console(stderr=True)) as status:

        def show(task: str, done: int, total: int | None = None, note: str = "") -> None:
            count = f" {done:,} of {total:,}" if total else ""
            # As Text: the name of a key must not turn into markup.
            status.update(Text(f"{task}{count}{f': {note}' if note else ''}"))

        yield throttled(show, time.monotonic)
