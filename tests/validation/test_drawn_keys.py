"""Keys drawn at random: the same for a seed, of one kind each, and neither of nobody nor of everybody at risk."""

import sys
from pathlib import Path

import duckdb
import pytest

from .people import people

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(autouse=True)
def scripts_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))


def test_tables_of_a_real_population(shared_data: Path) -> None:
    import drawn_keys

    tables = drawn_keys.drawn_tables("kdd", 4, 1, shared_data)
    assert tables == drawn_keys.drawn_tables("kdd", 4, 1, shared_data)
    assert tables[0].keys != drawn_keys.drawn_tables("kdd", 1, 2, shared_data)[0].keys
    for table in tables:
        keys = table.keys.split(",")
        assert drawn_keys.FEWEST_KEYS <= len(set(keys)) == len(keys) <= drawn_keys.MOST_KEYS
        assert not {"AGE", "AGE10"} <= set(keys)
        path = str(shared_data / table.file)
        counted = f"SELECT count(*) AS people FROM '{path}' GROUP BY {table.keys}"
        ((alone, everybody),) = duckdb.sql(
            f"SELECT count(*) FILTER (people = 1), sum(people) FROM ({counted})"
        ).fetchall()
        assert drawn_keys.LOWEST <= alone / everybody <= drawn_keys.HIGHEST


def test_tables_of_a_population_are_summed_up_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import validate_drawn_keys as script
    from real_tables import RealTable

    for file in script.FILES.values():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    monkeypatch.setattr(script, "DEFAULT_FOLDER", tmp_path)
    monkeypatch.setattr(
        script,
        "drawn_tables",
        lambda source, count, seed, folder: [RealTable(f"{source}_{place}", "", "") for place in range(count)],
    )
    monkeypatch.setattr(script, "read_population", lambda table, folder: people(seed=int(table.name[-1])))
    given = ["--tables", "2", "--sizes", "200,300", "--models", "ewens", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["script", "--journal", str(tmp_path / "journal.jsonl"), *given])
    script.main()
    told = capsys.readouterr()
    rows = [[cell.strip() for cell in row.split("|")[1:5]] for row in told.out.splitlines()[2:]]
    assert rows == [[source, size, "ewens", "2"] for source in ("kdd", "eph") for size in ("200", "300")]
    assert len(told.err.splitlines()) == 8
    assert len({line.split("seed=")[1].split(":")[0] for line in told.err.splitlines()}) == 8
