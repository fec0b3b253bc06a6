from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.errors import InvalidKeys, UnknownKeyVariable
from keyhole.keys.variable import KeyVariable
from keyhole.table.contingency import ContingencyTable

from .brute_force import EXAMPLES, named_keys


@st.composite
def coded_records(draw):
    """Records of few keys, or of many whose table is far beyond 2^63 cells."""
    sizes = draw(st.one_of(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.just([10] * 30))).copy()
    row = st.tuples(*(st.integers(0, min(size, 3) - 1) for size in sizes))
    few = draw(st.lists(row, min_size=1, max_size=6))
    rows = draw(st.lists(st.sampled_from(few), max_size=25))
    return tuple(sizes), np.array(rows, dtype=np.int64).reshape(len(rows), len(sizes))


def as_dictionary(table):
    return {tuple(cell): count for cell, count in zip(table.cells.tolist(), table.counts.tolist(), strict=True)}


@EXAMPLES
@given(coded_records())
def test_counts_are_those_of_a_plain_dictionary(case):
    sizes, codes = case
    table = ContingencyTable.from_codes(named_keys(sizes), codes)
    assert as_dictionary(table) == Counter(map(tuple, codes.tolist()))
    assert table.cells.tolist() == sorted(table.cells.tolist())
    assert table.records == len(codes)
    assert table.occupied == len(table.cells)
    assert table.uniques.tolist() == [i for i, count in enumerate(table.counts.tolist()) if count == 1]


@EXAMPLES
@given(coded_records(), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(case, random):
    sizes, codes = case
    shuffled = codes.tolist()
    random.shuffle(shuffled)
    table = ContingencyTable.from_codes(named_keys(sizes), codes)
    other = ContingencyTable.from_codes(named_keys(sizes), np.array(shuffled, dtype=np.int64).reshape(codes.shape))
    assert np.array_equal(table.cells, other.cells)
    assert np.array_equal(table.counts, other.counts)


@EXAMPLES
@given(coded_records(), st.data())
def test_margins_of_any_order_are_those_of_a_plain_dictionary(case, data):
    sizes, codes = case
    table = ContingencyTable.from_codes(named_keys(sizes), codes)
    kept = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True))
    margin = table.margin([f"K{j}" for j in kept])
    assert as_dictionary(margin) == Counter(map(tuple, codes[:, kept].tolist()))
    assert [key.name for key in margin.keys] == [f"K{j}" for j in kept]


@EXAMPLES
@given(coded_records(), st.data())
def test_cells_are_found_where_they_are(case, data):
    sizes, codes = case
    table = ContingencyTable.from_codes(named_keys(sizes), codes)
    others = data.draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), max_size=5))
    wanted = [*map(tuple, codes.tolist()), *others]
    position = {tuple(cell): i for i, cell in enumerate(table.cells.tolist())}
    found = table.find(np.array(wanted, dtype=np.int64).reshape(len(wanted), len(sizes)))
    assert found.tolist() == [position.get(cell, -1) for cell in wanted]


@EXAMPLES
@given(coded_records(), st.data())
def test_rows_may_stand_for_several_records_and_weigh_differently(case, data):
    sizes, codes = case
    counts = data.draw(st.lists(st.integers(1, 2**40), min_size=len(codes), max_size=len(codes)))
    weights = data.draw(st.lists(st.floats(0.1, 1e6), min_size=len(codes), max_size=len(codes)))
    expected, heavy = Counter(), defaultdict(float)
    for row, count, weight in zip(map(tuple, codes.tolist()), counts, weights, strict=True):
        expected[row] += count
        heavy[row] += weight
    table = ContingencyTable.from_codes(
        named_keys(sizes), codes, np.array(counts, dtype=np.int64), np.array(weights, dtype=np.float64)
    )
    assert as_dictionary(table) == expected
    assert table.weights == pytest.approx([heavy[tuple(cell)] for cell in table.cells.tolist()])
    first = table.margin(["K0"])
    assert first.weights.sum() == pytest.approx(sum(weights))
    assert first.records == sum(counts)


def test_a_large_table_is_counted_exactly():
    rng = np.random.default_rng(3)
    codes = np.minimum(rng.geometric(0.7, (20_000, 30)) - 1, 9).astype(np.int8)
    table = ContingencyTable.from_codes(named_keys((10,) * 30), codes)
    assert table.size == 10**30
    assert as_dictionary(table) == Counter(map(tuple, codes.tolist()))
    assert np.array_equal(table.cells[table.find(codes)], codes)
    assert table.cells.dtype == np.int8


def test_a_table_without_records():
    table = ContingencyTable.from_codes(named_keys((2, 3)), np.empty((0, 2), dtype=np.int8))
    assert (table.occupied, table.records, table.size) == (0, 0, 6)
    assert table.uniques.tolist() == []
    assert table.size_index.occupied == 0
    assert table.margin(["K1"]).occupied == 0
    assert table.find(np.array([[1, 2]])).tolist() == [-1]
    far = ContingencyTable.from_codes(named_keys((10,) * 30), np.empty((0, 30), dtype=np.int8))
    assert far.find(np.zeros((2, 30), dtype=np.int8)).tolist() == [-1, -1]


def test_the_margin_of_no_keys_is_everybody():
    table = ContingencyTable.from_codes(named_keys((2, 3)), np.array([[0, 1], [1, 1], [1, 1]]))
    everybody = table.margin([])
    assert (everybody.size, everybody.counts.tolist()) == (1, [3])


def test_a_key_with_a_million_levels():
    levels = 1_000_000
    keys = (KeyVariable("PLACE", tuple(map(str, range(levels)))), KeyVariable("SEX", ("f", "m")))
    codes = np.array([[levels - 1, 1], [0, 0], [levels - 1, 1]])
    table = ContingencyTable.from_codes(keys, codes)
    assert table.cells.tolist() == [[0, 0], [levels - 1, 1]]
    assert table.cells.dtype == np.int32
    assert table.counts.tolist() == [1, 2]


def test_margins_name_keys_of_the_table_once():
    table = ContingencyTable.from_codes(named_keys((2, 3)), np.array([[0, 1]]))
    with pytest.raises(UnknownKeyVariable, match="AGE not among the keys of the table: K0, K1"):
        table.margin(["K0", "AGE"])
    with pytest.raises(InvalidKeys, match="each key once"):
        table.margin(["K0", "K0"])
