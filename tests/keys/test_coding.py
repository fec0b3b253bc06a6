"""From columns to keys: order of levels, missing values, codebooks, recodes, and what is refused or doubted."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from keyhole.errors import DoubtfulKeys, InvalidKeys, InvalidRules, UnknownKeyVariable
from keyhole.io import Microdata, read
from keyhole.keys import DROPPED, Recode, code_keys
from keyhole.table.tabulate import tabulate


def frame(**columns: Sequence[Any]) -> Microdata:
    return read(pl.DataFrame({name: pl.Series(values, strict=False) for name, values in columns.items()}))


def levels(values: Sequence[Any], **options: Any) -> tuple[str, ...]:
    return code_keys(frame(K=values), ["K"], **options)[0].variable.levels


def counts(data: Microdata, **options: Any) -> Mapping[str, int]:
    table = tabulate(data, code_keys(data, ["K"], **options))
    return {table.keys[0].levels[code]: count for (code,), count in zip(table.cells, table.counts, strict=True)}


def test_order_of_levels() -> None:
    assert levels([10, 9, 100, 9]) == ("9", "10", "100")
    assert levels(["b", "a", "B", "ä"]) == ("B", "a", "b", "ä")
    assert levels(["10", "9", "x", "-1.5", "09"]) == ("-1.5", "09", "9", "10", "x")


def test_missing_is_the_last_level_or_dropped() -> None:
    assert levels(["z", None, "a"]) == ("a", "z", "(missing)")
    assert levels(["z", "", "a"]) == ("a", "z", "(missing)")
    (coding,) = code_keys(frame(K=["z", None, "a"]), ["K"], missing="drop")
    assert coding.variable.levels == ("a", "z")
    assert coding.drops
    assert sorted(coding.codes.values()) == [DROPPED, 0, 1]


def test_codebook_gives_levels_that_nobody_has() -> None:
    book = {"K": ("male", "other", "female"), "UNUSED": ("x",)}
    data = frame(K=["female", "male", None], UNUSED=["x", "x", "y"])
    (coding,) = code_keys(data, ["K"], codebook=book)
    assert coding.variable.levels == ("male", "other", "female", "(missing)")


def test_codebook_must_know_every_label() -> None:
    with pytest.raises(
        InvalidRules, match=r"lists 1 labels of 'K', but 2 records of the data frame have 1 others"
    ) as e:
        levels(["a", "Ermintrude", "Ermintrude"], codebook={"K": ("a",)})
    assert "Ermintrude" not in str(e.value)


def test_recoded_levels_stand_where_the_first_stood() -> None:
    recodes = {"K": Recode(bands=(0, 15, 65))}
    assert levels([70, 3, 20, 14, 66, None], recodes=recodes) == ("0-14", "15-64", "65+", "(missing)")
    assert counts(frame(K=[70, 3, 20, 14, 66, None]), recodes=recodes) == {
        "0-14": 2, "15-64": 1, "65+": 2, "(missing)": 1,
    }  # fmt: skip


def test_recoding_acts_on_the_levels_of_the_codebook() -> None:
    book = {"K": tuple(map(str, range(100)))}
    assert levels([3, 14, 20, 21], codebook=book, recodes={"K": Recode(bands=(0, 15, 65))}) == (
        "0-14",
        "15-64",
        "65+",
    )


def test_labels_may_be_made_missing_and_missing_a_label() -> None:
    to_missing = {"K": Recode(groups={"(missing)": ("NA",)})}
    assert counts(frame(K=["a", "NA", None, "b"]), recodes=to_missing) == {"a": 1, "b": 1, "(missing)": 2}
    assert counts(frame(K=["a", "NA", None, "b"]), recodes=to_missing, missing="drop") == {"a": 1, "b": 1}
    from_missing = {"K": Recode(groups={"other": ("(missing)", "b")})}
    assert counts(frame(K=["a", "c", None, "b"]), recodes=from_missing) == {"a": 1, "other": 2, "c": 1}
    assert counts(frame(K=["a", "c", None, "b"]), recodes={"K": Recode(groups={"z": ("(missing)",)})}) == {
        "a": 1, "b": 1, "c": 1, "z": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("recode", "says"),
    [
        (Recode(groups={"new": ("absent", "a")}), "1 labels in 'groups' are found neither in .*: 'absent'"),
        (Recode(bands=(0, 15)), "none of the 2 labels"),
        (Recode(top=85), "none of the 2 labels"),
    ],
)
def test_recodes_that_do_not_fit(recode: Recode, says: str) -> None:
    with pytest.raises(InvalidRules, match=says):
        levels(["a", "b"], recodes={"K": recode})


def test_numbers_below_the_first_band() -> None:
    with pytest.raises(InvalidRules, match="2 levels are below the first band, which begins at 10"):
        levels([3, 4, 40], recodes={"K": Recode(bands=(10, 20))})


def test_rules_for_columns_that_are_not_there() -> None:
    with pytest.raises(InvalidRules, match=r"recode file .* 1 columns .* 'k'\. Closest columns: K"):
        levels(["a", "b"], recodes={"k": Recode(top=1)})
    with pytest.raises(InvalidRules, match="codebook"):
        levels(["a", "b"], codebook={"QQQ": ("a",)})


def test_unknown_keys_are_answered_with_the_closest() -> None:
    data = frame(AGE=[1, 2], SEX=[1, 2], REGION=[1, 2])
    for name, near in [("age", "AGE"), ("Regoin", "REGION"), ("sex ", "SEX")]:
        with pytest.raises(UnknownKeyVariable, match=f"Closest columns: {near}"):
            code_keys(data, [name])
    with pytest.raises(UnknownKeyVariable, match="Its 3 columns are: AGE, SEX, REGION"):
        code_keys(data, ["zzz"])


def test_keys_that_cannot_serve() -> None:
    data = frame(AGE=[1, 2], SEX=[1, None])
    with pytest.raises(InvalidKeys, match="No key"):
        code_keys(data, [])
    with pytest.raises(InvalidKeys, match="'AGE'"):
        code_keys(data, ["AGE", "SEX", "AGE"])
    with pytest.raises(InvalidKeys, match="missing in all 2 records"):
        code_keys(frame(K=pl.Series([None, None], dtype=pl.String)), ["K"], missing="drop")


def test_too_many_values_to_be_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyhole.io.microdata.MOST_LEVELS", 50)
    with pytest.raises(
        InvalidKeys, match=r"Column 'ID' of the data frame has more than 50 different values among 99"
    ):
        code_keys(frame(SEX=["f"] * 99, ID=range(99)), ["SEX", "ID"])


def test_one_level_is_doubtful() -> None:
    with pytest.warns(DoubtfulKeys, match="'K' has one level"):
        levels(["a", "a"])


@pytest.mark.parametrize(
    ("values", "doubtful"),
    [
        (np.arange(1000) % 100, False),  # age in a small survey
        (np.arange(400) % 100, True),  # age, but four people a year
        (np.arange(15), False),  # a toy
        (np.arange(30), True),
        (np.arange(6000) % 1001, True),
        (np.random.default_rng(1).normal(size=200), True),
    ],
)
def test_continuous_keys_are_doubtful(values: Any, doubtful: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        levels(values.tolist())
    assert [("continuous" in str(w.message)) for w in caught] == [True] * doubtful


def test_identifiers_are_doubtful() -> None:
    with pytest.warns(DoubtfulKeys, match="identifier"):
        levels([f"person {i}" for i in range(40)])


@pytest.mark.parametrize("label", ["NA", "N/A", ".", "null", "NaN", "nan", "n/a"])
def test_labels_that_look_like_missing(label: str) -> None:
    with pytest.warns(DoubtfulKeys, match=r"1 levels that look like missing values: .* \(2 records\)"):
        levels(["a", label, label, None])
