from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keyhole.table.size_index import SizeIndex

from .brute_force import EXAMPLES


@EXAMPLES
@given(st.lists(st.integers(1, 50)))
def test_frequencies_of_frequencies(counts):
    index = SizeIndex.of(np.array(counts, dtype=np.int64))
    expected = Counter(counts)
    assert dict(zip(index.sizes.tolist(), index.cells.tolist(), strict=True)) == expected
    assert index.sizes.tolist() == sorted(expected)
    assert index.records == sum(counts)
    assert index.occupied == len(counts)
    assert all(index.at(size) == expected[size] for size in range(52))


def test_nobody_has_an_empty_index():
    index = SizeIndex.of(np.array([], dtype=np.int64))
    assert (index.records, index.occupied, index.at(1)) == (0, 0, 0)


def test_large_counts_are_added_in_64_bits():
    assert SizeIndex.of(np.array([2**40, 2**40])).records == 2**41
