"""keyhole validate on a Dask cluster: the same numbers as on this machine."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

# In a process of its own: a cluster listens on a port, which the tests of this process must not.
CLUSTER = """
import sys
from distributed import LocalCluster
from keyhole.cli.main import main

if __name__ == "__main__":
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, host="127.0.0.1", protocol="tcp",
        dashboard_address=None,
    ) as cluster:
        sys.argv = ["keyhole", *sys.argv[1:], "--backend", "dask", "--scheduler", cluster.scheduler_address]
        try:
            main()
        finally:
            tasks = [worker.state.executed_count > 0 for worker in cluster.workers.values()]
            print(f"{sum(tasks)} workers were busy", file=sys.stderr)
"""


def timeless(text: str) -> dict[str, object]:
    told: dict[str, object] = json.loads(
        text, object_hook=lambda one: {**one, "seconds_per_fit": 0, "processor_seconds_per_fit": 0}
    )
    return told


def test_two_workers_give_the_same_numbers(keyhole: Callable[..., Ran], survey: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    arguments = ["validate", str(survey), "--keys", "age,sex,region", "--models", "benedetti-franconi"]
    arguments += ["--sample-size", "200", "--replicates", "6", "--json", "-"]
    there = subprocess.run(
        [sys.executable, "-c", CLUSTER, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert there.returncode == 0, there.stderr
    assert "2 workers were busy" in there.stderr
    assert timeless(there.stdout) == timeless(keyhole(*arguments, "--jobs", "1").out)


def test_a_scheduler_that_does_not_answer_is_named(keyhole: Callable[..., Ran], survey: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    arguments = ("validate", survey, "--keys", "age", "--models", "benedetti-franconi", "--sample-size", "200")
    ran = keyhole(*arguments, "--backend", "dask", "--scheduler", "inproc://no-such-place")
    assert (ran.status, ran.out, "no-such-place" in ran.err, "Traceback" in ran.err) == (2, "", True, False)
