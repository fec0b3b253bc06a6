"""Held-out records: against margins that were really counted without them, and the law that fills the hole."""

import numpy as np
import pytest

from keyhole.models.lancaster.held_out import HeldOut, hold_out
from keyhole.models.lancaster.margins import Margins
from keyhole.models.lancaster.path import shrinkage_grid
from keyhole.models.lancaster.renormaliser import Renormaliser, exact_renormaliser
from keyhole.population.sample import Sample
from keyhole.progress import silent
from tests.models.lancaster import twins
from tests.models.sequential.people import sample_of_codes

GRID = shrinkage_grid()


def held_out(sample: Sample, order: int) -> tuple[HeldOut, Renormaliser]:
    margins, levels = twins.margins_of(sample, order)
    c = exact_renormaliser(margins, levels, sample.zeros, GRID, budget=10**9, progress=silent)
    assert c is not None
    cells, _ = sample.table.dense()
    return hold_out(margins, cells, sample.table.counts, twins.weight_of(sample), GRID, c), c


@pytest.mark.parametrize(("order", "zeros", "weighted"), twins.CASES)
def test_score_is_that_of_margins_counted_without_each_record(order: int, zeros: bool, weighted: bool) -> None:
    sample = twins.sample_for(zeros, weighted, size=120)
    found, c = held_out(sample, order)
    cells, levels = sample.table.dense()
    counts, weight = sample.table.counts, twins.weight_of(sample)
    q, S = twins.dense_law(twins.relative_frequencies(sample), order)
    laws = {}
    for k, cell in enumerate(cells):
        if all((counts[cells[:, key] == cell[key]]).sum() > 1 for key in range(cells.shape[1])):
            own = np.arange(len(cells)) == k
            left = Margins.of(cells, weight - own * weight[k] / counts[k], tuple(map(len, levels)), order)
            laws[k] = left.at(cell[None])
    assert 100 < found.asked == counts[list(laws)].sum()
    for g in (0, 3, 10, 20):
        inside, outside, missed, asked = 0.0, 0.0, 0.0, 0.0
        for k, without in laws.items():
            cell = cells[k]
            asked += weight[k]
            p = float(without.probability(GRID[g])[0])
            if p > 1e-15:
                inside += weight[k] * np.log(p / c.value[g])
            else:
                newly = q[tuple(cell)] if 1.0 + GRID[g] * S[tuple(cell)] > 0 else 0.0
                outside += weight[k] * (without.log_independence[0] - np.log(c.hole[g] + newly))
                missed += weight[k]
        share = missed / asked
        expected = (inside + outside) / asked + (1 - share) * np.log(1 - share)
        expected += share * np.log(share) if share else 0.0
        assert found.missed[g] == pytest.approx(share, abs=1e-12)
        assert found.score[g] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("zeros", [False, True])
def test_the_law_with_its_hole_filled_sums_to_one(zeros: bool) -> None:
    sample = twins.sample_for(zeros)
    _, c = held_out(sample, 2)
    q, S = twins.dense_law(twins.relative_frequencies(sample), 2)
    possible = twins.admissible(sample)
    for g in (10, 20):
        p = q * (1.0 + GRID[g] * S)
        hole = possible & (p <= 0)
        filled = 0.9 * p[possible & (p > 0)].sum() / c.value[g] + 0.1 * q[hole].sum() / c.hole[g]
        assert filled == pytest.approx(1.0, rel=1e-9)


def test_seeing_the_record_is_told_apart() -> None:
    """A record scores better under margins that hold it than under those that do not."""
    sample = twins.sample_for(size=120)
    found, c = held_out(sample, 2)
    cells, _ = sample.table.dense()
    margins, _ = twins.margins_of(sample)
    p = margins.at(cells).probability(0.3) / c.value[6]
    assert (p > 0).all()
    assert sample.table.counts @ np.log(p) / 120 > found.score[6] + 0.1


@pytest.mark.parametrize(("strength", "low", "high"), [(0.0, 0.0, 0.25), (1.2, 0.5, 1.0)])
def test_independent_keys_shrink_and_dependent_ones_do_not(strength: float, low: float, high: float) -> None:
    rng = np.random.default_rng(7)
    codes = twins.dependent_people(800, rng=rng, strength=strength)
    found, _ = held_out(sample_of_codes(codes, 9000), 2)
    assert low <= GRID[found.score.argmax()] <= high


@pytest.mark.parametrize(("levels", "order"), [((30, 30), 2), ((12, 12, 12), 3)], ids=["two keys", "three keys"])
@pytest.mark.parametrize("seed", range(4))
def test_a_law_that_leaves_records_out_is_not_chosen(levels: tuple[int, ...], order: int, seed: int) -> None:
    """Independent keys: in full the law knows the sample's own cells alone; only its filled hole scores well."""
    found, _ = held_out(twins.independent_sample(levels, seed=seed), order)
    assert found.missed[-1] > 0.5
    assert not found.eligible[-1]
    assert found.eligible[:-1].all()
    assert GRID[found.best()] <= 0.15
    if order == 2:
        # Without the bound it would be.
        assert GRID[found.best_if_all_were_eligible()] == 1.0


def test_up_to_a_twentieth_may_be_left_out_however_it_was_summed() -> None:
    score = np.array([-3.0, -2.5, -2.0, -1.0])
    found = HeldOut(score, np.array([0.0, 0.02, sum([0.001] * 50), 0.051]), 1000)
    assert found.eligible.tolist() == [True, True, True, False]
    assert (found.best(), found.best_if_all_were_eligible()) == (2, 3)
    nobody = HeldOut(np.zeros(4), np.zeros(4), 0)
    assert nobody.best() == nobody.best_if_all_were_eligible() == 0


def test_records_with_a_level_of_their_own_are_not_asked() -> None:
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1], [2, 0]])
    found, _ = held_out(sample_of_codes(codes, 100, (3, 2)), 2)
    assert found.asked == 5
    alone, _ = held_out(sample_of_codes(np.stack([np.arange(4)] * 2, axis=1), 100, (4, 4)), 2)
    assert alone.asked == 0
    assert not alone.score.any()


def test_leaving_records_out_of_c_cancels() -> None:
    """Each record moves log c, all of them together hardly: what lets one c serve every held-out record."""
    sample = twins.sample_for(size=120)
    _, c = held_out(sample, 2)
    cells, levels = sample.table.dense()
    moved = []
    for k in range(len(cells)):
        left = Margins.of(
            cells, sample.table.counts - 1.0 * (np.arange(len(cells)) == k), tuple(map(len, levels)), 2
        )
        without = exact_renormaliser(left, levels, None, GRID, budget=10**9, progress=silent)
        assert without is not None
        moved.append(np.log(without.value[-1] / c.value[-1]))
    mean = sample.table.counts @ np.array(moved) / 120
    assert abs(mean) < 0.002
    assert abs(mean) < np.abs(moved).mean() / 2
