"""The propensity score error: by hand, against statsmodels, and on copies that are good, bad or separated."""

import math

import numpy as np
import pytest

from keyhole.errors import InvalidKeys
from keyhole.synthesis import utility_propensity
from keyhole.synthesis.utility_propensity import compare_propensity
from keyhole.synthesis.utility_tables import compare_tables

SIZES = (3, 4, 2)


def draw_records(size: int, rng: np.random.Generator) -> np.ndarray:
    """Three keys of 3, 4 and 2 levels; the second follows the first."""
    first = rng.choice(3, size, p=[0.5, 0.3, 0.2])
    second = (first + rng.choice(4, size, p=[0.7, 0.1, 0.1, 0.1])) % 4
    return np.column_stack([first, second, rng.integers(0, 2, size)])


def test_one_key_by_hand() -> None:
    # Original 3, 1; copy 2, 4: scores 2/5 and 4/5 about c = 6/10.
    original = np.repeat([0, 1], [3, 1])[:, None]
    copy = np.repeat([0, 1], [2, 4])[:, None]
    found = compare_propensity(original, [copy], [2])
    assert np.isclose(found.pmse[0], (5 * 0.2**2 + 5 * 0.2**2) / 10)
    assert np.isclose(found.expected[0], 1 * 0.4**2 * 0.6 / 10)
    assert np.isclose(found.ratio[0], 0.04 / 0.0096)
    assert np.isclose(found.sample_ratio[0], 0.04 / 0.024)
    assert found.parameters.tolist() == [2]
    assert found.converged.all()
    assert found.doubt == ""


def test_one_key_agrees_with_its_table() -> None:
    rng = np.random.default_rng(1)
    original, copy = rng.integers(0, 6, (50, 1)), rng.integers(0, 6, (80, 1))
    ratio = compare_tables(original, [copy], [6], ["A"]).ratio * 130 / 129
    assert np.allclose(compare_propensity(original, [copy], [6]).sample_ratio, ratio)


@pytest.mark.parametrize("sizes", [(300, 300), (300, 100)])
def test_scores_are_those_of_a_logistic_regression(sizes: tuple[int, int]) -> None:
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(2)
    original, copy = (draw_records(size, rng) for size in sizes)
    both = np.concatenate([original, copy])
    design = np.column_stack(
        [np.ones(len(both))] + [both[:, j] == level for j in range(3) for level in range(1, SIZES[j])]
    )
    is_synthetic = np.repeat([0.0, 1.0], sizes)
    peer = api.GLM(is_synthetic, design.astype(float), family=api.families.Binomial()).fit(tol=1e-12)
    found = compare_propensity(original, [copy], SIZES)
    assert np.isclose(found.pmse[0], ((peer.fittedvalues - is_synthetic.mean()) ** 2).mean())
    assert found.parameters.tolist() == [7]


def test_a_level_of_one_file_gives_its_records_away() -> None:
    # The copy alone has level 2; the other records are told apart by nothing, with score 4/8.
    original = np.repeat([0, 1], [2, 2])[:, None]
    copy = np.repeat([0, 1, 2], [2, 2, 4])[:, None]
    found = compare_propensity(original, [copy], [3])
    share = 8 / 12
    assert np.isclose(found.pmse[0], (4 * (1 - share) ** 2 + 8 * (0.5 - share) ** 2) / 12)
    assert found.converged.all()


def test_files_that_share_no_level_are_told_apart_without_error() -> None:
    original, copy = np.zeros((30, 2), dtype=int), np.ones((10, 2), dtype=int)
    found = compare_propensity(original, [copy], (2, 2))
    assert np.isclose(found.pmse[0], 0.25 * 0.75)


def test_levels_that_give_records_away_together_are_followed_to_the_end() -> None:
    # Every level is in both files, but A + B is 0 or 1 in the original and 1 or 2 in the copy.
    original = np.array([[0, 0]] * 20 + [[0, 1]] * 10 + [[1, 0]] * 10)
    copy = np.array([[1, 1]] * 20 + [[0, 1]] * 10 + [[1, 0]] * 10)
    found = compare_propensity(original, [copy], (2, 2))
    assert found.converged.all()
    assert np.isclose(found.pmse[0], 40 * 0.25 / 80, rtol=1e-4)


def test_a_key_given_twice_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    original, copy = draw_records(200, rng), draw_records(200, rng)
    once = compare_propensity(original, [copy], SIZES)
    twice = compare_propensity(original[:, [0, 1, 2, 1]], [copy[:, [0, 1, 2, 1]]], (*SIZES, 4))
    assert np.allclose(once.ratio, twice.ratio, rtol=1e-4)
    assert once.parameters.tolist() == twice.parameters.tolist() == [7]


