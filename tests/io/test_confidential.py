"""What the engine may not do: reach the network, load code, open other files, leave anything behind."""

import gc
import os
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from keyhole.errors import UnreadableData
from keyhole.io import Microdata, read
from keyhole.io.delimited import open_delimited
from keyhole.io.engine import Engine


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


def test_importing_is_light() -> None:
    heavy = "{'duckdb', 'pyarrow', 'pandas', 'polars', 'narwhals', 'pyreadstat', 'pydantic', 'yaml'}"
    program = (
        f"import sys, keyhole.io, keyhole.keys; assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
