"""Whether the maximum of the likelihood is reached: Haberman's example, and an independent linear programme."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from keyhole.arrays import IntVector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.formula import preset
from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import model_named
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.existence import existence
from keyhole.models.loglinear.means import empty_entries
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable


def sample_of(counts: IntVector) -> Sample:
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(size)))) for j, size in enumerate(counts.shape))
    cells = np.argwhere(counts > 0)
    table = ContingencyTable.from_codes(keys, cells, counts[counts > 0])
    return Sample(table, 20 * table.records)


def haberman(corner: int) -> Sample:
    """Three keys of two levels in which two opposite corners hold so many people; no margin of a pair is empty."""
    counts = np.full((2, 2, 2), 3)
    counts[0, 0, 0] = counts[1, 1, 1] = corner
    return sample_of(counts)


def test_two_opposite_corners_without_people() -> None:
    empty, full = haberman(0), haberman(1)
    two_way = preset(2, 3)
    assert not empty_entries(empty, two_way)
    assert existence(Cells.of(empty, two_way), two_way) == "does not exist"
    assert existence(Cells.of(full, two_way), two_way) == "exists"
    one = np.full((2, 2, 2), 3)
    one[0, 0, 0] = 0
    assert existence(Cells.of(sample_of(one), two_way), two_way) == "exists"


def checks_of(counts: IntVector) -> dict[str, Diagnostic]:
    fit = model_named("two-way").fit(sample_of(counts), rng=np.random.default_rng(0))
    return {check.name: check for check in fit.diagnostics}


def test_it_is_said() -> None:
    counts = np.repeat(np.full((2, 2, 2), 1)[..., None], 6, axis=3)
    counts[0, 0, 0] = counts[1, 1, 1] = 0
    found = checks_of(counts)
    assert "empty_margins" not in found
    assert found["existence"].verdict == "caution"
    assert "does not exist" in found["existence"].words
    counts[0, 0, 0, 0] = 1
    assert "existence" not in checks_of(counts)


def has_recession(counts: IntVector, pairs: list[tuple[int, ...]]) -> bool:
    """The definition, with every indicator of every cell."""
    cells = list(product(*map(range, counts.shape)))
    entries = [(pair, levels) for pair in pairs for levels in product(*(range(counts.shape[key]) for key in pair))]
    X = np.array(
        [[tuple(cell[key] for key in pair) == levels for pair, levels in entries] for cell in cells], float
    )
    here = counts.ravel() > 0
    found = linprog(
        X[~here].sum(axis=0), np.vstack([X[~here], -X[~here]]),
        np.concatenate([np.zeros((~here).sum()), np.ones((~here).sum())]),
        X[here], np.zeros(here.sum()), bounds=[(None, None)] * X.shape[1],
    )  # fmt: skip
    return bool(found.fun < -1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_without_empty_margins_agree_with_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(3), 2))
    while True:
        counts = rng.poisson(1.1, (3, 3, 2))
        if all(counts.sum(axis=tuple({0, 1, 2} - set(pair))).all() for pair in pairs):
            break
    generators = preset(2, 3)
    expected = "does not exist" if has_recession(counts, pairs) else "exists"
    assert existence(Cells.of(sample_of(counts), generators), generators) == expected
