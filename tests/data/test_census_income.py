"""Does the bundled population hold the records, labels and known truths it promises?"""

import importlib.util
import io
import tarfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from numpy.typing import NDArray

from keyhole.data import census_income

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT.parent / "shared" / "data" / "census-income" / "kdd_keys.parquet"

# Known truths of three tables: keys; (non-empty cells, uniques, doubles, largest cell) of the population; then,
# by size of the sample default_rng(1).choice(N, n, replace=False), (cells, uniques, tau1, tau2).
TABLES = {
    "CA10": (
        "PARENT5 AGE10 SEX MARITAL7 RACE5 EDUC5 EMP4 INCOME2 CITIZEN5 VETBEN3",
        (12_242, 4_936, 1_758, 10_157),
        {
            1_000: (527, 363, 16, 39.56),
            5_000: (1_478, 922, 81, 181.86),
            10_000: (2_290, 1_336, 161, 342.31),
            14_964: (2_907, 1_649, 248, 491.96),
        },
    ),
    "NY10": (
        "HHREL8 FILER6 AGE10 SEX MARITAL7 RACE5 EDUC17 WKSTAT8 CLASSWKR9 VETBEN3",
        (43_975, 26_361, 6_363, 12_100),
        {
            1_000: (703, 611, 86, 146.11),
            5_000: (2_611, 2_076, 450, 713.78),
            10_000: (4_455, 3_385, 938, 1_428.82),
            14_964: (6_011, 4_451, 1_378, 2_064.33),
        },
    ),
    "NC12": (
        "SEX AGE10 RACE5 EDUC5 MARITAL7 HISP10 BIRTH8 VETBEN3 EMP4 STUDENT3 CITIZEN5 WEEKS5",
        (32_801, 19_855, 4_563, 10_618),
        {
            1_000: (634, 512, 73, 115.01),
            5_000: (2_118, 1_553, 326, 517.82),
            10_000: (3_462, 2_481, 676, 1_021.52),
            14_964: (4_620, 3_255, 1_000, 1_488.51),
        },
    ),
}


@cache
def bundled() -> pa.Table:
    return pq.read_table(census_income.path())


@cache
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_census_income", ROOT / "scripts" / "make_census_income.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def labels(key: str) -> list[str]:
    levels: list[str] = bundled()[key].combine_chunks().dictionary.to_pylist()
    return levels


def codes(key: str) -> NDArray[np.int64]:
    column = bundled()[key].combine_chunks()
    indices: NDArray[np.int64] = (
        (column.indices if pa.types.is_dictionary(column.type) else column).to_numpy().astype(np.int64)
    )
    return indices


