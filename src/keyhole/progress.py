"""How long work tells where it is: to nobody, to a terminal, or to a callback."""

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """Receives the state of a long task; called often, so it must be cheap."""

    def __call__(self, task: str, done: int, total: int | None = None, note: str = "") -> None:
        """Report that ``done`` of ``total`` steps of ``task`` are finished, with a running ``note``."""


def silent(task: str, done: int, total: int | None = None, note: str = "") -> None:
    """Tell nobody."""


def throttled(report: Progress, clock: Callable[[], float], seconds: float = 0.1) -> Progress:
    """Pass on at most one report every ``seconds``, and always the first and the last one of a task."""
    last, current = -float("inf"), ""

    def relay(task: str, done: int, total: int | None = None, note: str = "") -> None:
        nonlocal last, current
        now = clock()
        if task != current or done == total or now - last >= seconds:
            last, current = now, task
            report(task, done, total, note)

    return relay
