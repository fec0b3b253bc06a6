"""Results that are kept: the file gives back what was put in, and the page shows it."""

import sys
from dataclasses import replace
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from real_results import Row, TauRow, keep_rows, read_rows  # noqa: E402
from real_results_page import PAGE, cell, page, sizes_of, with_and_without  # noqa: E402

TAU = TauRow(81.0, 0.0305, 0.0612, 0.05, 0.94, -0.1, 0.25)
ROW = Row(
    "kdd_CA10", 1000, "auto", 20, 0, 2, TAU, TAU, 0.96, 3.5, "", "effort=quick", "abc1234", "2026-01-02", "a, b"
)
FAILED = Row("kdd_NY10", 1000, "np-i", 3, 3, 0, None, None, None, None, "Too many cells.")


def test_rows_come_back_as_they_were_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    assert read_rows(path) == []
    kept = keep_rows([FAILED, ROW], path)
    assert kept == [ROW, FAILED]
    assert read_rows(path) == [ROW, FAILED]


def test_a_row_is_replaced_by_one_of_as_many_samples_and_not_by_one_of_fewer(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    keep_rows([ROW], path)
    fewer, newer = replace(ROW, replicates=19, commit="new"), replace(ROW, commit="new")
    assert keep_rows([fewer], path) == [ROW]
    assert keep_rows([newer], path) == [newer]
    failed = replace(ROW, replicates=50, failed=50, tau1=None, tau2=None)
    left_out: list[str] = []
    assert keep_rows([failed], path, told=left_out.append) == [newer]
    assert left_out == ["kdd_CA10, n=1,000, auto: 20 fits are kept, not these 0."]
    other = replace(ROW, n=5000)
    assert keep_rows([other], path) == [newer, other]


def test_a_page_of_rows_that_were_just_kept_is_that_of_the_file(tmp_path: Path) -> None:
    long = replace(ROW, tau1=replace(TAU, true=123_456.789, error=0.13664999999))
    assert page(keep_rows([long], tmp_path / "rows.csv")) == page(read_rows(tmp_path / "rows.csv"))


def test_places_of_a_matrix() -> None:
    assert cell(ROW, "tau1") == "6.1%, 94%"
    assert cell(replace(ROW, not_converged=11), "tau2") == "6.1%, 94% †"
    assert cell(replace(ROW, not_converged=10), "tau2") == "6.1%, 94%"
    assert cell(FAILED, "tau1") == "none"
    assert cell(None, "tau1") == ""


def test_sizes_are_numbers_of_records_or_5_per_cent() -> None:
    kdd = replace(ROW, n=14_964)
    (common, thousand), (share, own) = sizes_of([ROW, kdd])
    assert (common, share) == ("1,000 records", "5% of the population")
    assert thousand["eph_NY10"] == 1000
    assert (own["kdd_CA10"], own["eph_NC13"]) == (14_964, 62_221)
    assert [title for title, _ in sizes_of([kdd])] == ["5% of the population"]


def test_a_page_has_every_row_where_it_belongs() -> None:
    ruled = replace(ROW, table="kdd_CA10 with zeros", commit="def5678")
    rows = [ROW, FAILED, ruled]
    shown = page(rows)
    assert ROW.line in shown
    assert [row.table for row in with_and_without(rows)] == ["kdd_CA10", "kdd_CA10 with zeros"]
    lines = shown.splitlines()
    assert lines.count("| np-i |  | none |  |  |  |  |  | 0 |  |") == 2
    assert sum("abc1234" in line for line in lines) == sum("def5678" in line for line in lines) == 1


def test_the_page_shows_what_is_kept() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_rows())
