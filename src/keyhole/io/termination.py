"""What happens to spilled data when the process is asked to end: they go first."""

import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end a process, and can be answered; nothing can answer SIGKILL."""


@contextmanager
def removed_when_terminated(directory: str) -> Iterator[None]:
    """Remove a directory if the process is terminated meanwhile; the process then ends as it would have.

    An application that answers a signal in its own way, or ignores it, is left alone, and so are threads other
    than the main one, in which Python cannot set handlers.
    """

    def end(number: int, frame: FrameType | None) -> None:
        for _ in range(100):  # another thread of the query may be writing a file just now
            shutil.rmtree(directory, ignore_errors=True)
            if not Path(directory).exists():
                break
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    ours = []
    if threading.current_thread() is threading.main_thread():
        ours = [number for number in ENDINGS if signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) is end:
                signal.signal(number, signal.SIG_DFL)
