"""Every format round trip: the same records, written by others, give the same table."""

import sqlite3
import warnings
from collections import Counter
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from keyhole.errors import InvalidKeys, MissingExtra, UnreadableData
from keyhole.io import read
from keyhole.io.coded import distinct_labels
from tests.io.tables import NAMES, ROWS, labelled_cells, labelled_records

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.errors.DoubtfulKeys")

COLUMNS = {name: [row[j] for row in ROWS] for j, name in enumerate(NAMES)}
NUMBERED = {**COLUMNS, "AGE": [None if age is None else int(age) for age in COLUMNS["AGE"]]}
FRAMES = {
    "pandas": pd.DataFrame(NUMBERED),
    "pandas nullable": pd.DataFrame(NUMBERED).convert_dtypes(),
    "pandas category": pd.DataFrame(COLUMNS).astype("category"),
    "polars": pl.DataFrame(NUMBERED),
    "polars lazy": pl.LazyFrame(NUMBERED),
    "polars category": pl.DataFrame(COLUMNS).with_columns(pl.all().cast(pl.Categorical)),
    "arrow": pa.table(NUMBERED),
    "arrow dictionary": pa.table({name: pa.array(c).dictionary_encode() for name, c in COLUMNS.items()}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind: str) -> None:
    data = read(FRAMES[kind])
    assert data.columns == NAMES
    assert data.records == len(ROWS)
    assert labelled_cells(data) == Counter(ROWS)
    assert labelled_records(data) == list(ROWS)


def test_ordered_categories_keep_their_order() -> None:
    from keyhole.keys import code_keys

    sizes = ["small", "large", "medium", "large"]
    ordered = ["small", "medium", "large", "huge"]
    for frame in (
        pd.DataFrame({"S": pd.Categorical(sizes, ordered, ordered=True)}),
        pl.DataFrame({"S": pl.Series(sizes, dtype=pl.Enum(ordered))}),
    ):
        assert code_keys(read(frame), ["S"])[0].variable.levels == ("small", "medium", "large")


@pytest.mark.parametrize("writer", ["polars", "pandas", "duckdb"])
def test_parquet(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "survey.parquet"
    if writer == "polars":
        pl.DataFrame(NUMBERED).write_parquet(path)
    elif writer == "pandas":  # whole numbers with gaps become fractions
        pd.DataFrame(NUMBERED).to_parquet(path)
    else:
        frame = pl.DataFrame(NUMBERED)
        duckdb.sql("SELECT * FROM frame").write_parquet(str(path))
        assert frame.height
    data = read(path)
    assert data.columns == NAMES
    assert labelled_cells(data) == Counter(ROWS)
    assert labelled_records(data) == list(ROWS)


def test_types_of_parquet(tmp_path: Path) -> None:
    from datetime import date

    path = tmp_path / "types.parquet"
    table = pa.table(
        {
            "flag": pa.array([True, False, None]),
            "half": pa.array([0.5, 3.0, float("nan")]),
            "day": pa.array([date(2020, 2, 29), date(1999, 1, 1), None]),
            "exact": pa.array([Decimal("1.50"), Decimal("3.00"), None]),
            "big": pa.array([2**63 + 1, 5, None], pa.uint64()),
            "far": pa.array([-(2**62), 2**62, None]),
            "bytes": pa.array([b"x", b"y", None]),
            "empty": pa.array(["", "x", None]),
            "list": pa.array([[1], [2], None]),
            "Case": pa.array(["a", "b", "a"]),
        }
    )
    pl.from_arrow(table).write_parquet(path)  # type: ignore[union-attr]
    data = read(path)
    shown = {name: [row[0] for row in labelled_records(data, [name])] for name in data.columns if name != "list"}
    assert shown == {
        "flag": ["true", "false", None],
        "half": ["0.5", "3", None],
        "day": ["2020-02-29", "1999-01-01", None],
        "exact": ["1.50", "3", None],
        "big": [str(2**63 + 1), "5", None],
        "far": [str(-(2**62)), str(2**62), None],
        "bytes": ["x", "y", None],
        "empty": [None, "x", None],
        "Case": ["a", "b", "a"],
    }
    with pytest.raises(InvalidKeys, match=r"'list' of types\.parquet"):
        labelled_cells(data, ["list"])


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_zero_is_one_level_whatever_its_sign(tmp_path: Path, kind: pa.DataType) -> None:
    values = pa.table({"x": pa.array([0.0, -0.0, 0.5, 0.1, None], kind)})
    pq.write_table(values, tmp_path / "zeros.parquet")
    with duckdb.connect(str(tmp_path / "zeros.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM values")
    expected = [("0",), ("0",), ("0.5",), ("0.1",), (None,)]
    for data in (
        read(tmp_path / "zeros.parquet"),
        read(tmp_path / "zeros.duckdb", table="t"),
        read(values),
        read(pl.from_arrow(values)),
        read(values.to_pandas()),
    ):
        assert labelled_records(data, ["x"]) == expected


def test_decimals_read_alike(tmp_path: Path) -> None:
    values = pa.table({"x": pa.array([Decimal("1.00"), Decimal("2.50"), None])})
    pq.write_table(values, tmp_path / "exact.parquet")
    for source in (tmp_path / "exact.parquet", values, pl.from_arrow(values), values.to_pandas()):
        assert labelled_records(read(source), ["x"]) == [("1",), ("2.50",), (None,)]


def test_a_column_without_any_value_is_missing(tmp_path: Path) -> None:
    values = pa.table({"x": pa.nulls(2), "y": ["a", "b"]})
    pq.write_table(values, tmp_path / "null.parquet")
    for source in (tmp_path / "null.parquet", values, pl.from_arrow(values), values.to_pandas()):
        assert labelled_records(read(source), ["x", "y"]) == [(None, "a"), (None, "b")]


def test_enum_of_duckdb_keeps_its_order(tmp_path: Path) -> None:
    from keyhole.keys import code_keys

    path = tmp_path / "study.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TYPE size AS ENUM ('small', 'it''s medium', '', 'large', 'huge')")
        connection.execute("CREATE TABLE t (s size)")
        connection.execute("INSERT INTO t VALUES ('large'), ('small'), (NULL), ('it''s medium'), ('')")
    data = read(path, table="t")
    assert code_keys(data, ["s"])[0].variable.levels == ("small", "it's medium", "large", "(missing)")
    assert labelled_records(data, ["s"]) == [("large",), ("small",), (None,), ("it's medium",), (None,)]


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"x": pa.array([[("Ermintrude", 1)], None], pa.map_(pa.string(), pa.int64())), "y": [1, 2]}),
        pd.DataFrame({"x": [["Ermintrude"], [2]], "y": [1, 2]}),
        pd.DataFrame({"x": [{"Ermintrude": 1}, None], "y": [1, 2]}),
        pd.DataFrame({"x": [np.array([1, 2]), np.array([3])], "y": [1, 2]}),
        pl.DataFrame({"x": [["Ermintrude"], ["b"]], "y": [1, 2]}),
        pl.DataFrame({"x": [{"a": "Ermintrude"}, {"a": "b"}], "y": [1, 2]}),
    ],
)
def test_nested_columns_are_refused(frame) -> None:
    data = read(frame)
    with pytest.raises(InvalidKeys, match="Column 'x' of the data frame holds lists") as error:
        labelled_cells(data, ["x"])
    assert "Ermintrude" not in str(error.value)
    assert error.value.__context__ is None
    assert labelled_cells(data, ["y"]) == Counter([("1",), ("2",)])


