"""Records that are written and read again: the same table, the same order, whatever the labels and the format."""

import os
import struct
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.arrays import Codes
from keyhole.errors import InputError, InvalidKeys, MissingExtra, UnreadableData
from keyhole.io import Microdata, read
from keyhole.io.writing import cannot_write, format_like, write_codes
from keyhole.keys import MISSING, Recode, code_keys
from keyhole.keys.level_values import level_values, value_labels
from tests.io.tables import labelled_cells, labelled_records

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.errors.DoubtfulKeys")

STATISTICAL = (".sav", ".dta")
FORMATS = (".csv", ".tsv", ".parquet", *STATISTICAL)

AWKWARD = (
    "Bern, west",
    'say "so"',
    '"',
    '""',
    '","',
    "two\nlines",
    "a\r\nb\rc",
    "tab\tsemi;bar|",
    "Zürich",
    "東京",
    "it's",
    "  before",
    "007",
    "07",
    "7",
    "7.0",
    "-3",
    "1e5",
    "NULL",
    "nan",
    "#",
    "\\N",
)
"""Texts that a writer or a reader of some format might take for something else."""


def pyreadstat() -> Any:
    return pytest.importorskip("pyreadstat", reason="pyreadstat is not installed: SPSS and Stata are not tested")


def shown(
    names: Sequence[str], codes: Codes, levels: Sequence[Sequence[str | None]]
) -> list[tuple[str | None, ...]]:
    """The labels that the written records should have, None for missing."""
    return [tuple(levels[j][code] for j, code in enumerate(row)) for row in codes.tolist()]


def random_codes(levels: Sequence[Sequence[Any]], records: int = 500) -> Codes:
    rng = np.random.default_rng(20)
    return np.column_stack([rng.integers(0, len(column), records) for column in levels]).astype(np.int32)


def assert_same(data: Microdata, names: Sequence[str], expected: list[tuple[str | None, ...]]) -> None:
    assert data.columns == tuple(names)
    assert labelled_cells(data, names) == Counter(expected)
    assert labelled_records(data, names) == expected


@pytest.mark.parametrize("suffix", FORMATS)
def test_awkward_texts_and_numbers(tmp_path: Path, suffix: str) -> None:
    if suffix in STATISTICAL:
        pyreadstat()
    names = ("TEXT", "WHOLE", "GAPS", "HALF", "EMPTY")
    values = (AWKWARD, (-3, 0, 12), (None, 5, -70_000), (0.5, None, -2.0, 1e-9), ("x", "", None))
    levels = (AWKWARD, ("-3", "0", "12"), (None, "5", "-70000"), ("0.5", None, "-2", "1e-09"), ("x", None, None))
    codes = random_codes(values)
    path = tmp_path / f"copy{suffix}"
    write_codes(path, names, codes, values)
    assert_same(read(path), names, shown(names, codes, levels))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_awkward_names(tmp_path: Path, suffix: str) -> None:
    names = ("a,b", 'the "first"', "two\nlines", "2020", "it's; |", "größe")
    values = [("x", "y, z", None)] * len(names)
    codes = random_codes(values)
    write_codes(tmp_path / f"copy{suffix}", names, codes, values)
    assert_same(read(tmp_path / f"copy{suffix}"), names, shown(names, codes, values))


LETTERS = st.characters(exclude_categories=("Cs", "Cc"), include_characters="\t\r\n,;|\"' ")
LABELS = st.lists(st.text(LETTERS, min_size=1).filter(lambda text: text != MISSING), min_size=1, unique=True)


