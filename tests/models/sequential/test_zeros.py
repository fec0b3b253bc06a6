"""Structural zeros: the walk of admissions against looking at every cell."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.models.sequential.admission import Admission
from keyhole.models.sequential.model import SequentialLogit
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import zero_rules_from
from tests.models.sequential.people import possible_people, sample_of_codes, zeros_of
from tests.table.brute_force import EXAMPLES, all_cells, rule_lists


@EXAMPLES
@given(rule_lists(), st.integers(0, 2**32))
def test_admission_is_that_of_looking_ahead(case, seed):
    """A level may follow exactly if some admissible cell of levels that occur starts like that."""
    keys, rules = case
    zeros = StructuralZeros(keys, zero_rules_from(rules))
    rng = np.random.default_rng(seed)
    cells = all_cells(zeros.levels)
    admissible = cells[~zeros.contains(cells)]
    seen = admissible[rng.integers(0, len(admissible), rng.integers(1, 6))]
    levels = [np.unique(column) for column in seen.T]
    order = tuple(rng.permutation([key for key, found in enumerate(levels) if len(found) > 1]).tolist())
    admission = Admission.of(zeros, order, levels)

    possible = {
        cell for cell in product(*(found.tolist() for found in levels)) if not zeros.contains(np.array([cell]))[0]
    }
    begun = {tuple(cell[key] for key in order[:depth]) for cell in possible for depth in range(len(order) + 1)}
    for start in begun:
        node = admission.root
        for position, level in enumerate(start):
            dense = levels[order[position]].tolist().index(level)
            assert admission.masks[position][node, dense]
            node = admission.children[position][node, dense]
        if len(start) < len(order):
            after = levels[order[len(start)]].tolist()
            expected = [(*start, level) in begun for level in after]
            assert admission.masks[len(start)][node].tolist() == expected


def test_without_zeros_everything_is_admitted() -> None:
    admission = Admission.of(None, (1, 0), [np.arange(3), np.arange(2)])
    assert [mask.all() for mask in admission.masks] == [True, True]
    assert [mask.shape[1] for mask in admission.masks] == [2, 3]


@pytest.mark.parametrize("orders", [1, 3])
def test_nobody_simulated_is_impossible(orders: int) -> None:
    codes = possible_people(600, rng=np.random.default_rng(41))
    rng = np.random.default_rng(0)
    model = SequentialLogit(orders=orders, nested=0, draws=4)
    fit = model.fit(sample_of_codes(codes, 9000, zeros=zeros_of()), rng=rng)
    people = fit.simulate(20_000, rng)
    assert people.shape == (20_000, 6)
    assert not zeros_of().contains(people).any()
    careless = model.fit(sample_of_codes(codes, 9000), rng=rng).simulate(20_000, rng)
    assert zeros_of().contains(careless).sum() > 20


def test_simulated_codes_are_those_of_the_table() -> None:
    """Levels that nobody has are never drawn, and the others keep their codes."""
    codes = 2 * possible_people(600, rng=np.random.default_rng(41)) + 1
    levels = tuple(2 * size + 3 for size in (9, 6, 5, 4, 3, 2))
    fit = SequentialLogit(orders=2, nested=0, draws=4).fit(
        sample_of_codes(codes, 9000, levels), rng=np.random.default_rng(0)
    )
    people = fit.simulate(5000, np.random.default_rng(1))
    for column, drawn in zip(codes.T, people.T, strict=True):
        assert set(drawn.tolist()) <= set(column.tolist())
    share, expected = np.bincount(people[:, 0], minlength=20) / 5000, np.bincount(codes[:, 0], minlength=20) / 600
    assert np.abs(share - expected).max() < 0.05