@cache
def cells(keys: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cell of every record, and the population count of every non-empty cell."""
    packed = np.zeros(bundled().num_rows, np.int64)
    for key in keys:
        packed = packed * len(labels(key)) + codes(key)
    _, cell, counts = np.unique(packed, return_inverse=True, return_counts=True)
    return cell, counts


def sample_truth(keys: Iterable[str], size: int) -> tuple[int, int, int, float]:
    cell, population = cells(tuple(keys))
    drawn = np.random.default_rng(1).choice(len(cell), size, replace=False)
    counts = np.bincount(cell[drawn], minlength=len(population))
    behind_uniques = population[counts == 1]
    tau1, tau2 = int((behind_uniques == 1).sum()), float((1 / behind_uniques).sum())
    return int((counts > 0).sum()), len(behind_uniques), tau1, tau2


@pytest.mark.parametrize("table", TABLES)
def test_the_population_has_the_known_cells(table: str) -> None:
    keys, known, _ = TABLES[table]
    _, counts = cells(tuple(keys.split()))
    assert (len(counts), (counts == 1).sum(), (counts == 2).sum(), counts.max()) == known


@pytest.mark.parametrize("table", TABLES)
def test_seeded_samples_have_the_known_truth(table: str) -> None:
    """Exact agreement also shows that the rows are in the order of the source."""
    keys, _, samples = TABLES[table]
    for size, known in samples.items():
        *whole, tau2 = sample_truth(keys.split(), size)
        assert tuple(whole) == known[:3]
        assert round(tau2, 2) == known[3]


def test_another_row_order_would_not_have_the_known_truth() -> None:
    keys, _, samples = TABLES["CA10"]
    cell, population = cells(tuple(keys.split()))
    drawn = len(cell) - 1 - np.random.default_rng(1).choice(len(cell), 14_964, replace=False)
    counts = np.bincount(cell[drawn], minlength=len(population))
    assert ((counts > 0).sum(), (counts == 1).sum()) != samples[14_964][:2]


def test_every_column_splits_the_records_as_the_reference_does() -> None:
    if not REFERENCE.exists():
        pytest.skip(f"The reference codes are not on this machine ({REFERENCE}).")
    reference = pq.read_table(REFERENCE)
    for key in reference.column_names:
        theirs = reference[key].to_numpy().astype(np.int64)
        pairs = len(np.unique(theirs * 1_000 + codes(key)))
        assert pairs == len(np.unique(theirs)) == len(np.unique(codes(key))), key


def test_the_file_is_small_complete_and_says_where_it_comes_from() -> None:
    assert census_income.path().stat().st_size <= 3_000_000
    assert bundled().num_rows == census_income.POPULATION_SIZE
    assert all(column.null_count == 0 for column in bundled().columns)
    notes = {key.decode(): value.decode() for key, value in bundled().schema.metadata.items()}
    assert "10.24432/C5N30T" in notes["source"]
    assert notes["license"].startswith("CC BY 4.0")
    assert "10.24432/C5N30T" in census_income.ATTRIBUTION
    assert "CC BY 4.0" in census_income.ATTRIBUTION


def test_the_file_has_the_levels_of_the_script_in_their_order() -> None:
    recodes = script().RECODES
    assert bundled().column_names == ["AGE", *recodes, "YEAR"]
    for key, recode in recodes.items():
        assert labels(key) == list(recode.levels)
        assert len(np.unique(codes(key))) == len(recode.levels), f"{key} has a level nobody has"


def test_column_names_tell_the_number_of_levels() -> None:
    for key in script().RECODES:
        number = key.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        assert len(labels(key)) == int(number or 2)


def test_no_raw_answer_stands_behind_two_labels() -> None:
    for key, recode in script().RECODES.items():
        raw = [answer for group in recode.levels.values() for answer in group]
        assert len(raw) == len(set(raw)), key


def test_labels_can_be_typed_unquoted_in_a_rule_file() -> None:
    for key in script().RECODES:
        assert yaml.safe_load(f"{{{key}: [{', '.join(labels(key))}]}}") == {key: labels(key)}


def test_coarse_columns_group_the_fine_ones() -> None:
    for fine, coarse in [("AGE", "AGE10"), ("EDUC17", "EDUC5"), ("WKSTAT8", "EMP4")]:
        pairs = np.unique(codes(fine) * 100 + codes(coarse))
        assert len(pairs) == len(np.unique(codes(fine)))


def test_the_demo_keys_make_an_instructive_table() -> None:
    """Enough uniques to model, a minority of them unique in the population: the numbers of the DATA page."""
    occupied, uniques, tau1, tau2 = sample_truth(census_income.DEMO_KEYS, 14_964)
    assert (occupied, uniques, tau1, round(tau2, 2)) == (2_572, 1_410, 205, 421.93)


def test_work_status_was_not_recorded_in_1994() -> None:
    """The caveat of the DATA page that keeps EMP4 out of the demo."""
    in_1994 = codes("YEAR") == 1994
    assert {labels("EMP4")[code] for code in np.unique(codes("EMP4")[in_1994])} == {
        "child or armed forces or not asked"
    }


def test_the_data_page_lists_every_column_and_label() -> None:
    rows = {}
    for line in (ROOT / "docs" / "reference" / "DATA.md").read_text(encoding="utf-8").splitlines():
        columns = [entry.strip() for entry in line.strip("|").split("|")]
        if line.startswith("| `") and len(columns) == 4:
            rows[columns[0].strip("`")] = (columns[2].strip("`"), columns[3].split("; "))
    recodes = script().RECODES
    assert list(rows) == ["AGE", *recodes, "YEAR"]
    for key, recode in recodes.items():
        assert rows[key] == (recode.source, labels(key))


def test_an_answer_without_a_rule_is_refused() -> None:
    answers = pa.chunked_array([["Female", "Male", "Unknown"]])
    with pytest.raises(script().WrongArchive, match=r"1 records have an answer that none of \['female', 'male'\]"):
        script().label(answers, script().RECODES["SEX"].levels)


@pytest.mark.parametrize(("name", "complaint"), [("other.csv", "has no file"), ("train", "has sha256")])
def test_another_archive_is_refused(tmp_path: Path, name: str, complaint: str) -> None:
    member = script().FOLDER + "/" + (next(iter(script().MEMBERS)) if name == "train" else name)
    archive = tmp_path / "archive.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        content = b"73, Not in universe\n"
        entry = tarfile.TarInfo(member)
        entry.size = len(content)
        file.addfile(entry, io.BytesIO(content))
    with pytest.raises(script().WrongArchive, match=complaint):
        script().read_archive(archive)