@given(first=LABELS, second=LABELS, suffix=st.sampled_from([".csv", ".tsv"]), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_any_text_comes_back(
    tmp_path_factory: pytest.TempPathFactory, first: list[str], second: list[str], suffix: str, seed: int
) -> None:
    values = ([*first, None], [*second, None])
    codes = np.random.default_rng(seed).integers(0, [len(column) for column in values], size=(20, 2))
    path = tmp_path_factory.mktemp("texts") / f"copy{suffix}"
    write_codes(path, ("NAME-1", "NAME-2"), codes, values)
    assert_same(read(path), ("NAME-1", "NAME-2"), shown((), codes, values))


@pytest.mark.parametrize("suffix", FORMATS)
def test_one_column_in_which_all_may_be_missing(tmp_path: Path, suffix: str) -> None:
    if suffix in STATISTICAL:
        pyreadstat()
    path = tmp_path / f"copy{suffix}"
    write_codes(path, ["K"], np.array([[1], [0], [1], [1]]), [("x", None)])
    assert_same(read(path), ["K"], [(None,), ("x",), (None,), (None,)])
    if suffix == ".csv":
        assert path.read_text() == 'K\n""\nx\n""\n""\n'
    write_codes(path, ["K", "L"], np.array([[0, 0], [0, 1]]), [(None,), ("x", "y")])
    assert labelled_records(read(path), ["K", "L"]) == [(None, "x"), (None, "y")]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_more_records_than_are_written_at_once(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhole.io.writing.CHUNK", 7)
    for records in (13, 14, 15):
        values = (("x", "y"), tuple(range(records)))
        codes = np.column_stack([np.arange(records) % 2, np.arange(records)[::-1]])
        write_codes(tmp_path / f"copy{suffix}", ("K", "ROW"), codes, values)
        expected = [("xy"[i % 2], str(records - 1 - i)) for i in range(records)]
        assert_same(read(tmp_path / f"copy{suffix}"), ("K", "ROW"), list(expected))


def test_order_of_many_records(tmp_path: Path) -> None:
    values = [tuple(range(300_000))]
    codes = np.random.default_rng(3).permutation(300_000)[:, None]
    write_codes(tmp_path / "copy.parquet", ["K"], codes, values)
    rows = duckdb.sql(f"SELECT K FROM read_parquet('{tmp_path / 'copy.parquet'}')").fetchnumpy()["K"]
    assert np.array_equal(rows, codes[:, 0])


def test_types_of_parquet(tmp_path: Path) -> None:
    values = {
        "whole": (1, None, -2),
        "half": (1, 0.1, None),
        "text": ("1", "2", None),
        "mixed": (1, "x", 2.5),
        "flag": (True, None, False),
        "far": (-(2**63), 2**63 - 1, 0),
        "long": (2**64 - 1, 0, 5),
        "longer": (2**64, -1, 5),
        "exact": (2**53 + 1, 0.5, None),
        "nothing": (None, None, None),
    }
    path = tmp_path / "copy.parquet"
    codes = np.repeat(np.arange(3)[:, None], len(values), axis=1)
    write_codes(path, list(values), codes, list(values.values()))
    with duckdb.connect() as connection:
        described = connection.execute(f"DESCRIBE FROM read_parquet('{path}')").fetchall()
        rows = connection.execute(f"FROM read_parquet('{path}')").fetchall()
    assert {row[0]: row[1] for row in described} == {
        "whole": "BIGINT",
        "half": "DOUBLE",
        "text": "VARCHAR",
        "mixed": "VARCHAR",
        "flag": "BOOLEAN",
        "far": "BIGINT",
        "long": "UBIGINT",
        "longer": "VARCHAR",
        "exact": "VARCHAR",
        "nothing": "VARCHAR",
    }
    found = {row[0]: tuple(record[j] for record in rows) for j, row in enumerate(described)}
    as_text = {
        "mixed": ("1", "x", "2.5"),
        "longer": (str(2**64), "-1", "5"),
        "exact": (str(2**53 + 1), "0.5", None),
    }
    assert found == {**values, **as_text}


def test_fields_of_text(tmp_path: Path) -> None:
    values = ((True, None), (3.0, 2.5), (10**20, -7), ("a,b", 'x"y'))
    codes = np.array([[0, 0, 0, 0], [1, 1, 1, 1]])
    write_codes(tmp_path / "copy.csv", "ABCD", codes, values)
    assert (tmp_path / "copy.csv").read_bytes() == (
        b'A,B,C,D\ntrue,3,100000000000000000000,"a,b"\n,2.5,-7,"x""y"\n'
    )
    write_codes(tmp_path / "copy.tsv", "ABCD", codes, values)
    assert (tmp_path / "copy.tsv").read_bytes().splitlines()[1] == b'true\t3\t100000000000000000000\t"a,b"'


SEX = {1: "f", 2: "m", 9: "not told"}
TOWN = {"Z": "Zürich", "B": "Bern, west"}


def survey(path: Path) -> Path:
    """A file with texts, whole numbers, fractions, missing values, and value labels where there can be any."""
    rows = {
        "SEX": [1, 2, 2, None, 1, 2, 1],
        "AGE": [31, 7, 7, 97, 45, None, 31],
        "HALF": [0.5, 2.0, 2.0, None, 0.5, 0.5, 2.0],
        "TOWN": ["Z", "B", "B", "", "Z", "Chur", "B"],
    }
    frame = pl.DataFrame(rows, schema={"SEX": pl.Int32, "AGE": pl.Int64, "HALF": pl.Float64, "TOWN": pl.String})
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".sav":
        labels = {"SEX": SEX, "TOWN": TOWN}
        pyreadstat().write_sav(frame, str(path), variable_value_labels=labels)
    elif path.suffix == ".dta":
        pyreadstat().write_dta(frame, str(path), variable_value_labels={"SEX": SEX})
    else:
        frame.write_csv(path, separator="," if path.suffix == ".csv" else "\t")
    return path


@pytest.mark.parametrize("recoded", [False, True])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_copy_of_the_input(tmp_path: Path, suffix: str, recoded: bool) -> None:
    source = survey(tmp_path / f"survey{suffix}")
    data = read(source)
    names = ("TOWN", "AGE", "SEX", "HALF")
    recodes = {"AGE": Recode(bands=[0, 15, 65]), "TOWN": Recode(groups={"elsewhere, far": ["Chur", MISSING]})}
    codings = code_keys(data, names, recodes=recodes if recoded else None)
    levels = [coding.variable.levels for coding in codings]
    codes = random_codes(levels)
    values = [level_values(data, coding) for coding in codings]
    labels = {c.variable.name: kept for c in codings if (kept := value_labels(data, c))}
    path = tmp_path / f"copy{format_like(str(source))}"
    write_codes(path, names, codes, values, labels)
    assert path.suffix == suffix
    expected = [[None if level == MISSING else level for level in column] for column in levels]
    copy = read(path)
    assert_same(copy, names, shown(names, codes, expected))
    if not recoded:  # so the same codings serve for both files: the raw values are the same
        again = code_keys(copy, names)
        assert [coding.variable for coding in again] == [coding.variable for coding in codings]
        assert [level_values(copy, coding) for coding in again] == values


@pytest.mark.parametrize("suffix", STATISTICAL)
def test_value_labels_are_restored(tmp_path: Path, suffix: str) -> None:
    reader = getattr(pyreadstat(), f"read_{suffix[1:]}")
    path = tmp_path / f"copy{suffix}"
    labels = {"SEX": SEX, "GAPS": {1.5: "half", 2: "two"} if suffix == ".sav" else {2: "two"}, "TOWN": TOWN}
    names = ("SEX", "GAPS", "TOWN", "WHOLE")
    values = ((2, 1), (2, 1.5, None), ("B", "Z", "Chur"), (5, None))
    codes = np.array([[0, 2, 0, 0], [1, 0, 1, 1], [0, 1, 2, 0]])
    write_codes(path, names, codes, values, labels)  # type: ignore[arg-type]
    columns, metadata = reader(str(path), output_format="dict")
    assert {name: list(column) for name, column in columns.items()} == {
        "SEX": [2, 1, 2],
        "GAPS": [None, 2, 1.5],
        "TOWN": ["B", "Z", "Chur"],
        "WHOLE": [5, None, 5],
    }
    kept = labels if suffix == ".sav" else {name: labels[name] for name in ("SEX", "GAPS")}
    assert metadata.variable_value_labels == kept  # Stata has no labels for texts
    kinds = metadata.readstat_variable_types
    assert kinds["TOWN"] == "string"
    assert (kinds["SEX"], kinds["GAPS"]) == (("double", "double") if suffix == ".sav" else ("int32", "double"))
    if suffix == ".sav":
        shape = metadata.original_variable_types
        assert [shape[name] for name in names] == ["F8.0", "F8.2", "A4", "F8.0"]
    shown_first = labelled_records(read(path), ["SEX", "GAPS"])[1:]
    assert shown_first == [("f", "two"), ("m", "half" if suffix == ".sav" else "1.5")]


def test_labels_of_another_type_are_left_out(tmp_path: Path) -> None:
    reader = pyreadstat().read_sav
    labels = {"K": {1: "one"}, "L": {"x": "ex"}}
    write_codes(tmp_path / "copy.sav", ("K", "L"), np.zeros((1, 2), int), (("1",), (1,)), labels)  # type: ignore[arg-type]
    assert reader(str(tmp_path / "copy.sav"), metadataonly=True)[1].variable_value_labels == {}


def test_a_label_of_a_fraction_beside_whole_numbers(tmp_path: Path) -> None:
    reader = pyreadstat().read_sav
    labels: dict[str, dict[int | float | str, str]] = {"K": {1: "one", 1.5: "between"}}
    write_codes(tmp_path / "copy.sav", ["K"], np.array([[0], [1]]), [(1, 2)], labels)
    assert reader(str(tmp_path / "copy.sav"), metadataonly=True)[1].variable_value_labels == labels


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_missing_numbers_are_system_missing(tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPSS knows one number that means missing, the lowest of all; NaN is none to it."""
    pyreadstat()
    pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "pandas":
        monkeypatch.setitem(sys.modules, "polars", None)
    write_codes(tmp_path / "copy.sav", ["K"], np.array([[0], [1]]), [(0.5, None)])
    assert (tmp_path / "copy.sav").read_bytes()[-16:] == struct.pack("<dd", 0.5, -sys.float_info.max)


def test_whole_numbers_that_mean_missing_in_stata(tmp_path: Path) -> None:
    pyreadstat()
    values = [(2**31 - 1, 2**31 - 27, 5)]  # as whole numbers of 32 bits, the first would be missing
    write_codes(tmp_path / "copy.dta", ["K"], np.arange(3)[:, None], values)
    assert labelled_records(read(tmp_path / "copy.dta"), ["K"]) == [(str(value),) for value in values[0]]


@pytest.mark.parametrize("suffix", STATISTICAL)
def test_without_polars(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pyreadstat()
    pytest.importorskip("pandas", reason="pandas is not installed: only Polars can be tested")
    names, values = ("A", "B", "C", "D"), ((1, 2), (1, None), (AWKWARD[0], None), (0.5, None))
    codes = random_codes(values, 50)
    write_codes(tmp_path / f"one{suffix}", names, codes, values, {"A": {1: "one"}})
    empty = np.zeros((0, 4), int)
    write_codes(tmp_path / f"empty-one{suffix}", names, empty, values)
    monkeypatch.setitem(sys.modules, "polars", None)
    write_codes(tmp_path / f"two{suffix}", names, codes, values, {"A": {1: "one"}})
    write_codes(tmp_path / f"empty-two{suffix}", names, empty, values)
    monkeypatch.undo()
    expected = shown(names, codes, (("one", "2"), ("1", None), (AWKWARD[0], None), ("0.5", None)))
    for name in ("one", "two"):
        assert labelled_records(read(tmp_path / f"{name}{suffix}"), names) == expected
    reader = getattr(pyreadstat(), f"read_{suffix[1:]}")
    kinds = [reader(str(tmp_path / f"empty-{name}{suffix}"))[1].readstat_variable_types for name in ("one", "two")]
    assert kinds[0] == kinds[1]
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="'polars' or 'pandas'"):
        write_codes(tmp_path / f"three{suffix}", names, codes, values)


@pytest.mark.parametrize(("suffix", "extra"), [(".sav", "spss"), (".dta", "stata")])
def test_without_pyreadstat(tmp_path: Path, suffix: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(MissingExtra, match=rf'pip install "keyhole\[{extra}\]"'):
        write_codes(tmp_path / f"copy{suffix}", ["K"], np.zeros((1, 1), int), [(1,)])
    assert not (tmp_path / f"copy{suffix}").exists()


@pytest.mark.parametrize("suffix", FORMATS)
def test_no_records(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"copy{suffix}"
    if suffix in STATISTICAL:
        pyreadstat()
    write_codes(path, ("K", "L"), np.zeros((0, 2), int), (("x", None), (1, 2)), {"L": {1: "one"}})
    with pytest.raises(UnreadableData, match="no records"):
        read(path)
    if suffix == ".csv":
        assert path.read_text() == "K,L\n"
    elif suffix == ".parquet":
        described = duckdb.sql(f"DESCRIBE FROM read_parquet('{path}')").fetchall()
        assert [row[:2] for row in described] == [("K", "VARCHAR"), ("L", "BIGINT")]
    elif suffix in STATISTICAL:
        metadata = getattr(pyreadstat(), f"read_{suffix[1:]}")(str(path), metadataonly=True)[1]
        assert metadata.column_names == ["K", "L"]
        assert metadata.readstat_variable_types["K"] == "string"
        assert metadata.variable_value_labels == {"L": {1: "one"}}


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_file_that_is_there_is_filled(tmp_path: Path, suffix: str) -> None:
    """As `private_file` gives it: with another ending, for its owner only, and it must stay the same file."""
    if suffix in STATISTICAL:
        pyreadstat()
    path = tmp_path / ".it's a [copy].tmp"
    path.write_bytes(b"old content\n" * 10_000)
    path.chmod(0o600)
    before = path.stat()
    write_codes(path, ("K", "L"), np.array([[1, 0], [0, 1]]), (("x", "y"), (1, 2)), suffix=suffix.upper())
    after = path.stat()
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert os.listdir(tmp_path) == [path.name]
    path.rename(tmp_path / f"copy{suffix}")
    assert_same(read(tmp_path / f"copy{suffix}"), ("K", "L"), [("y", "1"), ("x", "2")])


def test_formats() -> None:
    like = {
        "survey.csv": ".csv",
        "/data/Survey.TXT": ".csv",
        "survey.csv.gz": ".csv",
        "survey.tsv": ".tsv",
        "a.b.tab.GZ": ".tsv",
        "survey.parquet": ".parquet",
        "survey.pq": ".parquet",
        "survey.sav": ".sav",
        "survey.zsav": ".sav",
        "survey.dta": ".dta",
    }
    assert {data: format_like(data) for data in like} == like
    assert [cannot_write(data) for data in like] == [None] * len(like)
    others = {
        "survey.sas7bdat": "SAS files",
        "study.duckdb": "databases",
        "postgresql://ann:hunter2@db/census.csv": "databases",
        "sqlite:////data/study.sav": "databases",
        "the data frame": "data of this kind",
        "survey.parquet.gz": "data of this kind",
    }
    assert [format_like(data) for data in others] == [".csv"] * len(others)
    for data, words in others.items():
        told = cannot_write(data)
        assert told is not None
        assert words in told
        assert "hunter2" not in told


@pytest.mark.parametrize(
    ("codes", "values"),
    [
        ([[0, 2]], [("x",), ("y", "z")]),
        ([[0, -1]], [("x",), ("y", "z")]),
        ([[0, 0]], [("x",)]),
        ([[0]], [("x",), ("y", "z")]),
        ([0, 0], [("x",), ("y", "z")]),
    ],
)
def test_codes_without_values_are_refused(tmp_path: Path, codes: Any, values: Any) -> None:
    with pytest.raises(InvalidKeys, match=r"among its 2 values|do not fit"):
        write_codes(tmp_path / "copy.csv", ("K", "L"), np.array(codes), values)
    assert not (tmp_path / "copy.csv").exists()


def test_no_columns_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidKeys, match="at least one name"):
        write_codes(tmp_path / "copy.csv", (), np.zeros((3, 0), int), ())
    with pytest.raises(InputError, match=r"'\.xlsx'\. Known endings: \.csv, \.tsv, \.parquet, \.sav, \.dta\."):
        write_codes(tmp_path / "copy.xlsx", ("K",), np.zeros((1, 1), int), [("x",)])


@pytest.mark.parametrize("suffix", STATISTICAL)
def test_what_the_program_refuses_is_told_without_records(tmp_path: Path, suffix: str) -> None:
    pyreadstat()
    with pytest.raises(InputError, match="cannot be written as a file of S") as error:
        write_codes(tmp_path / f"copy{suffix}", ("Ermintrude's age",), np.zeros((1, 1), int), [("Ermintrude",)])
    assert "Ermintrude" not in str(error.value)
    assert error.value.__context__ is None


def test_a_disk_that_refuses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Parquet file cannot be written"):
        write_codes(tmp_path / "absent" / "copy.parquet", ("K",), np.zeros((1, 1), int), [("x",)])
    with pytest.raises(OSError, match="absent"):
        write_codes(tmp_path / "absent" / "copy.csv", ("K",), np.zeros((1, 1), int), [("x",)])
