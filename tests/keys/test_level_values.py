"""From levels back to the values of a file: numbers stay numbers, and what was joined stays joined."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from keyhole.errors import UnreadableData
from keyhole.io import Microdata, read
from keyhole.io.stored import StoredColumn
from keyhole.keys import MISSING, Recode, code_keys
from keyhole.keys.level_values import level_values, value_labels

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.errors.DoubtfulKeys")


def values(data: Microdata, name: str = "K", **options: Any) -> dict[str, Any]:
    (coding,) = code_keys(data, [name], **options)
    return dict(zip(coding.variable.levels, level_values(data, coding), strict=True))


def exactly(found: Mapping[str, Any]) -> dict[str, tuple[type, Any]]:
    """Values with their types: 1, 1.0 and True are equal."""
    return {level: (type(value), value) for level, value in found.items()}


def parquet(tmp_path: Path, column: list[Any], kind: Any = None) -> Microdata:
    path = tmp_path / "survey.parquet"
    pl.DataFrame({"K": pl.Series(column, dtype=kind), "OTHER": ["x"] * len(column)}).write_parquet(path)
    return read(path)


def statistical(path: Path, frame: pl.DataFrame, **options: Any) -> Microdata:
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed: no SPSS or Stata file")
    writer = pyreadstat.write_dta if path.suffix == ".dta" else pyreadstat.write_sav
    writer(frame, str(path), **options)
    return read(path)


def test_delimited_text_is_text(tmp_path: Path) -> None:
    (tmp_path / "survey.csv").write_text('K,L\n007,a\n7,\n-1,"b, c"\n,a\n2.50,a\n')
    data = read(tmp_path / "survey.csv")
    assert values(data) == {"-1": "-1", "2.50": "2.50", "007": "007", "7": "7", MISSING: None}
    assert values(data, "L") == {"a": "a", "b, c": "b, c", MISSING: None}
    (coding,) = code_keys(data, ["L"])
    assert value_labels(data, coding) is None


def test_numbers_of_parquet(tmp_path: Path) -> None:
    for column, kind, expected in (
        ([3, -5, None, 0], pl.Int8, {"-5": -5, "0": 0, "3": 3, MISSING: None}),
        ([2**63 + 1, 5], pl.UInt64, {"5": 5, str(2**63 + 1): 2**63 + 1}),
        ([2.0, None, -7.0], pl.Float64, {"-7": -7, "2": 2, MISSING: None}),
        ([2.5, 2.0, float("nan")], pl.Float64, {"2": 2, "2.5": 2.5, MISSING: None}),
        ([0.1, 1.0], pl.Float32, {"0.1": 0.1, "1": 1}),
        (
            [1e20, float("inf"), 2.0**53],
            pl.Float64,
            {"9007199254740992": 2.0**53, "1e+20": 1e20, "inf": float("inf")},
        ),
        ([Decimal("1.5"), Decimal("3.0")], pl.Decimal(5, 1), {"1.5": 1.5, "3": 3}),
        ([Decimal("1.50"), Decimal("3.00")], pl.Decimal(5, 2), {"1.50": "1.50", "3": "3"}),
        ([True, False, None], pl.Boolean, {"false": False, "true": True, MISSING: None}),
        (["007", "7", ""], pl.String, {"007": "007", "7": "7", MISSING: None}),
        ([date(2020, 2, 29), None], pl.Date, {"2020-02-29": "2020-02-29", MISSING: None}),
    ):
        found = values(parquet(tmp_path, column, kind))
        assert exactly(found) == exactly(expected)


def test_frames_and_databases_give_labels(tmp_path: Path) -> None:
    import duckdb

    assert values(read(pl.DataFrame({"K": [3, 12, None]}))) == {"3": "3", "12": "12", MISSING: None}
    with duckdb.connect(str(tmp_path / "study.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT * FROM (VALUES ('b'::ENUM('b', 'a'), 3), ('a', NULL)) v(K, L)"
        )
    data = read(tmp_path / "study.duckdb", table="t")
    assert values(data) == {"b": "b", "a": "a"}
    assert values(data, "L") == {"3": 3, MISSING: None}


def test_dropped_missing_values_have_no_level(tmp_path: Path) -> None:
    assert values(parquet(tmp_path, [4, None]), missing="drop") == {"4": 4}


def test_a_recoded_value_does_not_come_back(tmp_path: Path) -> None:
    """One person is 97 years old; who top-codes at 85 must not find that age in the file."""
    data = parquet(tmp_path, [31, 97, 31, None])
    assert values(data, recodes={"K": Recode(top=85)}) == {"31": "31", "85+": "85+", MISSING: None}
    assert values(data, recodes={"K": Recode(groups={"old": ["97"]})}) == {"31": "31", "old": "old", MISSING: None}


def test_joined_levels(tmp_path: Path) -> None:
    data = parquet(tmp_path, [1, 2, 3, None])
    assert values(data, recodes={"K": Recode(groups={"few": ["1", "2"]})}) == {
        "few": "few",
        "3": "3",
        MISSING: None,
    }
    # Labels that are numbers leave the column one of numbers.
    assert exactly(values(data, recodes={"K": Recode(groups={"1": ["1", "2"]})})) == exactly(
        {"1": 1, "3": 3, MISSING: None}
    )
    assert values(data, recodes={"K": Recode(bands=[0, 3], labels=["10", "20"])}) == {
        "10": 10,
        "20": 20,
        MISSING: None,
    }
    assert values(data, recodes={"K": Recode(groups={"9": [MISSING]})}) == {"1": 1, "2": 2, "3": 3, "9": 9}
    assert values(data, recodes={"K": Recode(groups={MISSING: ["2"]})}) == {"1": 1, "3": 3, MISSING: None}


def test_levels_of_a_codebook_that_nobody_has(tmp_path: Path) -> None:
    data = parquet(tmp_path, [1, 3])
    assert exactly(values(data, codebook={"K": ("1", "2", "3")})) == exactly({"1": 1, "2": 2, "3": 3})
    assert values(data, codebook={"K": ("1", "3", "none")}) == {"1": "1", "3": "3", "none": "none"}
    assert values(data, codebook={"K": ("1", "3", "04")}) == {"1": "1", "3": "3", "04": "04"}
    fractions = parquet(tmp_path, [1.5, 3.0])
    assert values(fractions, codebook={"K": ("1.5", "3", "4.5")}) == {"1.5": 1.5, "3": 3, "4.5": 4.5}
    # Two labels of one number: as a number, they would be one level.
    assert values(fractions, codebook={"K": ("1.5", "3", "1.50")}) == {"1.5": "1.5", "3": "3", "1.50": "1.50"}


CODED = pl.DataFrame(
    {"K": [2.0, 1.0, None, 3.0, 2.5], "T": ["M", "F", "", "M", "x"], "N": [31.0, None, 7.0, 7.0, 0.5]},
    schema={"K": pl.Float64, "T": pl.String, "N": pl.Float64},
)


@pytest.mark.parametrize("name", ["survey.sav", "survey.dta", "a [1]*.zsav"])
def test_codes_with_value_labels(tmp_path: Path, name: str) -> None:
    labels: dict[str, dict[Any, str]] = {"K": {1: "one", 2: "two, too", 4: "four"}}
    options: dict[str, Any] = {"compress": True} if name.endswith(".zsav") else {}
    if not name.endswith(".dta"):
        labels["T"] = {"M": "male", "F": "female"}
    data = statistical(tmp_path / name, CODED, variable_value_labels=labels, **options)
    found = values(data)
    assert exactly(found) == exactly({"one": 1, "two, too": 2, "2.5": 2.5, "3": 3, MISSING: None})
    (key, text, number) = code_keys(data, ["K", "T", "N"])
    assert value_labels(data, key) == labels["K"]
    assert [type(value) for value in value_labels(data, key) or {}] == [int] * 3
    assert value_labels(data, number) is None
    assert values(data, "N") == {"0.5": 0.5, "7": 7, "31": 31, MISSING: None}
    if "T" in labels:
        assert values(data, "T") == {"female": "F", "male": "M", "x": "x", MISSING: None}
        assert value_labels(data, text) == labels["T"]
    else:
        assert values(data, "T") == {"F": "F", "M": "M", "x": "x", MISSING: None}
        assert value_labels(data, text) is None


def test_recoded_codes_become_labels(tmp_path: Path) -> None:
    labels = {"K": {1: "one", 2: "two", 4: "four"}}
    data = statistical(tmp_path / "survey.sav", CODED, variable_value_labels=labels)
    recodes = {"K": Recode(groups={"small": ["one", "two"]})}
    (coding,) = code_keys(data, ["K"], recodes=recodes)
    assert level_values(data, coding) == ("small", "2.5", "3", None)
    assert value_labels(data, coding) is None
    # A label that a value has is still that value's.
    (coding,) = code_keys(data, ["K"], recodes={"K": Recode(groups={"four": ["one", "two"]})})
    assert level_values(data, coding) == (4, 2.5, 3, None)
    assert value_labels(data, coding) == labels["K"]
    # As a text that looks like a code, it would be taken for one.
    (coding,) = code_keys(data, ["K"], recodes={"K": Recode(groups={"1": ["one", "two"]})})
    assert level_values(data, coding) == ("1", "2.5", "3", None)


def test_levels_of_value_labels_that_nobody_has(tmp_path: Path) -> None:
    labels = {"K": {1: "one", 2: "two", 4: "four"}}
    data = statistical(tmp_path / "survey.dta", CODED, variable_value_labels=labels)
    book = {"K": ("one", "two", "2.5", "3", "four")}
    assert values(data, codebook=book) == {"one": 1, "two": 2, "2.5": 2.5, "3": 3, "four": 4, MISSING: None}


def test_values_that_share_a_label(tmp_path: Path) -> None:
    labels = {"K": {8: "other", 9: "other", 1: "3"}}
    both = pl.DataFrame({"K": [8.0, 9.0, 3.0, 1.0]})
    data = statistical(tmp_path / "both.sav", both, variable_value_labels=labels)
    assert values(data) == {"3 (1)": 1, "3 (3)": 3, "other (8)": 8, "other (9)": 9}
    # Only one of them occurs, and nothing tells which.
    one = statistical(tmp_path / "one.sav", pl.DataFrame({"K": [9.0, 1.0]}), variable_value_labels=labels)
    assert values(one) == {"3": "3", "other": "other"}


def test_a_label_with_two_meanings_has_no_value() -> None:
    column = StoredColumn(numeric=True, labels={8: "other", 9: "other", 10: "other (8)"})
    assert [column.value_of(label) for label in ("other (9)", "other (8) (10)", "other (8)")] == [9, 10, None]
    column = StoredColumn(numeric=True, labels={1: "3"})
    assert [column.value_of(label) for label in ("3", "1", "4", "04", "1_0", "nan", "x")] == [
        None,
        None,
        4,
        *[None] * 4,
    ]
    texts = StoredColumn(numeric=False, labels={"a (b)": "x", "c": "x", "d": "a"})
    found = [texts.value_of(label) for label in ("x (a (b))", "x (c)", "a (d)", "a (a)", "y", "")]
    assert found == ["a (b)", "c", "d", None, "y", ""]


def test_missing_letters_of_stata_are_no_values(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="a column with missing letters is made with pandas")
    import pandas as pd

    frame: Any = pd.DataFrame({"K": [31, "a", 7]}, dtype=object)
    data = statistical(
        tmp_path / "survey.dta",
        frame,
        missing_user_values={"K": ["a"]},
        variable_value_labels={"K": {"a": "refused", 7: "seven"}},
    )
    (coding,) = code_keys(data, ["K"])
    assert level_values(data, coding) == (7, 31, None)
    assert value_labels(data, coding) == {7: "seven"}


def test_dates_of_spss_are_texts(tmp_path: Path) -> None:
    data = statistical(tmp_path / "survey.sav", pl.DataFrame({"K": [date(2020, 2, 29), None]}))
    assert values(data) == {"2020-02-29": "2020-02-29", MISSING: None}


def test_very_large_numbers_of_spss(tmp_path: Path) -> None:
    data = statistical(tmp_path / "survey.sav", pl.DataFrame({"K": [1e20, 2.0**53 - 1, 0.5]}))
    assert exactly(values(data)) == exactly({"0.5": 0.5, str(2**53 - 1): 2**53 - 1, str(10**20): 1e20})


def test_a_file_that_was_replaced(tmp_path: Path) -> None:
    data = statistical(tmp_path / "survey.sav", CODED)
    (coding,) = code_keys(data, ["K"])
    statistical(tmp_path / "survey.sav", CODED.select("T"))
    with pytest.raises(UnreadableData, match=r"survey\.sav is no longer a file of SPSS"):
        level_values(data, coding)
    (tmp_path / "survey.sav").unlink()
    with pytest.raises(UnreadableData, match="changed or removed"):
        value_labels(data, coding)
