import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.table.packing import WORD, Packing, code_type, distinct_rows, rank_rows

from .brute_force import EXAMPLES

SIZES = st.lists(st.sampled_from([1, 2, 3, 10, 127, 128, 129, 40_000, 2**31, 2**40]), max_size=12).map(tuple)


@st.composite
def packed_cells(draw):
    sizes = draw(SIZES)
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    rows = draw(st.lists(row, max_size=15))
    return sizes, np.array(rows, dtype=np.int64).reshape(len(rows), len(sizes))


@EXAMPLES
@given(packed_cells())
def test_unpacking_gives_the_packed_cells(case):
    sizes, cells = case
    packing = Packing(sizes)
    assert np.array_equal(packing.unpack(packing.pack(cells)), cells)


@EXAMPLES
@given(packed_cells())
def test_words_are_steps_of_the_strides(case):
    sizes, cells = case
    packing = Packing(sizes)
    packed = packing.pack(cells)
    for w, word in enumerate(packing.words):
        expected = [
            sum(int(row[key]) * stride for key, stride in zip(word, packing.strides(word), strict=True))
            for row in cells
        ]
        assert packed[:, w].tolist() == expected


@EXAMPLES
@given(packed_cells())
def test_packed_cells_sort_like_their_codes(case):
    sizes, cells = case
    packed = [tuple(row) for row in Packing(sizes).pack(cells).tolist()]
    rows = [tuple(row) for row in cells.tolist()]
    order = range(len(rows))
    assert sorted(order, key=packed.__getitem__) == sorted(order, key=rows.__getitem__)


@EXAMPLES
@given(SIZES)
def test_words_hold_every_key_once_and_fit(sizes):
    words = Packing(sizes).words
    assert [key for word in words for key in word] == list(range(len(sizes)))
    for word in words:
        assert int(np.prod([sizes[key] for key in word], dtype=object)) <= WORD


def test_exactly_two_to_the_63_needs_a_second_word():
    assert len(Packing((WORD,)).words) == 1
    assert len(Packing((2**62, 2)).words) == 2


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64])
def test_codes_of_any_integer_type_pack_alike(kind):
    cells = np.array([[1, 99, 3], [0, 0, 0]])
    assert np.array_equal(Packing((2, 100, 7)).pack(cells.astype(kind)), Packing((2, 100, 7)).pack(cells))


@pytest.mark.parametrize("cells", [[[0, 3]], [[-1, 0]], [[0, 0], [2, 0]]])
def test_codes_that_are_not_levels_are_refused(cells):
    with pytest.raises(ValueError, match="outside the levels"):
        Packing((2, 3)).pack(np.array(cells))


def test_cells_of_another_table_are_refused():
    with pytest.raises(ValueError, match="one column for each"):
        Packing((2, 3)).pack(np.zeros((4, 3), dtype=np.int64))


@pytest.mark.parametrize("size", [1, 127, 128, 129, 2**15, 2**15 + 1, 2**31, 2**31 + 1])
def test_the_smallest_type_holds_the_last_code(size):
    kind = code_type((2, size))
    assert np.iinfo(kind).max >= size - 1
    narrower = np.dtype(f"i{kind.itemsize // 2}") if kind.itemsize > 1 else None
    assert narrower is None or np.iinfo(narrower).max < size - 1


def test_no_keys_and_no_levels_have_a_type():
    assert code_type(()) == np.int8
    assert code_type((0,)) == np.int8


@EXAMPLES
@given(st.integers(1, 4).flatmap(lambda w: st.lists(st.tuples(*[st.sampled_from([-(2**62), 0, 1, WORD])] * w))))
def test_rows_are_ranked_as_python_sorts_them(rows):
    words = np.array(rows, dtype=np.int64).reshape(len(rows), -1 if rows else 1)
    first, rank = rank_rows(words)
    ordered = sorted(set(rows))
    assert rank.tolist() == [ordered.index(row) for row in rows]
    assert first.tolist() == [rows.index(row) for row in ordered]


def test_distinct_rows_come_in_the_order_first_seen():
    rows = np.array([[5, 0], [1, 1], [5, 0], [0, 9]])
    distinct, place = distinct_rows(rows)
    assert distinct.tolist() == [[5, 0], [1, 1], [0, 9]]
    assert place.tolist() == [0, 1, 0, 2]
