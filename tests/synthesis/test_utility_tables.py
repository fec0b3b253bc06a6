"""Tables of copies against those of the original: by hand, by dealing records out, and with a wrong copy."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from keyhole.errors import InvalidKeys
from keyhole.synthesis.utility_tables import compare_tables


def draw_records(size: int, rng: np.random.Generator) -> np.ndarray:
    """Three keys of 3, 4 and 2 levels; the second follows the first."""
    first = rng.choice(3, size, p=[0.5, 0.3, 0.2])
    second = (first + rng.choice(4, size, p=[0.7, 0.1, 0.1, 0.1])) % 4
    return np.column_stack([first, second, rng.integers(0, 2, size)])


def test_one_table_by_hand() -> None:
    # Original 3, 1; copy 2, 4, 2: shares 6/8, 2/8, 0 and 2/8, 4/8, 2/8.
    original = np.repeat([0, 1], [3, 1])[:, None]
    copy = np.repeat([0, 1, 2], [2, 4, 2])[:, None]
    found = compare_tables(original, [copy], [5], ["AGE"])
    assert found.tables == (("AGE",),)
    assert np.isclose(found.distance[0], 0.5)
    # n_o n_s/N = 32/12; pooled shares 5/12, 5/12, 2/12.
    chi_squared = 32 / 12 * (0.25 / (5 / 12) + 0.0625 / (5 / 12) + 0.0625 / (2 / 12))
    assert np.isclose(found.ratio[0], chi_squared / 2 * 11 / 12)
    assert found.degrees_of_freedom[0] == 2


def test_equal_sizes_give_half_the_sum_over_mean_counts() -> None:
    rng = np.random.default_rng(1)
    original, copy = draw_records(60, rng), draw_records(60, rng)
    found = compare_tables(original, [copy], (3, 4, 2), "ABC")
    o, s = (np.bincount(file[:, 1], minlength=4) for file in (original, copy))
    published = ((s - o) ** 2 / ((s + o) / 2)).sum()
    assert np.isclose(found.ratio[1], published / 2 / 3 * 119 / 120)


def test_every_table_is_that_of_its_keys() -> None:
    rng = np.random.default_rng(2)
    original, copy = draw_records(200, rng), draw_records(130, rng)
    found = compare_tables(original, [copy], (3, 4, 2), "ABC")
    assert found.tables == (("A",), ("B",), ("C",), ("A", "B"), ("A", "C"), ("B", "C"))
    for place, keys in enumerate([(0,), (1,), (2,), *combinations(range(3), 2)]):
        cells = sorted({tuple(row) for file in (original, copy) for row in file[:, keys].tolist()})
        table = np.array(
            [[sum(tuple(row) == cell for row in f[:, keys].tolist()) for cell in cells] for f in (original, copy)]
        )
        shares = table / table.sum(axis=1, keepdims=True)
        assert np.isclose(found.distance[place], np.abs(shares[0] - shares[1]).sum() / 2)
        peer = stats.chi2_contingency(table, correction=False)
        assert np.isclose(found.ratio[place], peer.statistic / peer.dof * 329 / 330)
        assert found.degrees_of_freedom[place] == peer.dof


def test_several_copies_are_averaged() -> None:
    rng = np.random.default_rng(3)
    original, *copies = (draw_records(size, rng) for size in (100, 50, 100, 150))
    together = compare_tables(original, copies, (3, 4, 2), "ABC")
    alone = [compare_tables(original, [copy], (3, 4, 2), "ABC") for copy in copies]
    for name in ("distance", "ratio", "degrees_of_freedom"):
        assert np.allclose(getattr(together, name), np.mean([getattr(one, name) for one in alone], axis=0))


def test_a_large_sparse_table_is_counted_alike() -> None:
    rng = np.random.default_rng(4)
    original, copy = rng.integers(0, 20, (300, 2)), rng.integers(0, 20, (300, 2))
    small = compare_tables(original, [copy], (20, 20), "AB")
    # The same codes spread over 20,000 levels a key: 4e8 cells are not counted one by one.
    large = compare_tables(original * 1000, [copy * 1000], (20_000, 20_000), "AB")
    for name in ("distance", "ratio", "degrees_of_freedom"):
        assert np.allclose(getattr(small, name), getattr(large, name))


def test_a_file_has_its_own_tables() -> None:
    original = draw_records(100, np.random.default_rng(5))
    found = compare_tables(original, [original[::-1]], (3, 4, 2), "ABC")
    assert np.allclose(found.distance, 0)
    assert np.allclose(found.ratio, 0)


def test_a_table_of_one_cell_has_nothing_to_compare() -> None:
    original = np.array([[0, 0], [0, 1]])
    found = compare_tables(original, [original], (1, 2), "AB")
    assert math.isnan(found.ratio[0])
    assert found.mean_ratio(1) == found.ratio[1]
    assert found.mean_distance(2) == found.distance[2]
    other = np.array([[0, 0], [1, 1]])
    assert np.isclose(compare_tables(original, [original, other], (2, 2), "AB").ratio[0], 4 / 3 * 3 / 4)
    assert math.isnan(compare_tables(original[:, 1:], [original[:, 1:]], [2], "B").mean_ratio(2))


@pytest.mark.parametrize(("originals", "synthetics"), [(200, 200), (200, 50), (40, 400)])
def test_another_sample_from_the_same_law_has_ratio_one(originals: int, synthetics: int) -> None:
    rng = np.random.default_rng(6)
    ratios = np.array(
        [
            compare_tables(draw_records(originals, rng), [draw_records(synthetics, rng)], (3, 4, 2), "ABC").ratio
            for _ in range(1500)
        ]
    )
    error = ratios.std(axis=0, ddof=1) / math.sqrt(len(ratios))
    assert (np.abs(ratios.mean(axis=0) - 1) < 4 * error).all()
    # What the correction for N - 1 and the counting of occupied cells only are worth is seen at this precision.
    assert (error < 0.05).all()


def test_the_ratio_is_one_in_tables_with_hardly_any_records() -> None:
    # 12 + 8 records in 400 cells: nearly every record is alone, and the expectation is still exact.
    rng = np.random.default_rng(7)
    ratios = np.array(
        [
            compare_tables(
                rng.geometric(0.1, (12, 2)) % 20, [rng.geometric(0.1, (8, 2)) % 20], (20, 20), "AB"
            ).ratio
            for _ in range(4000)
        ]
    )
    error = ratios.std(axis=0, ddof=1) / math.sqrt(len(ratios))
    assert (np.abs(ratios.mean(axis=0) - 1) < 4 * error).all()
    # Without the factor (N - 1)/N the mean would be 20/19, which this test tells apart.
    assert (np.abs(ratios.mean(axis=0) * 20 / 19 - 1) > 4 * error).all()


def test_a_copy_drawn_from_the_shares_of_the_original_has_a_smaller_ratio() -> None:
    rng = np.random.default_rng(8)
    ratios = []
    for _ in range(800):
        original = draw_records(300, rng)
        copy = original[rng.integers(0, 300, 600)]
        ratios.append(compare_tables(original, [copy], (3, 4, 2), "ABC").ratio)
    error = np.std(ratios, axis=0, ddof=1) / math.sqrt(len(ratios))
    assert (np.abs(np.mean(ratios, axis=0) - 300 / 900) < 4 * error).all()


def test_a_copy_with_columns_shuffled_is_caught_in_the_tables_of_keys_that_go_together() -> None:
    rng = np.random.default_rng(9)
    original = draw_records(2000, rng)
    copies = [np.column_stack([rng.permutation(column) for column in original.T]) for _ in range(3)]
    found = compare_tables(original, copies, (3, 4, 2), "ABC")
    ratio = dict(zip(found.tables, found.ratio.tolist(), strict=True))
    assert all(np.isclose(ratio[name,], 0) for name in "ABC")
    assert ratio["A", "B"] > 50
    assert ratio["A", "C"] < 4
    assert ratio["B", "C"] < 4


def test_files_that_cannot_be_compared_are_refused_in_words() -> None:
    codes = np.array([[0, 1], [1, 0]])
    with pytest.raises(InvalidKeys, match="No synthetic file"):
        compare_tables(codes, [], (2, 2), "AB")
    with pytest.raises(InvalidKeys, match=r"copy 2 have shape \(2, 1\)"):
        compare_tables(codes, [codes, codes[:, :1]], (2, 2), "AB")
    with pytest.raises(InvalidKeys, match="no records in the original"):
        compare_tables(codes[:0], [codes], (2, 2), "AB")
    with pytest.raises(InvalidKeys, match="Column 1 of copy 1 has codes outside its 2 levels"):
        compare_tables(codes, [codes + np.array([0, 1])], (2, 2), "AB")
    with pytest.raises(InvalidKeys, match="3 names for 2 keys"):
        compare_tables(codes, [codes], (2, 2), "ABC")
    with pytest.raises(InvalidKeys, match="no columns"):
        compare_tables(codes[:, :0], [codes[:, :0]], (), ())
