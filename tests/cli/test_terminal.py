"""The progress line on a terminal shows names as they are."""

import io
import sys

import pytest

from keyhole.cli.terminal import PLAIN_EVERY, terminal_progress
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


def test_nobody_watching_means_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short work says nothing; what was said in the meantime comes with the first line."""
    screen, now = io.StringIO(), 0.0
    monkeypatch.setattr(sys, "stderr", screen)
    with terminal_progress(quiet=False, clock=lambda: now) as progress:
        progress("models", 1, 2, "auto")
        progress.say("pitman: 300")
        assert screen.getvalue() == ""
        now = PLAIN_EVERY
        progress("auto: latent-class", 1, 2)
        progress.say("auto: 200")
        now += PLAIN_EVERY / 2
        progress("sampling", 400)
        now += PLAIN_EVERY
        progress("sampling", 500, None, "tau1 about 7")
    assert screen.getvalue().splitlines() == [
        "pitman: 300",
        "auto: latent-class 1 of 2",
        "auto: 200",
        "auto: latent-class: sampling: tau1 about 7",
    ]


def test_quiet_means_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with terminal_progress(quiet=True) as progress:
        progress("models", 1, 2)
        progress.say("pitman: 300")
    assert screen.getvalue() == ""


def test_the_line_names_the_model_that_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with terminal_progress(quiet=False) as progress:
        progress("models", 1, 2, "pitman")
        progress("sampling", 3)
    assert "pitman: sampling" in screen.getvalue()


def test_a_new_task_is_shown_at_once() -> None:
    shown: list[tuple[str, int]] = []
    relay = throttled(lambda task, done, total=None, note="": shown.append((task, done)), clock=lambda: 1.0)
    for task, done in (("starting", 0), ("starting", 1), ("compiling", 0), ("sampling", 1), ("sampling", 2)):
        relay(task, done)
    assert shown == [("starting", 0), ("compiling", 0), ("sampling", 1)]
