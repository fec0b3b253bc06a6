"""The progress line on a terminal shows names as they are."""

import io
import sys

import pytest

from keyhole.cli.terminal import terminal_progress
from keyhole.progress import throttled


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_key_that_looks_like_markup_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with terminal_progress(quiet=False) as progress:
        progress("contribution of each key", 3, 3, "[/red]")
    assert "[/red]" in screen.getvalue()


def test_nobody_watching_means_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with terminal_progress(quiet=False) as progress:
        progress("models", 1, 2)
    assert screen.getvalue() == ""


def test_a_new_task_is_shown_at_once() -> None:
    shown: list[tuple[str, int]] = []
    relay = throttled(lambda task, done, total=None, note="": shown.append((task, done)), clock=lambda: 1.0)
    for task, done in (("starting", 0), ("starting", 1), ("compiling", 0), ("sampling", 1), ("sampling", 2)):
        relay(task, done)
    assert shown == [("starting", 0), ("compiling", 0), ("sampling", 1)]
