"""The command as a process of its own: streams, exit status, and what it loads."""

import json
import os
import signal
import subprocess
import sys
import time
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
        "assess", survey, "--keys", "age,sex", "--population-size", "45000", "--json", "-", cwd=tmp_path
    )
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["schema"] == 1


def test_an_error_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    process = start("assess", "none.csv", "--keys", "age", "--population-size", "9", cwd=tmp_path)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("keyhole: ")


def test_an_interruption_is_status_130_and_leaves_nothing(tmp_path: Path) -> None:
    # A pipe nobody writes to: reading waits until it is interrupted.
    fifo = tmp_path / "endless.csv"
    os.mkfifo(fifo)
    writer = os.open(fifo, os.O_RDWR)
    os.write(writer, b"age,sex\n1,f\n" * 10)
    process = start("assess", fifo, "--keys", "age", "--population-size", "9", cwd=tmp_path)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode in (2, 130), err  # 2 where a pipe is refused at once
    assert out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["endless.csv"]
