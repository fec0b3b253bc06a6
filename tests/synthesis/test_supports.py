"""Candidates of a record: which they are, and that all supports say the same of those they share."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from keyhole.arrays import Codes, IntVector
from keyhole.errors import InputError
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.synthesis.chances import Weighed
from keyhole.synthesis.class_draws import ClassDraw, Length
from keyhole.synthesis.generator import synthesize
from keyhole.synthesis.supports import Listed, Near, Support, all_cells, known_part
from keyhole.synthesis.weighing import weigh
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import zero_rules_from
from tests.sampler_checks import keys_of
from tests.synthesis.small_files import (
    SHORT,
    by_cell,
    every_cell,
    runs,
    small_file,
    weighed,
)


def test_masks_count_the_candidates() -> None:
    sizes = (3, 5, 2)
    cells = every_cell(sizes)
    one, two = 2 + 4 + 1, 2 * 4 + 2 * 1 + 4 * 1
    assert (Near(sizes).mask(cells).sum(axis=1) == 1 + one).all()  # 8 in the paper's example
    assert (Near(sizes, 2).mask(cells).sum(axis=1) == 1 + one + two).all()
    assert (all_cells(sizes, None).mask(cells).sum(axis=1) == 30).all()
    assert (known_part(sizes, (0, 2), None).mask(cells).sum(axis=1) == 5).all()
    for support in (Near(sizes), Near(sizes, 2), all_cells(sizes, None), known_part(sizes, (1,), None)):
        mask, candidates = support.mask(cells), support.candidates(cells)
        np.testing.assert_array_equal(candidates[:, 0], cells)
        for i in range(len(cells)):
            there = candidates[i, mask[i]]
            assert len(np.unique(there, axis=0)) == len(there)


def test_candidates_differ_where_they_may() -> None:
    sizes = (3, 5, 2)
    cells = every_cell(sizes)
    for support, most in ((Near(sizes), 1), (Near(sizes, 2), 2)):
        changes = (support.candidates(cells) != cells[:, None]).sum(axis=2)
        assert changes[support.mask(cells)].max() == most
    candidates = known_part(sizes, (0, 2), None).candidates(cells)
    assert (candidates[:, :, [0, 2]] == cells[:, None, [0, 2]]).all()


def test_neighbours_share_the_keys_that_are_known() -> None:
    sizes = (3, 5, 2)
    cells = every_cell(sizes)
    for changes, number in ((1, 1 + 4 + 1), (2, 1 + 4 + 1 + 4 * 1)):
        support = Near(sizes, changes, None, (0,))
        mask = support.mask(cells)
        assert (mask.sum(axis=1) == number).all()
        assert (support.candidates(cells)[mask][:, 0] == np.repeat(cells[:, 0], number)).all()
    everything = Near(sizes, 2, None, (0,)).mask(cells).sum(axis=1)
    assert (everything == known_part(sizes, (0,), None).mask(cells).sum(axis=1)).all()


def test_supports_agree_on_the_candidates_that_they_share(
    sampled: tuple[tuple[int, ...], Codes, Sequence[ClassDraw]],
) -> None:
    sizes, asked, draws = sampled
    everything = all_cells(sizes, None)
    strides = np.array([np.prod(sizes[j + 1 :]) for j in range(len(sizes))], dtype=np.int64)
    for support in (Near(sizes), Near(sizes, 2), known_part(sizes, (1,), None)):
        mask, number = support.mask(asked), support.candidates(asked) @ strides
        for draw in draws[:5]:
            assert draw.own is not None
            found = support.probabilities(asked, draw.own, draw)
            whole = by_cell(everything.probabilities(asked, draw.own, draw), asked, sizes)
            np.testing.assert_allclose(found[mask], np.take_along_axis(whole, number, 1)[mask], rtol=1e-9)
            np.testing.assert_allclose(whole.sum(axis=1), 1.0)
    near = weighed(Near(sizes), asked, [draws, draws[::-1]]).chance[-1]
    far = weighed(Near(sizes, 2), asked, [draws, draws[::-1]]).chance[-1][:, : near.shape[1]]
    np.testing.assert_allclose(near, far / far.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-15)


def test_what_cannot_be_is_no_candidate() -> None:
    sizes = (2, 3, 2)
    zeros = StructuralZeros(keys_of(sizes), zero_rules_from([{"K0": "0", "K1": "1"}, {"K1": "2", "K2": "1"}]))
    cells = every_cell(sizes)
    possible = cells[~zeros.contains(cells)]
    for support in (Near(sizes, 1, zeros), Near(sizes, 2, zeros), all_cells(sizes, zeros)):
        mask = support.mask(possible)
        assert not zeros.contains(support.candidates(possible)[mask]).any()
        assert mask[:, 0].all()
    assert (all_cells(sizes, zeros).mask(possible).sum(axis=1) == len(possible)).all()
    rng = np.random.default_rng(1)
    codes = possible[rng.integers(0, len(possible), 60)]
    sampler = LatentClassSampler(sizes, 6, "marginal", diagram=zeros.small_diagram)
    made = synthesize(sampler, codes, copies=1, zeros=zeros, length=Length(50, 1, 60, 2), rng=rng)
    asked = np.unique(codes, axis=0)
    drawn = [one.draws for one in runs(sampler, codes, made.copies, asked, Length(100, 1, 200, 2))]
    found = weighed(all_cells(sizes, zeros), asked, drawn).chance[-1]
    assert (found[~all_cells(sizes, zeros).mask(asked)] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(InputError, match="one by one"):
        all_cells((30, 30, 30), None)
    with pytest.raises(InputError, match="does not know"):
        known_part((30, 30, 30, 30), (0,), None)
    assert known_part((30, 30, 30, 30), (0, 1), None).cells.shape == (900, 4)


def test_a_class_that_excludes_one_level_still_speaks_for_its_neighbours() -> None:
    """Class 1 makes every level but the record's own of the first key: a neighbour is almost surely its work."""
    keys = 90
    sizes = (3,) * keys
    theta = np.full((3 * keys, 2), 1 / 3)
    theta[0:3, 0] = [1.0, 1e-30, 1e-30]
    theta[0:3, 1] = [1e-300, 0.5, 0.5]
    log_theta = np.log(theta)
    log_theta[0, 1] = -2_000.0
    zero = np.zeros(2)
    state = LatentClasses(np.log([1e-3, 1 - 1e-3]), log_theta, zero, np.ones(keys), np.ones(3 * keys), 1.0, 10)
    cells = np.zeros((1, keys), dtype=np.int64)
    draw = ClassDraw.known(state, keys)
    for support in (Near(sizes), Near(sizes, 2)):
        found = support.probabilities(cells, np.array([-1]), draw)[0]
        changed = (support.candidates(cells)[0] != 0).sum(axis=1)
        first = support.candidates(cells)[0][:, 0] != 0
        common = 3.0 ** (1 - keys)
        np.testing.assert_allclose(found[first & (changed <= 2)], 0.999 * 0.5 * common, rtol=1e-6)
        np.testing.assert_allclose(found[~first], 1e-3 * common, rtol=1e-6)


@pytest.mark.parametrize("changes", [1, 2])
def test_listed_candidates_of_one_record(changes: int) -> None:
    """A list of a record's neighbours is the same support."""
    sampler, codes, copies = small_file(8)
    asked = np.unique(codes, axis=0)
    near = Near(sampler.sizes, changes)
    one = asked[:1]
    there = near.candidates(one)[0, near.mask(one)[0]]
    listed = Listed("list", sampler.sizes, there)
    drawn = [each.draws for each in runs(sampler, codes, copies, asked, SHORT)]
    place: IntVector = np.array([0])
    find: Callable[[Support], Weighed] = lambda support: weigh(one, support, drawn[0], drawn[1:], place, None)  # noqa: E731
    first, second = find(near), find(listed)
    np.testing.assert_allclose(first.chance[-1][near.mask(one)], second.chance[-1][listed.mask(one)], rtol=1e-9)
    np.testing.assert_allclose(first.error, second.error, rtol=1e-6)
