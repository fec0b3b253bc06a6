"""The command as a process of its own: streams, exit status, and what it loads."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path


def start(*arguments: str | Path, cwd: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "keyhole", *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error::ResourceWarning"},
    )


def test_results_on_stdout_and_a_clean_stderr(survey: Path, tmp_path: Path) -> None:
    process = start(
        "assess",
        "--effort",
        "quick",
        survey,
        "--keys",
        "age,sex",
        "--population-size",
        "45000",
        "--json",
        "-",
        cwd=tmp_path,
    )
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["schema"] == 1


def test_an_error_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    process = start("assess", "none.csv", "--keys", "age", "--population-size", "9", cwd=tmp_path)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("keyhole: ")


INTERRUPTIBLE = """
import sys, time
import keyhole.population.loading as loading
from keyhole.cli.main import main

def wait(*arguments, **options):
    print("working", file=sys.stderr, flush=True)
    time.sleep(60)

loading.load_sample = wait
sys.argv = ["keyhole", "assess", "file.csv", "--keys", "age", "--population-size", "9"]
main()
"""


def test_an_interruption_is_status_130_and_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "working\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())