def test_levels_that_no_record_has_change_nothing() -> None:
    rng = np.random.default_rng(4)
    original, copy = draw_records(200, rng), draw_records(200, rng)
    wide = compare_propensity(original * 10, [copy * 10], (30, 40, 20))
    assert np.allclose(compare_propensity(original, [copy], SIZES).ratio, wide.ratio)


def test_records_that_are_all_alike_have_no_ratio() -> None:
    found = compare_propensity(np.zeros((5, 1), dtype=int), [np.zeros((5, 1), dtype=int)], [1])
    assert found.pmse.tolist() == [0]
    assert math.isnan(found.ratio[0])


@pytest.mark.parametrize(("originals", "synthetics"), [(400, 400), (400, 1200)])
def test_a_copy_from_a_fitted_law_has_ratio_one(originals: int, synthetics: int) -> None:
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(600):
        original = draw_records(originals, rng)
        copy = original[rng.integers(0, originals, synthetics)]
        ratios.append(compare_propensity(original, [copy], SIZES).ratio[0])
    error = np.std(ratios, ddof=1) / math.sqrt(len(ratios))
    assert abs(np.mean(ratios) - 1) < 4 * error
    assert error < 0.04


@pytest.mark.parametrize(("originals", "synthetics"), [(400, 400), (400, 1200)])
def test_another_sample_has_sample_ratio_one(originals: int, synthetics: int) -> None:
    rng = np.random.default_rng(6)
    found = [
        compare_propensity(draw_records(originals, rng), [draw_records(synthetics, rng)], SIZES)
        for _ in range(600)
    ]
    ratios = np.array([one.sample_ratio[0] for one in found])
    error = ratios.std(ddof=1) / math.sqrt(len(ratios))
    assert abs(ratios.mean() - 1) < 4 * error
    # Its ratio to a copy from a fitted law is not 1 but N/n_o, far from 1 at this precision.
    assert abs(np.mean([one.ratio[0] for one in found]) - (originals + synthetics) / originals) < 0.3


def test_a_copy_from_the_posterior_predictive_law_is_like_another_sample() -> None:
    rng = np.random.default_rng(7)
    ratios = []
    for _ in range(600):
        original = draw_records(400, rng)
        cells = np.ravel_multi_index(tuple(original.T), SIZES)
        # A Dirichlet law with next to no prior weight: the posterior of the shares of the occupied cells.
        counts = np.bincount(cells, minlength=24)
        drawn = rng.multinomial(400, rng.dirichlet(counts[counts > 0]))
        copy = np.column_stack(np.unravel_index(np.repeat(np.flatnonzero(counts), drawn), SIZES))
        ratios.append(compare_propensity(original, [copy], SIZES).sample_ratio[0])
    error = np.std(ratios, ddof=1) / math.sqrt(len(ratios))
    assert abs(np.mean(ratios) - 1) < 4 * error


def test_a_bad_copy_is_caught() -> None:
    rng = np.random.default_rng(8)
    original = draw_records(2000, rng)
    even = np.column_stack([rng.integers(0, size, 2000) for size in SIZES])
    found = compare_propensity(original, [original[rng.integers(0, 2000, 2000)], even], SIZES)
    assert found.ratio[0] < 4
    assert found.ratio[1] > 50


def test_main_effects_do_not_see_what_goes_together() -> None:
    rng = np.random.default_rng(9)
    original = draw_records(2000, rng)
    shuffled = np.column_stack([rng.permutation(column) for column in original.T])
    found = compare_propensity(original, [shuffled], SIZES)
    assert np.isclose(found.pmse[0], 0)
    assert compare_tables(original, [shuffled], SIZES, "ABC").ratio.max() > 50


def test_a_fit_that_did_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(10)
    original = draw_records(200, rng)
    bad = np.column_stack([rng.integers(0, size, 200) for size in SIZES])
    monkeypatch.setattr(utility_propensity, "MOST_STEPS", 1)
    found = compare_propensity(original, [original, bad], SIZES)
    assert found.converged.tolist() == [True, False]
    assert found.doubt == "The regression did not converge for 1 of 2 copies: 2."


def test_files_that_cannot_be_compared_are_refused_in_words() -> None:
    codes = np.array([[0, 1], [1, 0]])
    with pytest.raises(InvalidKeys, match="No synthetic file"):
        compare_propensity(codes, [], (2, 2))
    with pytest.raises(InvalidKeys, match="Column 0 of copy 1 has codes outside its 1 levels"):
        compare_propensity(codes * [[0, 1]], [codes], (1, 2))
