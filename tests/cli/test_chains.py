"""Models with chains on the command line: limits, draws, interruption and resumption."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5netcdf
import pytest

RUN = ("--keys", "age,sex,region", "--population-size", "40000", "--recode")
QUICK = ("--model", "latent-class", "--chains", "2")


@pytest.fixture
def bands(tmp_path: Path) -> Path:
    path = tmp_path / "bands.yaml"
    path.write_text("age: {bands: [0, 20, 40, 60, 80]}\n")
    return path


def result(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())["results"][0]
    return found


def test_a_time_limit_ends_a_run_and_the_result_says_so(
    keyhole: Callable[..., Any], survey: Path, bands: Path, tmp_path: Path
) -> None:
    out = tmp_path / "result.json"
    limit = ("--max-seconds", "2", "--target-ess", "1e9", "--json", str(out))
    ran = keyhole("assess", str(survey), *RUN, str(bands), *QUICK, *limit)
    found = result(out)
    assert "time limit ended the run" in found["diagnostics"]["verdict"]
    assert found["diagnostics"]["chains"] == 2
    assert ran.status in (0, 3)


def test_draws_can_be_read_by_others(
    keyhole: Callable[..., Any], survey: Path, bands: Path, tmp_path: Path
) -> None:
    out = tmp_path / "draws.nc"
    limit = ("--model-option", "most_sweeps=300", "--draws-out", str(out))
    keyhole("assess", str(survey), *RUN, str(bands), *QUICK, *limit)
    assert out.stat().st_mode & 0o777 == 0o600
    with h5netcdf.File(out, "r") as file:
        tau1 = file["posterior"]["tau1"]
        assert tau1.dimensions == ("chain", "draw")
        assert tau1.shape[0] == 2


def test_draws_of_a_model_without_chains_are_refused(
    keyhole: Callable[..., Any], survey: Path, bands: Path, tmp_path: Path
) -> None:
    out = tmp_path / "draws.nc"
    ran = keyhole("assess", str(survey), *RUN, str(bands), "--model", "pitman", "--draws-out", str(out))
    assert ran.status == 2
    assert "--draws-out needs a model with chains" in ran.err
    assert not out.exists()


def test_nothing_to_resume_is_said(keyhole: Callable[..., Any], survey: Path, bands: Path, tmp_path: Path) -> None:
    ran = keyhole("assess", str(survey), *RUN, str(bands), *QUICK, "--resume", str(tmp_path))
    assert ran.status == 2
    assert "no interrupted run" in ran.err


def test_an_interrupted_run_leaves_a_result_and_resumes_to_the_uninterrupted_one(
    survey: Path, bands: Path, tmp_path: Path
) -> None:
    length = ("--model-option", "most_sweeps=800", "--target-ess", "1e9", "--quiet")
    start = [sys.executable, "-m", "keyhole", "assess", str(survey), *RUN, str(bands), *QUICK, *length]
    part, whole = tmp_path / "part", tmp_path / "whole"
    running = subprocess.Popen([*start, "--out", str(part)], env=os.environ)
    try:
        for _ in range(600):
            if list(part.glob("checkpoint-*.npz")):
                break
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        status = running.wait(60)
    finally:
        running.kill()
    if status != 130:
        pytest.skip("the run was over before it could be interrupted")
    assert "interrupted" in result(part / "result.json")["diagnostics"]["verdict"]
    subprocess.run([*start, "--resume", str(part)], check=False, timeout=120)
    subprocess.run([*start, "--out", str(whole)], check=False, timeout=120)
    assert result(part / "result.json")["tau1"] == result(whole / "result.json")["tau1"]
    # The limit of sweeps ended both, so their chains are kept for a longer run.
    assert sorted(path.name for path in part.glob("*.npz")) == sorted(path.name for path in whole.glob("*.npz"))


def test_limits_that_no_model_has_are_said_to_change_nothing(
    keyhole: Callable[..., Any], survey: Path, bands: Path
) -> None:
    limits = ("--target-ess", "500", "--effort", "quick", "--draws", "50")
    ran = keyhole("assess", str(survey), *RUN, str(bands), "--model", "pitman", *limits)
    told = " ".join(ran.out.split())
    assert "The model pitman has no use for --target-ess and --effort, which changed nothing." in told
