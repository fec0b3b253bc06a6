"""The one command behind the results table: rows, order of the work, and printing from the journal."""

import re
import sys
from pathlib import Path

import pytest

from .people import people

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
TABLES = ("kdd_CA10", "kdd_NY10")


def test_every_table_is_begun_before_any_is_finished_and_the_journal_is_enough_to_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import validate_real_tables as script

    populations = {name: people(seed=seed) for seed, name in enumerate(TABLES)}
    monkeypatch.setattr(script, "named_population", lambda name, folder: populations[name])
    monkeypatch.setattr(script, "is_here", lambda name, folder: True)
    journal = tmp_path / "journal.jsonl"
    common = ["--tables", ",".join(TABLES), "--sizes", "200,10%", "--models", "ewens,benedetti-franconi"]

    def run(*more: str) -> tuple[list[str], list[str]]:
        monkeypatch.setattr(sys, "argv", ["script", "--journal", str(journal), *common, *more])
        script.main()
        told = capsys.readouterr()
        return [line for line in told.out.splitlines() if line.startswith(TABLES_START)], told.err.splitlines()

    rows, ended = run("--replicates", "3", "--slow-replicates", "2", "--jobs", "1")
    assert [tuple(cell.strip() for cell in row.split("|")[1:6]) for row in rows] == [
        (table, size, model, "3", "0")
        for table in TABLES
        for size in ("200", "400")
        for model in ("ewens", "benedetti-franconi")
    ]
    assert all(len(row.split("|")) == len(script.HEAD.split("|")) == len(script.RULE.split("|")) for row in rows)
    seeds = [int(found[1]) for line in ended if (found := re.search(r"seed=(\d+)", line))]
    assert seeds == sorted(seeds)
    assert len(seeds) == 2 * 2 * 2 * 3
    again, silent = run("--replicates", "3", "--slow-replicates", "2", "--jobs", "0")
    assert (again, silent) == (rows, [])
    fewer, _ = run("--replicates", "3", "--slow-replicates", "2", "--slow-seconds", "0", "--jobs", "0")
    assert {row.split("|")[4].strip() for row in fewer} == {"2"}


TABLES_START = tuple(f"| {name} |" for name in TABLES)


def test_unknown_names_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import validate_real_tables as script

    for option, value in (("--tables", "kdd_XX"), ("--models", "pitmann")):
        monkeypatch.setattr(sys, "argv", ["script", option, value])
        with pytest.raises(SystemExit):
            script.main()
        assert value in capsys.readouterr().err
