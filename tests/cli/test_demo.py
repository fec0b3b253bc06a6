"""keyhole demo: the whole job on bundled data, with the truth beside the estimates."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

Keyhole = Callable[..., Ran]

ALONE = ("unshare", "--net")
"""A network namespace of its own, where not even a name can be looked up: no library connects."""


def test_the_demo_shows_the_truth_and_writes_the_report_without_a_network(tmp_path: Path) -> None:
    alone = shutil.which("unshare") is not None and not subprocess.run([*ALONE, "true"], check=False).returncode
    ran = subprocess.run(
        [*(ALONE if alone else ()), sys.executable, "-m", "keyhole", "demo", "--json", "demo.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    result = json.loads((tmp_path / "demo.json").read_text())
    assert (result["schema"], result["command"], result["data"]["population_size"]) == (1, "demo", 299_285)
    truth = result["results"][0]["truth"]
    assert 0 < truth["tau1"] < truth["tau2"] < result["data"]["sample_uniques"]
    assert f"{truth['tau1']:.0f}" in ran.stdout
    assert (tmp_path / "report.html").stat().st_size > 10_000
    if not alone:
        pytest.skip("the demo ran, but this machine does not let us take the network away (unshare --net)")


def test_models_lists_every_model(keyhole: Keyhole) -> None:
    from keyhole.models.catalogue import CATALOGUE

    ran = keyhole("models")
    assert ran.status == 0
    for name in CATALOGUE:
        assert name in ran.out


def test_version_and_help(keyhole: Keyhole) -> None:
    import keyhole as package

    assert keyhole("--version").out.strip() == f"keyhole {package.__version__}"
    assert "assess" in keyhole("--help").out
    assert "--population-size" in keyhole("assess", "--help").out
