"""The combining rules, against numbers worked by hand and normal means drawn again and again."""

import math

import numpy as np
import pytest

from keyhole.errors import InputError
from keyhole.synthesis.combining import Combined, combine_fully_synthetic, combine_partially_synthetic

TRUTH = 3.0
SD = 2.0


def drawn_means(
    *, files: int, original: int, synthetic: int, repeats: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means and their variances in files drawn from the posterior predictive law of a normal mean, SD known.

    The prior is flat, so the posterior of the mean is normal about the mean of the original. Each column is
    another original with its own files.
    """
    rng = np.random.default_rng(seed)
    found = rng.normal(TRUTH, SD / math.sqrt(original), repeats)
    parameter = rng.normal(found, SD / math.sqrt(original), (files, repeats))
    means = rng.normal(parameter, SD / math.sqrt(synthetic))
    return means, np.full_like(means, SD**2 / synthetic)


def replaced_means(
    *, files: int, records: int, replaced: float, repeats: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same where a share of the records of the original is replaced and the rest stays as it is.

    The replaced records alone say what they are replaced by, as the rule supposes: on average over many files
    the mean of the original comes back.
    """
    rng = np.random.default_rng(seed)
    gone = round(replaced * records)
    stays = rng.normal(TRUTH, SD / math.sqrt(records - gone), repeats)
    goes = rng.normal(TRUTH, SD / math.sqrt(gone), repeats)
    parameter = rng.normal(goes, SD / math.sqrt(gone), (files, repeats))
    comes = rng.normal(parameter, SD / math.sqrt(gone))
    means = (gone * comes + (records - gone) * stays) / records
    return means, np.full_like(means, SD**2 / records)


def covered(found: Combined) -> float:
    return float(((found.low <= TRUTH) & (found.high >= TRUTH)).mean())


def off(values: np.ndarray, expected: float) -> float:
    """How many Monte Carlo standard errors the mean of ``values`` is from ``expected``."""
    return float((values.mean() - expected) / (values.std(ddof=1) / math.sqrt(len(values))))


def test_fully_synthetic_by_hand() -> None:
    # b = 1, u = 1/4, m = 4: T = 5/4 - 1/4 = 1, nu = 3 (1 - (1/4)/(5/4))^2 = 3 * 16/25.
    estimates = 2 + np.sqrt(np.array([0.75, 0.75, 0.75, 0.75])) * [1, -1, 1, -1]
    found = combine_fully_synthetic(estimates, [0.1, 0.2, 0.3, 0.4])
    assert np.isclose(found.estimate, 2)
    assert np.isclose(found.variance, 1)
    assert np.isclose(found.standard_error, 1)
    assert np.isclose(found.degrees_of_freedom, 1.92)
    assert not found.mended
    assert np.isclose(found.high - 2, 2 - found.low)


def test_partially_synthetic_by_hand() -> None:
    # b = 1, u = 1/4, m = 4: T = 1/4 + 1/4, nu = 3 (1 + 1)^2.
    estimates = 2 + np.sqrt(np.array([0.75, 0.75, 0.75, 0.75])) * [1, -1, 1, -1]
    found = combine_partially_synthetic(estimates, [0.1, 0.2, 0.3, 0.4])
    assert np.isclose(found.variance, 0.5)
    assert np.isclose(found.degrees_of_freedom, 12)
    assert not found.mended


def test_the_interval_is_that_of_a_cauchy_law_at_one_degree_of_freedom() -> None:
    # m = 2, b = 1/2, u = 0: nu = 1, whose quantiles are tan(pi (p - 1/2)).
    found = combine_fully_synthetic([1.0, 2.0], [0.0, 0.0], level=0.5)
    assert np.isclose(found.degrees_of_freedom, 1)
    assert np.isclose(found.high - 1.5, math.sqrt(0.75) * math.tan(math.pi * 0.25))
    assert found.level == 0.5


def test_a_negative_variance_is_mended_by_the_sizes() -> None:
    found = combine_fully_synthetic([1.0, 1.1, 0.9], [0.4, 0.4, 0.4], synthetic_size=500, original_size=1000)
    assert found.mended
    assert np.isclose(found.variance, 0.2)
    assert np.isclose(found.degrees_of_freedom, 2)
    assert np.isclose(combine_fully_synthetic([1.0, 1.1, 0.9], [0.4, 0.4, 0.4]).variance, 0.4)


def test_a_variance_just_above_zero_has_an_unbounded_interval() -> None:
    # (1 + 1/2) b = 0.75 with b = 1/2: a within variance a little less leaves T > 0 and nu near 0.
    found = combine_fully_synthetic([1.0, 2.0], [0.7499, 0.7499])
    assert not found.mended
    assert found.variance > 0
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_equal_estimates_leave_the_variance_within() -> None:
    found = combine_partially_synthetic([5.0, 5.0], [0.04, 0.04])
    assert np.isclose(found.variance, 0.04)
    assert math.isinf(found.degrees_of_freedom)
    assert np.isclose(found.high, 5 + 1.959963984540054 * 0.2)
    nothing = combine_fully_synthetic([5.0, 5.0], [0.0, 0.0])
    assert (float(nothing.low), float(nothing.high), bool(nothing.mended)) == (5.0, 5.0, False)


@pytest.mark.parametrize("combine", [combine_fully_synthetic, combine_partially_synthetic])
def test_numbers_side_by_side_are_combined_as_if_alone(combine) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    estimates, variances = rng.normal(size=(5, 7)), rng.uniform(0.1, 3, size=(5, 7))
    together = combine(estimates, variances)
    for j in range(7):
        alone = combine(estimates[:, j], variances[:, j])
        for name in ("estimate", "variance", "standard_error", "degrees_of_freedom", "low", "high", "mended"):
            assert np.allclose(getattr(together, name)[j], getattr(alone, name), rtol=1e-12, atol=0)
    with pytest.raises(ValueError, match="read-only"):
        together.estimate[0] = 1


@pytest.mark.parametrize("synthetic", [200, 1000, 5000])
@pytest.mark.parametrize("files", [2, 5, 20])
def test_the_fully_synthetic_variance_is_unbiased(files: int, synthetic: int) -> None:
    means, within = drawn_means(files=files, original=1000, synthetic=synthetic, repeats=20_000, seed=2)
    q, b, u = means.mean(axis=0), means.var(axis=0, ddof=1), within.mean(axis=0)
    found = combine_fully_synthetic(means, within, synthetic_size=synthetic, original_size=1000)
    assert np.allclose(found.variance[~found.mended], ((1 + 1 / files) * b - u)[~found.mended])
    assert np.allclose(found.variance[found.mended], SD**2 / 1000)
    # Before it is mended, T has the expectation of the squared error.
    true = SD**2 * (1 / 1000 + (1 / 1000 + 1 / synthetic) / files)
    assert abs(off((1 + 1 / files) * b - u, true)) < 4
    assert abs(off((q - TRUTH) ** 2, true)) < 4


@pytest.mark.parametrize(("files", "synthetic"), [(20, 5000), (50, 5000)])
def test_fully_synthetic_intervals_cover(files: int, synthetic: int) -> None:
    means, within = drawn_means(files=files, original=1000, synthetic=synthetic, repeats=20_000, seed=3)
    found = combine_fully_synthetic(means, within, synthetic_size=synthetic, original_size=1000)
    assert 0.945 < covered(found) < 0.957


@pytest.mark.parametrize(("files", "synthetic"), [(5, 1000), (20, 1000), (20, 200)])
def test_with_few_small_files_intervals_cover_too_much_but_not_too_little(files: int, synthetic: int) -> None:
    means, within = drawn_means(files=files, original=1000, synthetic=synthetic, repeats=20_000, seed=4)
    found = combine_fully_synthetic(means, within, synthetic_size=synthetic, original_size=1000)
    assert covered(found) > 0.95
    assert found.mended.mean() > 0.01
    kept = found.mended
    inside = (found.low[kept] <= TRUTH) & (found.high[kept] >= TRUTH)
    assert 0.91 < inside.mean() < 0.99


@pytest.mark.parametrize("replaced", [0.2, 0.5, 0.9])
def test_partially_synthetic_intervals_cover(replaced: float) -> None:
    means, within = replaced_means(files=5, records=1000, replaced=replaced, repeats=40_000, seed=5)
    found = combine_partially_synthetic(means, within)
    assert 0.945 < covered(found) < 0.955
    # The files differ by the mean and by the values that the replaced records are given.
    true = SD**2 / 1000 * (1 + 2 * replaced / 5)
    assert abs(off(found.variance, true)) < 4
    assert abs(off((found.estimate - TRUTH) ** 2, true)) < 4


@pytest.mark.parametrize(("synthetic", "side"), [(200, 1), (5000, -1)])
def test_the_wrong_rule_is_seen_to_be_wrong(synthetic: int, side: int) -> None:
    means, within = drawn_means(files=20, original=1000, synthetic=synthetic, repeats=20_000, seed=6)
    wrong = combine_partially_synthetic(means, within)
    true = SD**2 * (1 / 1000 + (1 / 1000 + 1 / synthetic) / 20)
    assert side * off(wrong.variance, true) > 100
    assert covered(wrong) > 0.99 if side == 1 else covered(wrong) < 0.8


def test_for_files_of_the_size_of_the_original_the_two_rules_agree_on_average() -> None:
    means, within = drawn_means(files=5, original=1000, synthetic=1000, repeats=20_000, seed=7)
    steady = combine_partially_synthetic(means, within)
    assert abs(off(steady.variance, SD**2 * 1.4 / 1000)) < 4
    assert 0.94 < covered(steady) < 0.956
    wide = combine_fully_synthetic(means, within)
    assert np.median(wide.high - wide.low) > 2.5 * np.median(steady.high - steady.low)


def test_what_cannot_be_combined_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="two synthetic files or more, found 1"):
        combine_fully_synthetic([1.0], [1.0])
    with pytest.raises(InputError, match=r"\(2,\) and variances of shape \(3,\)"):
        combine_partially_synthetic([1.0, 2.0], [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="finite"):
        combine_partially_synthetic([1.0, math.nan], [1.0, 1.0])
    with pytest.raises(InputError, match="not negative"):
        combine_partially_synthetic([1.0, 2.0], [1.0, -1.0])
    with pytest.raises(InputError, match="between 0 and 1; found 95"):
        combine_partially_synthetic([1.0, 2.0], [1.0, 1.0], level=95)
    with pytest.raises(InputError, match="both or neither"):
        combine_fully_synthetic([1.0, 2.0], [1.0, 1.0], synthetic_size=100)
