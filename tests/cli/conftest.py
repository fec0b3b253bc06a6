"""Running the command as a user does: a fresh process, its streams and its exit status."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def keyhole(tmp_path: Path) -> Callable[..., Ran]:
    """``keyhole ARGUMENTS`` in an empty folder, with no terminal."""
    work = tmp_path / "work"
    work.mkdir()

    def run(*arguments: str | Path) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "keyhole", *map(str, arguments)],
            cwd=work,
            capture_output=True,
            text=True,
            env={**os.environ, "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

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
