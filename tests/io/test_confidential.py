"""What the engine may not do: reach the network, load code, open other files, leave anything behind."""

import gc
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import polars as pl
import pytest

from keyhole.errors import UnreadableData
from keyhole.io import Microdata, read
from keyhole.io.delimited import open_delimited
from keyhole.io.engine import Engine
from keyhole.io.termination import removed_when_terminated
from keyhole.keys import code_keys
from keyhole.table.tabulate import tabulate


@pytest.fixture
def data(tmp_path: Path) -> Microdata:
    (tmp_path / "other.csv").write_text("a\n1\n")
    path = tmp_path / "survey.parquet"
    pl.DataFrame({"a": range(5)}).write_parquet(path)
    return read(path)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM 'https://example.org/data.parquet'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM '{folder}/other.csv'",
        "COPY (SELECT 1) TO '{folder}/copy.csv'",
        "ATTACH '{folder}/new.db'",
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
    ],
)
def test_the_engine_stays_at_home(data: Microdata, tmp_path: Path, query: str) -> None:
    with pytest.raises(duckdb.Error):
        data.engine.connection.execute(query.format(folder=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv", "survey.parquet"]


def test_nothing_is_loaded_that_does_not_come_with_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "survey.csv"
    path.write_text("a,b\n1,2\n")
    engine = Engine("survey.csv", [path])  # before it is locked, when it may still look at its own extensions
    open_delimited(path, "survey.csv", engine)
    loaded = engine.rows("SELECT install_mode FROM duckdb_extensions() WHERE loaded")
    assert {mode for (mode,) in loaded} == {"STATICALLY_LINKED"}


def test_spilled_data_are_private_and_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("keyhole.io.engine.MEMORY_LIMIT", "30MB")
    engine = Engine("a large file")
    (spill,) = tmp_path.iterdir()
    assert stat.S_IMODE(os.stat(spill).st_mode) == 0o700
    engine.connection.execute("SET threads = 1")
    engine.connection.execute("CREATE TEMP TABLE many AS SELECT range AS i, hash(range) AS h FROM range(4000000)")
    assert list(spill.iterdir())
    del engine
    gc.collect()
    assert not spill.exists()


def test_too_little_room_is_told_without_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyhole.io.engine.MEMORY_LIMIT", "10MB")
    engine = Engine("survey.csv")
    engine.connection.execute("SET max_temp_directory_size = '1MB'")
    with pytest.raises(UnreadableData, match=r"survey\.csv needs more memory"):
        engine.rows("SELECT list(range) FROM range(3000000)")


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "survey.csv"
    path.write_text("a,b\n1,2\n")
    data = read(path)
    path.write_text("a,b\nErmintrude\n")
    with pytest.raises(UnreadableData, match=r"survey\.csv could not be read") as error:
        data.levels(["a"])
    assert "Ermintrude" not in str(error.value)
    assert error.value.__context__ is None  # not even where a debugger would look


def test_representations_hold_no_labels() -> None:
    data = read(pl.DataFrame({"NAME": ["Ermintrude", "Dougal"]}))
    coding = code_keys(data, ["NAME"])[0]
    shown = repr((data, data.opened, coding, coding.variable, data.select(["NAME"]), data.opened._kept))  # type: ignore[attr-defined]
    assert "NAME" in shown
    assert "Ermintrude" not in shown


TERMINATED = """
import keyhole.io.engine as engine
engine.MEMORY_LIMIT = "30MB"
e = engine.Engine("a large file")
e.connection.execute("SET threads = 1")
print(e._spill, flush=True)
e.rows("SELECT count(*) FROM (SELECT DISTINCT hash(range) FROM range(2000000000))")
"""


def test_termination_removes_what_was_spilled(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    program = [sys.executable, "-c", TERMINATED]
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        spill = Path(process.stdout.readline().strip())
        deadline = time.monotonic() + 60
        while not list(spill.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(spill.iterdir())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    assert not spill.exists()


def test_handlers_of_an_application_are_left_alone() -> None:
    def own(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGTERM, own)
    try:
        with removed_when_terminated("/nonexistent"):
            assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGTERM) is own
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with removed_when_terminated("/nonexistent"):
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_threads_take_turns(tmp_path: Path, kind: str) -> None:
    columns = {f"c{j}": [i % (j + 2) for i in range(3000)] for j in range(12)}
    frame = pl.DataFrame(columns)
    frame.write_parquet(tmp_path / "survey.parquet")
    data = read(frame if kind == "frame" else tmp_path / "survey.parquet")

    def count(j: int) -> int:
        table = tabulate(data, code_keys(data, [f"c{j % 12}"]))
        return len(table.counts)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(48))) == [j % 12 + 2 for j in range(48)]


def test_importing_is_light() -> None:
    heavy = "{'duckdb', 'pyarrow', 'pandas', 'polars', 'narwhals', 'pyreadstat', 'pydantic', 'yaml'}"
    program = (
        f"import sys, keyhole.io, keyhole.keys; assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
