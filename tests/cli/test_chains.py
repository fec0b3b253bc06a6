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
SHORT = ("--model-option", "most_sweeps=50", "--model-option", "classes=20")


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


@pytest.fixture
def kept(keyhole: Callable[..., Any], survey: Path, bands: Path, tmp_path: Path) -> tuple[Path, Any]:
    """A folder with results and chains that came to the limit of sweeps, and how the command ended."""
    folder = tmp_path / "kept"
    ran = keyhole("assess", str(survey), *RUN, str(bands), *QUICK, *SHORT, "--out", str(folder))
    assert [path.name for path in folder.glob("*.npz")] == ["checkpoint-latent-class.20.npz"]
    return folder, ran


def test_a_run_without_resume_begins_anew(
    keyhole: Callable[..., Any], survey: Path, bands: Path, tmp_path: Path, kept: tuple[Path, Any]
) -> None:
    folder, _ = kept
    again, fresh = (
        keyhole("assess", str(survey), *RUN, str(bands), *QUICK, *SHORT, "--seed", "2", "--out", str(out))
        for out in (folder, tmp_path / "fresh")
    )
    assert again.status == fresh.status != 2
    assert result(folder / "result.json")["tau1"] == result(tmp_path / "fresh" / "result.json")["tau1"]
    (folder / "checkpoint-latent-class.20.npz").write_bytes(b"of long ago")
    assert keyhole("assess", str(survey), *RUN, str(bands), *QUICK, *SHORT, "--out", str(folder)).status != 2


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (("--model", "pitman"), "the models named have no chains"),
        (("--model", "hdp"), "no interrupted run"),
        ((*QUICK, *SHORT, "--seed", "2"), "from another run"),
        ((*QUICK, "--model-option", "classes=30"), "from another run"),
    ],
)
def test_resuming_another_run_is_refused(
    keyhole: Callable[..., Any],
    survey: Path,
    bands: Path,
    kept: tuple[Path, Any],
    other: tuple[str, ...],
    words: str,
) -> None:
    folder, _ = kept
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ran = keyhole("assess", str(survey), *RUN, str(bands), *other, "--resume", str(folder))
    assert ran.status == 2
    assert words in ran.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_chains_of_other_models_stay(
    keyhole: Callable[..., Any], survey: Path, bands: Path, kept: tuple[Path, Any]
) -> None:
    folder, _ = kept
    assert keyhole("assess", str(survey), *RUN, str(bands), "--model", "pitman", "--out", str(folder)).status != 2
    ran = keyhole("assess", str(survey), *RUN, str(bands), *QUICK, *SHORT, "--resume", str(folder))
    assert result(folder / "result.json")["model"] == "latent-class"
    assert ran.status in (0, 3)


def test_how_to_go_on_after_the_limit_of_sweeps_is_to_raise_it(kept: tuple[Path, Any]) -> None:
    folder, ran = kept
    assert f"--resume {folder} instead of --out, and with a higher limit such as" in ran.err
    assert "most_sweeps=100" in ran.err


def test_a_second_interruption_says_that_chains_are_kept(
    keyhole: Callable[..., Any],
    survey: Path,
    bands: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, kept_there = tmp_path / "out", True

    def interrupted(*_: object, **__: object) -> None:
        if kept_there:
            (out / "checkpoint-latent-class.50.npz").write_bytes(b"")
        raise KeyboardInterrupt

    monkeypatch.setattr("keyhole.cli.run.compare_models", interrupted)
    ran = keyhole("assess", str(survey), *RUN, str(bands), *QUICK, "--out", str(out))
    assert ran.status == 130
    assert ran.err == (
        "keyhole: interrupted; no results were written, but the chains are kept: the same command with "
        f"--resume {out} instead of --out goes on\n"
    )
    kept_there = False
    ran = keyhole("assess", str(survey), *RUN, str(bands), *QUICK, "--out", str(out))
    assert (ran.status, ran.err) == (130, "keyhole: interrupted; nothing was written\n")
