"""One row per record, in the order of the input."""

import resource
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from keyhole.errors import InputError
from keyhole.population.sample import Sample
from keyhole.report import records
from keyhole.report.records import write_records
from keyhole.risk.assess import assess_risk
from keyhole.risk.estimate import RiskAssessment

COLUMNS = ["row", "cell_count", "sample_unique", "r1", "r1_low", "r1_high", "r2", "model"]


def read(path: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    with duckdb.connect() as connection:
        found = connection.execute(f"FROM '{path}'")
        return [column[0] for column in found.description], found.fetchall()


def cells_of(sample: Sample) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A shuffled file with two records left out."""
    places = np.repeat(np.arange(sample.table.occupied), sample.table.counts)
    places = np.random.default_rng(1).permutation(places)
    return np.insert(places, [3, 100], -1)


@pytest.fixture(params=[".csv", ".parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"it's risk{request.param}"


def test_every_record_has_its_row_in_order(path: Path, sample: Sample, toy: Any) -> None:
    assessment = assess_risk(toy("two-way", uneven=True, draws=30), sample)
    places = cells_of(sample)
    write_records(path, assessment, places)
    columns, rows = read(Path(str(path).replace("'", "''")))
    assert columns == COLUMNS
    assert [row[0] for row in rows] == list(range(1, len(places) + 1))
    position = {cell: i for i, cell in enumerate(sample.table.uniques)}
    found = assessment.records
    assert found is not None
    assert found.r1_low is not None
    assert found.r1_high is not None
    for place, row in zip(places, rows, strict=True):
        if place < 0:
            assert row[1:] == (None,) * 7
        elif place in position:
            i = position[place]
            expected = (found.r1[i], found.r1_low[i], found.r1_high[i], found.r2[i])
            assert row[1:] == (1, True, *(pytest.approx(value) for value in expected), "two-way")
        else:
            assert row[1:] == (sample.table.counts[place], False, None, None, None, None, "two-way")


def test_a_plug_in_model_has_no_interval_of_r1(path: Path, sample: Sample, toy: Any) -> None:
    write_records(path, assess_risk(toy(), sample), cells_of(sample))
    _, rows = read(Path(str(path).replace("'", "''")))
    assert {(row[4], row[5]) for row in rows} == {(None, None)}
    assert sum(row[3] is not None for row in rows) == sample.uniques


def test_r2_of_every_record_where_it_was_asked_for(path: Path, sample: Sample, toy: Any) -> None:
    write_records(path, assess_risk(toy(), sample, every_record=True), cells_of(sample))
    _, rows = read(Path(str(path).replace("'", "''")))
    assert [row[6] for row in rows if row[1]] == [pytest.approx(1 / row[1]) for row in rows if row[1]]
    assert sum(row[3] is not None for row in rows) == sample.uniques


def test_a_failed_model_leaves_the_risk_unknown(path: Path, sample: Sample, toy: Any) -> None:
    write_records(path, assess_risk(toy(fails="No."), sample), cells_of(sample))
    _, rows = read(Path(str(path).replace("'", "''")))
    assert {row[3:7] for row in rows} == {(None,) * 4}
    assert sum(row[2] is True for row in rows) == sample.uniques


def test_the_chunks_join_without_a_seam(
    path: Path, sample: Sample, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assessment = assess_risk(toy(uneven=True), sample)
    write_records(path, assessment, cells_of(sample))
    whole = read(Path(str(path).replace("'", "''")))
    monkeypatch.setattr(records, "CHUNK", 97)
    write_records(path, assessment, cells_of(sample))
    assert read(Path(str(path).replace("'", "''"))) == whole


def test_the_file_is_private_and_alone(path: Path, sample: Sample, toy: Any) -> None:
    write_records(path, assess_risk(toy(), sample), cells_of(sample))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_after_an_error_nothing_is_left(path: Path, sample: Sample, toy: Any) -> None:
    with pytest.raises(IndexError):
        write_records(path, assess_risk(toy(), sample), np.array([0, 10**6]))
    assert list(path.parent.iterdir()) == []


def test_no_records_is_a_header_alone(path: Path, sample: Sample, toy: Any) -> None:
    write_records(path, assess_risk(toy(), sample), np.array([], dtype=np.int64))
    assert read(Path(str(path).replace("'", "''"))) == (COLUMNS, [])


def test_another_suffix_is_refused(tmp_path: Path, sample: Sample, toy: Any) -> None:
    with pytest.raises(InputError, match=r"\.csv or \.parquet"):
        write_records(tmp_path / "risk.xlsx", assess_risk(toy(), sample), cells_of(sample))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_an_input_error(tmp_path: Path, sample: Sample, toy: Any) -> None:
    with pytest.raises(InputError, match="does not exist"):
        write_records(tmp_path / "nowhere" / "risk.csv", assess_risk(toy(), sample), cells_of(sample))


def test_many_records_take_little_memory(tmp_path: Path, sample: Sample, toy: Any) -> None:
    assessment: RiskAssessment = replace(assess_risk(toy(), sample))
    places = np.random.default_rng(2).integers(0, sample.table.occupied, 1_500_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    write_records(tmp_path / "risk.parquet", assessment, places)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 500
