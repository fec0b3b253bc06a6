"""The ranking of columns against plain counting."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

from keyhole.errors import UnknownKeyVariable
from keyhole.io import read
from keyhole.keys import rank_columns


def uniques(*columns: list[object]) -> int:
    return sum(count == 1 for count in Counter(zip(*columns, strict=True)).values())


@pytest.fixture(scope="module")
def columns() -> dict[str, list[object]]:
    rng = np.random.default_rng(7)
    made = {f"C{size}": rng.integers(0, size, 500).tolist() for size in (2, 5, 40, 300, 3000)}
    return {**made, "T": rng.choice(["a", "b", None], 500).tolist(), **{f"W{i}": [i] * 500 for i in range(40)}}


def test_alone(columns: dict[str, list[object]]) -> None:
    ranks = rank_columns(read(pl.DataFrame(columns)))
    assert {rank.name: (rank.levels, rank.uniques) for rank in ranks} == {
        name: (len(set(values)), uniques(values)) for name, values in columns.items()
    }
    gained = [rank.uniques_gained for rank in ranks]
    assert gained == sorted(gained, reverse=True)
    assert ranks[0].name == "C3000"


def test_added_to_keys(columns: dict[str, list[object]]) -> None:
    given = ["C5", "T"]
    before = uniques(columns["C5"], columns["T"])
    ranks = rank_columns(read(pl.DataFrame(columns)), given=given)
    assert {rank.name: rank.uniques_gained for rank in ranks} == {
        name: uniques(columns["C5"], columns["T"], values) - before
        for name, values in columns.items()
        if name not in given
    }


def test_chosen_columns_and_columns_that_cannot_be_keys(tmp_path) -> None:
    path = tmp_path / "survey.parquet"
    pl.DataFrame({"A": [1, 2], "L": [[1], [2]], "B": ["x", "x"]}).write_parquet(path)
    data = read(path)
    assert [rank.name for rank in rank_columns(data)] == ["A", "B"]
    assert [rank.name for rank in rank_columns(data, columns=["B"])] == ["B"]
    with pytest.raises(UnknownKeyVariable):
        rank_columns(data, given=["C"])
