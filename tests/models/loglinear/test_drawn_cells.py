"""The tree of cells that were drawn, against the rows it was made of."""

import numpy as np
import pytest

from keyhole.models.loglinear.drawn_cells import tree_of


@pytest.mark.parametrize(("sizes", "code"), [((4, 3, 2), 1), ((300, 3, 2), 2), ((66_000, 3, 2), 4)])
def test_the_tree_holds_the_rows(sizes: tuple[int, ...], code: int) -> None:
    """With codes of too few bytes rows far apart would be the same cell."""
    rng, order = np.random.default_rng(3), (2, 0, 1)
    first = np.stack([np.arange(sizes[0]) % size for size in sizes], axis=1)
    codes = np.concatenate([first, rng.integers(0, sizes, (sizes[0], 3))])
    cells, place = tree_of(codes, tuple(map(np.arange, sizes)), order, len(first))
    distinct = np.unique(codes[:, order], axis=0)
    np.testing.assert_array_equal(cells.codes.T, distinct[:, np.argsort(order)])
    np.testing.assert_array_equal(cells.codes_at(place), codes)
    np.testing.assert_array_equal(cells.find(codes), place)
    np.testing.assert_array_equal(cells.occupied, place[: len(first)])
    assert cells.codes.dtype.itemsize == code


def test_codes_are_held_once() -> None:
    """Those of a layer above the cells are a row of the layer below, as the bytes of a tree have it."""
    codes = np.random.default_rng(4).integers(0, 5, (200, 3))
    cells, _ = tree_of(codes, (np.arange(5),) * 3, (0, 1, 2), 0)
    for layer, below in zip(cells.layers, cells.layers[1:], strict=False):
        assert np.shares_memory(layer.own, below.prefix)
    arrays = [array for layer in cells.layers for array in (layer.prefix, layer.branch, layer.own)]
    owners = [array if array.base is None else array.base for array in arrays]
    assert sum({id(owner): owner.nbytes for owner in owners}.values()) == cells.bytes
