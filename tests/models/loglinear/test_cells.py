"""The cells a fit visits against looking at every cell of the table."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.errors import FitFailed, ForbiddenRecords
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear import cell_search
from keyhole.models.loglinear.cell_search import bytes_of
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.ipf import fit_margins
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from tests.models.loglinear import twins


def in_table_codes(cells: Cells) -> list[tuple[int, ...]]:
    columns = [levels[codes] for levels, codes in zip(cells.levels, cells.codes, strict=True)]
    return [tuple(row) for row in np.stack(columns, axis=1).tolist()]


def uniform_sample(size: int, levels: tuple[int, ...]) -> Sample:
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(0, count, size) for count in levels], axis=1)
    return Sample(ContingencyTable.from_codes(twins.keys_of(levels), codes), 10 * size)


@pytest.mark.parametrize("model", twins.MODELS)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("prune", [False, True])
def test_the_cells_are_those_of_brute_force(model: str, zeros: bool, prune: bool) -> None:
    sample = twins.some_sample(25, zeros=zeros, strength=0.3)
    cells = Cells.of(sample, twins.MODELS[model], prune=prune)
    found = in_table_codes(cells)
    expected = twins.active_cells(sample, twins.MODELS[model], prune=prune)
    assert len(found) == len(set(found)) == len(cells)
    assert set(found) == expected
    if model == "saturated" and prune:
        assert len(cells) == sample.table.occupied
    # Broken on purpose: the margins of another model must give other cells.
    if prune and model == "two-way":
        assert expected != twins.active_cells(sample, twins.MODELS["three-way"])


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(1, 30), st.integers(0, 2**32), st.data())
def test_any_model_of_any_small_table(levels, size, seed, data):
    J = len(levels)
    sets = st.lists(st.sets(st.integers(0, J - 1), min_size=1), min_size=1, max_size=4)
    generators = tuple(sorted({tuple(sorted(chosen)) for chosen in data.draw(sets)}))
    codes = twins.dependent_codes(size, levels, np.random.default_rng(seed), 0.3)
    sample = Sample(ContingencyTable.from_codes(twins.keys_of(levels), codes), 10 * size)
    cells = Cells.of(sample, generators)
    assert set(in_table_codes(cells)) == twins.active_cells(sample, generators)
    assert len(cells) == len(set(in_table_codes(cells)))


@pytest.mark.parametrize("zeros", [False, True])
def test_occupied_cells_are_found_again(zeros: bool) -> None:
    sample = twins.some_sample(zeros=zeros)
    cells = Cells.of(sample, twins.MODELS["two-way"])
    found = np.array(in_table_codes(cells))
    np.testing.assert_array_equal(found[cells.occupied], sample.table.cells)
    np.testing.assert_array_equal(cells.codes_at(cells.occupied), cells.codes[:, cells.occupied].T)
    np.testing.assert_array_equal(cells.find(cells.codes.T), np.arange(len(cells)))


def test_a_cell_that_is_not_visited_is_not_found() -> None:
    sample = twins.some_sample(12, strength=0.2)
    cells = Cells.of(sample, twins.MODELS["two-way"])
    everything = np.argwhere(np.ones(cells.sizes))
    assert (cells.find(everything) >= 0).sum() == len(cells) < len(everything)


def test_keys_of_many_levels() -> None:
    """More levels than a word has bits, and more than a byte can tell apart."""
    sample = uniform_sample(900, (300, 70, 3))
    generators = tuple(combinations(range(3), 2))
    cells = Cells.of(sample, generators)
    assert cells.codes.dtype == np.uint16
    counts = twins.dense(sample)
    active = np.prod([np.broadcast_to(twins.margin_of(counts, g) > 0, counts.shape) for g in generators], axis=0)
    assert len(cells) == active.sum()
    np.testing.assert_array_equal(np.array(in_table_codes(cells))[cells.occupied], sample.table.cells)


def test_keys_of_more_levels_than_two_bytes_tell_apart() -> None:
    """Against the closed form of independence; codes of two bytes would add up what is 65,536 levels apart."""
    size, rng = 66_000, np.random.default_rng(1)
    codes = np.stack(
        [np.append(np.arange(size), np.full(4000, size - 1)), rng.integers(0, 2, size + 4000)], axis=1
    )
    sample = Sample(ContingencyTable.from_codes(twins.keys_of((size, 2)), codes), 700_000)
    cells = Cells.of(sample, ((0,), (1,)))
    assert cells.codes.dtype == np.uint32
    assert len(cells) == 2 * size
    np.testing.assert_array_equal(cells.codes_at(cells.occupied), sample.table.cells)
    fitted = fit_margins(cells, sample.table.counts, ((0,), (1,)))
    one, other = (np.bincount(column) / len(codes) for column in codes.T)
    level, of_two = sample.table.cells.T
    np.testing.assert_allclose(fitted.at_occupied, len(codes) * one[level] * other[of_two], rtol=1e-9)


def test_an_occupied_cell_that_is_not_visited_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = uniform_sample(900, (300, 3))
    cells = Cells.of(sample, ((0,), (1,)))
    with pytest.raises(RuntimeError, match=f"1 of the {sample.table.occupied} occupied cells are not among"):
        replace(cells, occupied=np.append(cells.occupied[1:], -1))
    # Codes that wrap are one way to get there.
    monkeypatch.setattr(cell_search, "code_kind", lambda sizes: np.dtype(np.uint8))
    with pytest.raises(RuntimeError, match="occupied cells are not among"):
        Cells.of(sample, ((0,), (1,)))


@pytest.mark.parametrize(("levels", "code"), [(twins.LEVELS, 1), ((300, 4, 3), 2), ((66_000, 2), 4)])
def test_memory_is_what_it_says(levels: tuple[int, ...], code: int) -> None:
    every = np.stack([np.arange(max(levels)) % size for size in levels], axis=1)
    sample = Sample(ContingencyTable.from_codes(twins.keys_of(levels), every), 10 * len(every))
    cells = Cells.of(sample, tuple((key,) for key in range(len(levels))))
    above = [len(layer.branch) for layer in cells.layers]
    assert cells.bytes == code * len(cells) + sum((code * d + 4) * nodes for d, nodes in enumerate(above))
    # The root has no value of its own in a fit, and is not counted beforehand.
    assert bytes_of([*above[1:], len(cells)], np.dtype(f"u{code}")) == cells.bytes - 4 + 8 * cells.nodes


def test_nobody_has_no_cells() -> None:
    cells = Cells.of(uniform_sample(0, (3, 2)), ((0,), (1,)))
    assert len(cells) == cells.steps == len(cells.occupied) == 0


def test_too_many_cells_are_counted_and_refused() -> None:
    sample = twins.some_sample(400)
    needed = len(Cells.of(sample, twins.MODELS["two-way"]))
    with pytest.raises(FitFailed, match=rf"{needed} of the 72 cells .* Recode keys"):
        Cells.of(sample, twins.MODELS["two-way"], most_bytes=9 * needed + 10)


def test_a_margin_beyond_all_memory_is_named() -> None:
    levels = (600, 600, 600)
    codes = np.stack([np.arange(600)] * 3, axis=1)
    sample = Sample(ContingencyTable.from_codes(twins.keys_of(levels), codes), 9000)
    with pytest.raises(FitFailed, match=r"K0\*K1\*K2 has 216,000,000 entries"):
        Cells.of(sample, ((0, 1, 2),))


def test_records_in_structural_zeros_are_refused() -> None:
    zeros = twins.some_sample(zeros=True).zeros
    free = twins.some_sample(400)
    with pytest.raises(ForbiddenRecords, match="declare impossible"):
        Cells.of(Sample(free.table, 20_000, zeros), twins.MODELS["two-way"])


def test_bits_are_counted() -> None:
    words = np.array([0, 1, 2**63, 2**64 - 1, 0x0F0F], dtype=np.uint64)
    assert [kernels.ones_in(word) for word in words] == [int(word).bit_count() for word in words]