def test_frames_with_one_name_twice_are_refused() -> None:
    with pytest.raises(UnreadableData, match="more than once"):
        read(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(UnreadableData, match="more than once"):
        read(pa.table([[1], [2]], names=["a", "a"]))


@pytest.mark.parametrize("ending", ["sav", "dta", "parquet", "duckdb", "xlsx"])
def test_only_text_may_be_compressed(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"survey.{ending}.gz"
    path.write_bytes(b"content")
    with pytest.raises(UnreadableData, match="decompress it first"):
        read(path)


def test_the_limit_of_levels_is_that_of_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyhole.io.microdata.MOST_LEVELS", 100)
    data = read(pl.DataFrame({**{f"c{j}": range(90) for j in range(4)}}))
    assert {len(levels) for levels in data.levels(data.columns).values()} == {90}
    data = read(pl.DataFrame({"a": [1] * 120, "b": range(120), "c": [2] * 120}))
    with pytest.raises(InvalidKeys, match="Column 'b' of the data frame has more than 100 different values"):
        data.levels(["a", "b", "c"])


@pytest.mark.parametrize("name", ["a#b.sqlite", "a?b.sqlite", "a%20b.sqlite", "a b.sqlite"])
def test_sqlite_files_with_strange_names(tmp_path: Path, name: str) -> None:
    connection = sqlite3.connect(tmp_path / name)
    connection.execute("CREATE TABLE t (x TEXT)")
    connection.execute("INSERT INTO t VALUES ('me')")
    connection.commit()
    connection.close()
    assert labelled_records(read(tmp_path / name, table="t"), ["x"]) == [("me",)]


@pytest.mark.parametrize("name", ["survey.parquet", "survey.sav", "survey.dta", "survey.sas7bdat"])
@pytest.mark.parametrize("content", [b"PAR1 this is not Ermintrude's file PAR1", bytes(range(256)) * 9])
def test_damaged_files(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnreadableData, match=name) as error:
        read(path)
    assert "Ermintrude" not in str(error.value)
    context = error.value.__context__
    assert context is None or (isinstance(context, UnreadableData) and context.__context__ is None)


def test_no_records(tmp_path: Path) -> None:
    path = tmp_path / "survey.parquet"
    pl.DataFrame({"a": pl.Series([], dtype=pl.Int8)}).write_parquet(path)
    for source in (path, pl.DataFrame({"a": []}), pd.DataFrame({"a": []}), pl.LazyFrame({"a": []})):
        with pytest.raises(UnreadableData, match="no records"):
            read(source)


LABELS = {"SEX": {1: "f", 2: "m"}, "TOWN": {1: "Aarau", 2: "Bern, west", 3: "Zürich"}}


def coded_frame() -> pd.DataFrame:
    codes = {name: {label: value for value, label in labels.items()} for name, labels in LABELS.items()}
    return pd.DataFrame(
        {
            "SEX": [codes["SEX"].get(row[0], np.nan) for row in ROWS],
            "AGE": [np.nan if row[1] is None else float(row[1]) for row in ROWS],
            "TOWN": [codes["TOWN"].get(row[2], np.nan) for row in ROWS],
        }
    )


def write(path: Path, frame: pd.DataFrame, **options) -> Path:
    writer = pyreadstat.write_dta if path.suffix == ".dta" else pyreadstat.write_sav
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas has words about the way pyreadstat looks at columns
        writer(frame, str(path), **options)
    return path


@pytest.mark.parametrize("name", ["survey.sav", "survey.dta", "survey.zsav"])
def test_value_labels(tmp_path: Path, name: str) -> None:
    options = {"compress": True} if name.endswith("zsav") else {}
    data = read(write(tmp_path / name, coded_frame(), variable_value_labels=LABELS, **options))
    assert data.columns == NAMES
    assert data.records == len(ROWS)
    assert labelled_cells(data) == Counter(ROWS)
    assert labelled_records(data) == list(ROWS)


def test_two_values_with_one_label_stay_apart(tmp_path: Path) -> None:
    from keyhole.keys import code_keys

    frame = pd.DataFrame({"WORK": [8.0, 9.0, 3.0, 2.5, 1.0]})
    labels = {"WORK": {8: "other", 9: "other", 1: "zero hours"}}
    data = read(write(tmp_path / "survey.sav", frame, variable_value_labels=labels))
    # In the order of the values; those without a label are their own.
    assert code_keys(data, ["WORK"])[0].variable.levels == ("zero hours", "2.5", "3", "other (8)", "other (9)")


def test_labels_that_look_like_made_ones() -> None:
    labels = distinct_labels([8.0, 9.0, 10.0], {8.0: "other", 9.0: "other", 10.0: "other (8)"})
    assert labels == ("other (8)", "other (9)", "other (8) (10)")


def test_user_missing_values_are_missing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"AGE": [31.0, 99.0, 98.0, 7.0], "NAME": ["x", "zz", "", "y"]})
    ranges = {"AGE": [{"lo": 98, "hi": 99}], "NAME": ["zz"]}
    data = read(write(tmp_path / "survey.sav", frame, missing_ranges=ranges))
    assert labelled_records(data, ["AGE", "NAME"]) == [("31", "x"), (None, None), (None, None), ("7", "y")]


