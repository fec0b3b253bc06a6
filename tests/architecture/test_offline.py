"""The whole job runs where there is no network at all."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def test_the_demo_runs_without_a_network(tmp_path: Path) -> None:
    """In a network namespace of its own, where not even a name can be looked up: no library connects."""
    alone = ["unshare", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let us take the network away (unshare --net)")
    done = subprocess.run(
        [*alone, sys.executable, "-m", "keyhole", "demo", "--json", "result.json"],
        cwd=tmp_path,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "result.json").read_text())["schema"] == 1
