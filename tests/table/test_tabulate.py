"""Tables of records against plain counting: every way a value is looked up, many words, weights."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.errors import InvalidKeys, InvalidPopulation, UnknownKeyVariable
from keyhole.io import read
from keyhole.keys import Recode, code_keys
from keyhole.table.contingency import ContingencyTable
from keyhole.table.tabulate import cells_of_records, tabulate

pytestmark = pytest.mark.filterwarnings("ignore::keyhole.errors.DoubtfulKeys")


def check(frame: pl.DataFrame, source: Any, **options: Any) -> ContingencyTable:
    """Tabulate all columns and compare with counting in Python."""
    data = read(source)
    codings = code_keys(data, frame.columns, **options)
    table = tabulate(data, codings)
    rows = [
        tuple("(missing)" if value is None or value == "" else str(value) for value in row) for row in frame.rows()
    ]
    drop = options.get("missing") == "drop"
    kept = [row for row in rows if not (drop and "(missing)" in row)]
    labels = [
        tuple(key.levels[code] for key, code in zip(table.keys, row, strict=True)) for row in table.cells.tolist()
    ]
    assert Counter(dict(zip(labels, table.counts.tolist(), strict=True))) == Counter(kept)
    assert [tuple(row) for row in table.cells.tolist()] == sorted({tuple(row) for row in table.cells.tolist()})
    place = cells_of_records(data, codings, table)
    assert place.dtype == np.int64
    assert [None if cell < 0 else labels[cell] for cell in place] == [
        None if drop and "(missing)" in row else row for row in rows
    ]
    return table


RNG = np.random.default_rng(11)
KINDS: dict[str, list[object]] = {
    "small": RNG.integers(-3, 4, 900).tolist(),
    "gaps": RNG.choice([1, 1000, None], 900).tolist(),
    "wide": RNG.integers(0, 500, 900).tolist(),
    "far": RNG.choice([10**17 * k for k in range(-40, 41)], 900).tolist(),
    "many far": (RNG.integers(0, 400, 900) * 10**15).tolist(),
    "texts": RNG.choice(["a", "it's", "ü", "", None], 900).tolist(),
    "many texts": [f"town {i}" if i else None for i in RNG.integers(0, 600, 900)],
    "flag": RNG.choice([0, 1], 900).tolist(),
}


@pytest.mark.parametrize("missing", ["level", "drop"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["parquet", "csv", "frame"])
def test_every_way_to_look_up_a_value(tmp_path: Path, kind: str, ending: str, missing: str) -> None:
    frame = pl.DataFrame({"K": KINDS[kind], "L": KINDS["small"]})
    path = tmp_path / f"survey.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    elif ending == "csv":
        frame.write_csv(path)
    check(frame, frame if ending == "frame" else path, missing=missing)


@pytest.mark.parametrize("missing", ["level", "drop"])
def test_more_cells_than_one_word_holds(missing: str) -> None:
    names = [f"K{j}" for j in range(24)]
    values = RNG.integers(0, 12, (400, 24))
    values[200:] = values[:200]
    frame = pl.DataFrame(values, schema=names).with_columns(
        K3=pl.when(pl.col("K3") > 10).then(None).otherwise("K3")
    )
    table = check(frame, frame, missing=missing)
    assert table.size > 2**64
    assert len(table.packing.words) > 1


def test_recodes_and_codebook_reach_the_table() -> None:
    data = read(pl.DataFrame({"AGE": [3, 70, 71, 20], "SEX": ["f", "m", "m", "f"]}))
    codings = code_keys(
        data, ["AGE", "SEX"], recodes={"AGE": Recode(bands=(0, 65))}, codebook={"SEX": ("x", "m", "f")}
    )
    table = tabulate(data, codings)
    assert table.cells.tolist() == [[0, 2], [1, 1]]
    assert table.counts.tolist() == [2, 2]
    assert cells_of_records(data, codings, table).tolist() == [0, 1, 1, 0]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.tuples(*[st.none() | st.text(max_size=2) | st.sampled_from("abc")] * width), min_size=1, max_size=30
        )
    ),
    st.sampled_from(["level", "drop"]),
)
def test_any_frame(rows: list[tuple[str | None, ...]], missing: str) -> None:
    schema = {f"K{j}": pl.String for j in range(len(rows[0]))}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if missing == "drop" and not any(all(row) for row in rows):
        with pytest.raises(InvalidKeys):
            check(frame, frame, missing=missing)
    else:
        check(frame, frame, missing=missing)


def test_no_records_left() -> None:
    data = read(pl.DataFrame({"A": ["x", None], "B": [None, "y"]}))
    with pytest.raises(InvalidKeys, match="No records are left: all 2 records"):
        tabulate(data, code_keys(data, ["A", "B"], missing="drop"))


@pytest.mark.parametrize("ending", ["parquet", "csv", "frame"])
def test_weights_add_up_in_each_cell(tmp_path: Path, ending: str) -> None:
    weight = RNG.gamma(2.0, 50.0, 900)
    frame = pl.DataFrame({"K": KINDS["small"], "T": KINDS["texts"], "W": weight})
    path = tmp_path / f"survey.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    elif ending == "csv":
        frame.write_csv(path)
    data = read(frame if ending == "frame" else path)
    codings = code_keys(data, ["K", "T"])
    table = tabulate(data, codings, weights="W")
    expected = np.bincount(cells_of_records(data, codings, table), weight)
    assert table.weights is not None
    np.testing.assert_allclose(table.weights, expected, rtol=1e-12)
    assert table.counts.sum() == 900


def test_the_weights_may_be_a_key_too() -> None:
    data = read(pl.DataFrame({"W": [2, 2, 3]}))
    table = tabulate(data, code_keys(data, ["W"]), weights="W")
    assert table.weights is not None
    assert table.weights.tolist() == [4.0, 3.0]


@pytest.mark.parametrize("ending", ["parquet", "csv", "frame"])
@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([1.5, float("nan"), 2.0], "1 are missing"),
        ([1.5, None, None], "2 are missing"),
        ([1.5, float("inf"), 2.0], "1 are not finite numbers"),
        ([1.5, -1.0, 0.0], "2 are zero or negative"),
        (["1.5", "heavy", "2"], "1 are not finite numbers"),
    ],
)
def test_weights_that_cannot_be_right(tmp_path: Path, ending: str, weights: list[object], says: str) -> None:
    frame = pl.DataFrame({"K": ["a", "b", "b"], "W": weights})
    path = tmp_path / f"survey.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    elif ending == "csv":
        frame.write_csv(path)
        says = says if "NaN" not in path.read_text() else "1 are missing"
    data = read(frame if ending == "frame" else path)
    with pytest.raises(InvalidPopulation, match=f"of 3 weights {says}") as error:
        tabulate(data, code_keys(data, ["K"]), weights="W")
    assert "heavy" not in str(error.value)


def test_weights_that_are_not_there() -> None:
    data = read(pl.DataFrame({"K": ["a", "b"], "WEIGHT": [1, 2]}))
    with pytest.raises(UnknownKeyVariable, match=r"'weights' are not a column .* Closest columns: WEIGHT"):
        tabulate(data, code_keys(data, ["K"]), weights="weights")