def test_stata_missing_letters(tmp_path: Path) -> None:
    frame = pd.DataFrame({"AGE": [31, "a", 7]}, dtype=object)
    data = read(write(tmp_path / "survey.dta", frame, missing_user_values={"AGE": ["a"]}))
    assert labelled_records(data, ["AGE"]) == [("31",), (None,), ("7",)]


def test_only_the_asked_columns_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "survey.sav", coded_frame())
    asked: list[list[str] | None] = []
    reader = pyreadstat.read_sav

    def watched(*args, **options):
        asked.append(options.get("usecols"))
        assert options.get("metadataonly") or options.get("usecols")
        return reader(*args, **options)

    monkeypatch.setattr(pyreadstat, "read_sav", watched)
    labelled_cells(read(path), ["SEX", "AGE"])
    assert asked == [None, ["SEX", "AGE"]]


def test_statistical_files_are_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "survey.sav", coded_frame(), variable_value_labels=LABELS)
    monkeypatch.setattr("keyhole.io.statistical.AT_ONCE", 6)
    assert labelled_records(read(path)) == list(ROWS)


def test_sas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program but SAS writes sas7bdat, and no small real file ships with the packages used here: the reader of
    pyreadstat is replaced by one that answers in its form, with labels from the catalog beside the file."""
    path = tmp_path / "survey.sas7bdat"
    path.write_bytes(b"SAS")
    path.with_suffix(".sas7bcat").write_bytes(b"catalog")
    frame = coded_frame()

    def read_sas7bdat(filename, *, metadataonly=False, usecols=None, row_offset=0, row_limit=0, **options):
        assert filename == str(path)
        assert options == {"output_format": "dict", "catalog_file": str(path.with_suffix(".sas7bcat"))}
        end = row_offset + row_limit if row_limit else None
        chosen = {n: frame[n].iloc[row_offset:end].tolist() for n in usecols or frame.columns}
        meta = SimpleNamespace(column_names=list(frame), number_rows=None, variable_value_labels=LABELS)
        return ({} if metadataonly else chosen), meta

    monkeypatch.setattr(pyreadstat, "read_sas7bdat", read_sas7bdat)
    data = read(path)
    assert data.records == len(ROWS)
    assert labelled_records(data) == list(ROWS)


@pytest.mark.parametrize("address", ["{path}", "duckdb:///{path}"])
@pytest.mark.parametrize("table", ["survey", "main.survey"])
def test_duckdb(tmp_path: Path, address: str, table: str) -> None:
    path = tmp_path / "study.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE survey (SEX VARCHAR, AGE INTEGER, TOWN VARCHAR)")
        connection.executemany("INSERT INTO survey VALUES (?, ?, ?)", [list(row) for row in ROWS])
    before = path.read_bytes()
    data = read(address.format(path=path), table=table)
    assert data.columns == NAMES
    assert labelled_records(data) == list(ROWS)
    data.close()
    assert path.read_bytes() == before
    with pytest.raises(UnreadableData, match=r"table 'absent' of study\.duckdb"):
        read(path, table="absent")
    with pytest.raises(UnreadableData, match="name the table"):
        read(path)
    (tmp_path / "bad.duckdb").write_bytes(b"not a database, Ermintrude")
    with pytest.raises(UnreadableData, match=r"bad\.duckdb"):
        read(tmp_path / "bad.duckdb", table="t")


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE survey (SEX TEXT, AGE INTEGER, TOWN TEXT, W REAL)")
    connection.executemany("INSERT INTO survey VALUES (?, ?, ?, 1.5)", ROWS)
    connection.commit()
    connection.close()
    before = path.read_bytes()
    data = read(f"sqlite:///{path}", table="survey")
    assert data.columns == (*NAMES, "W")
    assert labelled_records(data) == list(ROWS)
    assert labelled_records(data, ["W", "SEX"])[0] == ("1.5", "f")
    assert path.read_bytes() == before
    with pytest.raises(UnreadableData, match="absent"):
        read(f"sqlite:///{path}", table="absent")
    with pytest.raises(UnreadableData, match="There is no file"):
        read(f"sqlite:///{path}.not", table="survey")
    assert not Path(f"{path}.not").exists()


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableData, match="There is no file"):
        read(tmp_path / "absent.csv")
    with pytest.raises(UnreadableData, match="directory"):
        read(tmp_path)
    (tmp_path / "survey.xlsx").write_bytes(b"PK")
    with pytest.raises(UnreadableData, match="ending"):
        read(tmp_path / "survey.xlsx")
    (tmp_path / "survey.csv").write_text("a\n1\n")
    with pytest.raises(UnreadableData, match="not a database"):
        read(tmp_path / "survey.csv", table="t")
    with pytest.raises(UnreadableData, match="'list'"):
        read([1, 2, 3])
    with pytest.raises(UnreadableData, match=r"^\. is a directory"):
        read(".")


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("pyreadstat", "survey.sav", "spss"),
        ("pyreadstat", "survey.dta", "stata"),
        ("pyreadstat", "survey.sas7bdat", "sas"),
        ("adbc_driver_sqlite.dbapi", "sqlite:///{}/survey.sqlite", "sqlite"),
        ("adbc_driver_postgresql.dbapi", "postgresql://user:word@localhost/x", "postgres"),
    ],
)
def test_missing_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str, extra: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    url = "://" in name
    path = Path(name.split("/")[-1])
    (tmp_path / path).write_bytes(b"content")
    with pytest.raises(MissingExtra, match=rf'pip install "keyhole\[{extra}\]"') as error:
        read(name.format(tmp_path) if url else tmp_path / name, table="t" if url else None)
    assert "word" not in str(error.value)
