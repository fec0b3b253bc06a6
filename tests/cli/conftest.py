"""Running the command as a user does: its streams, its files and its exit status."""

import contextlib
import csv
import io
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from keyhole.cli.main import main


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def keyhole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """``keyhole ARGUMENTS`` in an empty folder, with no terminal.

    In this process, so that the network guard of the tests stands and libraries are loaded once; ``test_process``
    runs the command in a process of its own.
    """
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["keyhole", *map(str, arguments)])
        out, err = io.StringIO(), io.StringIO()
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as end,
        ):
            main()
        return Ran(int(end.value.code or 0), out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A CSV of 2,000 people: age, sex, region and a weight, with a few unusual ones."""
    rng = np.random.default_rng(8)
    age = rng.integers(0, 95, 2000)
    sex = rng.choice(["female", "male"], 2000)
    region = rng.choice(["north", "south", "east", "west", "the islands"], 2000, p=[0.4, 0.3, 0.2, 0.09, 0.01])
    weight = np.round(rng.uniform(5, 40, 2000), 2)
    path = tmp_path / "survey.csv"
    rows = zip(age, sex, region, weight, strict=True)
    path.write_text("age,sex,region,weight\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return path


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
