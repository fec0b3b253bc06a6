"""The Lancaster additive model as a model: options, odd samples, diagnostics, the published shape."""

import pickle
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from keyhole.data import census_income
from keyhole.errors import FitFailed, ForbiddenRecords, UnknownModel
from keyhole.inference.fit import Diagnostic
from keyhole.inference.model_path import ChosenOnPath
from keyhole.models.lancaster import margins as margins_module
from keyhole.models.lancaster import renormaliser as renormaliser_module
from keyhole.models.lancaster.model import LancasterAdditive, LancasterFit
from keyhole.population.sample import Sample
from keyhole.risk.assess import risk_of_laws
from keyhole.table.contingency import ContingencyTable
from tests.models.lancaster import twins
from tests.models.sequential.people import dependent_people, keys_of, sample_of_codes, zeros_of


def fitted(sample: Sample, **options: object) -> LancasterFit:
    return LancasterAdditive(**options).fit(sample, rng=np.random.default_rng(0))  # type: ignore[arg-type]


def lines_of(fit: LancasterFit) -> dict[str, Diagnostic]:
    return {line.name: line for line in fit.diagnostics}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("order", 1),
        ("order", 4),
        ("shrinkage", "much"),
        ("shrinkage", 1.5),
        ("shrinkage", "-0.1"),
        ("shrinkage", "nan"),
        ("budget", 0),
    ],
)
def test_options_out_of_range_are_refused(option: str, value: object) -> None:
    with pytest.raises(UnknownModel, match=f"The option {option} must be .*, found .*{value}"):
        LancasterAdditive(**{option: value})  # type: ignore[arg-type]


def test_settings_are_the_options() -> None:
    assert LancasterAdditive(3, "0.5", 10).settings == {"order": 3, "shrinkage": "0.5", "budget": 10}
    assert LancasterAdditive().name == "lancaster"


def test_no_shrinkage_is_independence() -> None:
    sample = twins.sample_for()
    table = twins.relative_frequencies(sample)
    q, _ = twins.dense_law(table, 2)
    fit = fitted(sample, shrinkage=0)
    margins_cells = sample.table.dense()[0][sample.table.uniques]
    np.testing.assert_allclose(fit.probability, q[tuple(margins_cells.T)], rtol=1e-12)


@pytest.mark.parametrize(("order", "zeros", "weighted"), twins.CASES)
def test_probabilities_are_those_of_the_dense_table(order: int, zeros: bool, weighted: bool) -> None:
    sample = twins.sample_for(zeros, weighted)
    q, S = twins.dense_law(twins.relative_frequencies(sample), order)
    p = np.maximum(q * (1.0 + 0.7 * S), 0.0) * twins.admissible(sample)
    at = tuple(sample.table.dense()[0][sample.table.uniques].T)
    fit = fitted(sample, order=order, shrinkage=0.7)
    np.testing.assert_allclose(fit.probability, (p / p.sum())[at], rtol=1e-8)
    assert fit.shrinkage == 0.7


def test_three_keys_of_third_order_in_full_are_the_relative_frequencies() -> None:
    codes = twins.dependent_people(300, rng=np.random.default_rng(3))[:, 3:]
    sample = sample_of_codes(codes, 5000, (4, 3, 2))
    fit = fitted(sample, order=3, shrinkage=1)
    np.testing.assert_allclose(fit.probability, 1 / 300, rtol=1e-9)


def test_weights_tilt_the_unsampled_towards_cells_seldom_sampled() -> None:
    sample = twins.sample_for(weighted=True)
    sample = replace(sample, population_size=round(sample.table.weights.sum()))  # type: ignore[union-attr]
    fit = fitted(sample, shrinkage=0.4)
    law = next(fit.unsampled())
    assert sample.table.weights is not None
    weight = sample.table.weights[sample.table.uniques]
    outside = law.trials * law.probability
    np.testing.assert_allclose(
        outside, sample.population_size * fit.probability * (1 - 1 / weight), rtol=1e-3, atol=1e-12
    )


def test_equal_weights_are_no_weights() -> None:
    sample = twins.sample_for()
    table = replace(sample.table, weights=36.0 * sample.table.counts)
    one, other = fitted(sample), fitted(replace(sample, table=table))
    np.testing.assert_allclose(one.probability, other.probability, rtol=1e-12)
    assert one.shrinkage == other.shrinkage
    for law, same in zip(one.unsampled(), other.unsampled(), strict=True):
        np.testing.assert_allclose(law.mean_match(), same.mean_match(), rtol=1e-9)


def test_same_seed_same_law_also_after_pickling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renormaliser_module, "CELLS", 2000)
    sample = twins.sample_for()
    one, other = fitted(sample, budget=1), pickle.loads(pickle.dumps(fitted(sample, budget=1)))
    np.testing.assert_array_equal(one.probability, other.probability)
    different = LancasterAdditive(budget=1).fit(sample, rng=np.random.default_rng(1))
    assert not np.array_equal(one.probability, different.probability)


@pytest.mark.parametrize(
    ("codes", "levels"),
    [
        ([[0, 0], [1, 2]], (2, 3)),
        ([[0, 0], [0, 0]], (2, 3)),
        ([[0, 0]], (2, 3)),
        ([[0], [1], [1], [2]], (3,)),
        ([[0, 1, 0], [0, 2, 0], [0, 2, 0]], (1, 3, 4)),
        ([[1, 1]] * 5, (3, 2)),
        (np.stack([np.arange(30), np.arange(30) % 7, np.arange(30) % 4], axis=1), (30, 7, 4)),
    ],
    ids=["two records", "two alike", "one", "one key", "keys with one level", "one cell", "everyone unique"],
)
@pytest.mark.parametrize("order", [2, 3])
def test_odd_samples_give_finite_risk(codes: object, levels: tuple[int, ...], order: int) -> None:
    sample = sample_of_codes(np.asarray(codes), 1000, levels)
    fit = fitted(sample, order=order)
    tau1, tau2, _ = risk_of_laws(fit.unsampled(), rng=np.random.default_rng(0))
    assert 0 <= tau1.estimate <= tau2.estimate <= sample.uniques
    assert np.isfinite([tau1.low, tau1.high, tau2.low, tau2.high]).all()
    assert np.isfinite(fit.shrinkage_path.held_out.score).all()


def test_a_census_is_certain() -> None:
    codes = dependent_people(600, rng=np.random.default_rng(51))
    for law in fitted(sample_of_codes(codes, 600)).unsampled():
        np.testing.assert_array_equal(law.prob_none(), 1.0)
        np.testing.assert_allclose(law.mean_match(), 1.0, rtol=1e-12)


def test_the_path_is_kept_and_told() -> None:
    fit = fitted(twins.sample_for(), shrinkage="0.33")
    path = fit.shrinkage_path
    assert isinstance(fit, ChosenOnPath)
    assert len(fit.path.steps) == len(path.shrinkage) == 22
    assert fit.path.steps[fit.path.chosen].value == fit.shrinkage == 0.33
    law = next(fit.unsampled())
    assert fit.path.steps[fit.path.chosen].tau1 == pytest.approx(law.prob_none().sum())
    assert fit.path.steps[fit.path.chosen].tau2 == pytest.approx(law.mean_match().sum())
    words = lines_of(fit)["path"].words
    assert f"{path.tau1[0]:.1f}" in words
    assert f"{path.renormaliser.value[-1]:.3f}" in words
    assert "would have chosen" in lines_of(fit)["lambda"].words


def test_an_edge_of_the_path_is_said() -> None:
    rng = np.random.default_rng(9)
    independent = np.stack([rng.integers(0, size, 400) for size in (9, 6, 5, 4)], axis=1)
    low = lines_of(fitted(sample_of_codes(independent, 9000, (9, 6, 5, 4))))["lambda"]
    assert (low.value, low.verdict) == (0.0, "caution")
    two = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [300, 40, 60, 200], axis=0)
    high = lines_of(fitted(sample_of_codes(two, 9000, (2, 2))))["lambda"]
    assert (high.value, high.verdict) == (1.0, "caution")
    assert "edge" in low.words
    assert "edge" in high.words


def test_a_choice_that_the_bound_decided_is_said() -> None:
    fit = fitted(twins.independent_sample((30, 30)))
    line = lines_of(fit)["lambda"]
    assert line.value < 0.2
    assert line.verdict == "caution"
    assert "at least 95% of them" in line.words
    assert "without it lambda = 1, with none for 74.0%, scores best" in line.words
    assert lines_of(fit)["held_out_without_probability"].verdict == "good"
    assert fit.path.steps[-1].statistics["held_out_without_probability"] == pytest.approx(0.74)
    given = lines_of(fitted(twins.independent_sample((30, 30)), shrinkage=1))
    assert f"would have chosen {line.value:g}" in given["lambda"].words
    assert given["held_out_without_probability"].verdict == "caution"
    assert "bound" not in lines_of(fitted(twins.sample_for(size=5000)))["lambda"].words


def test_seen_combinations_without_probability_are_counted_and_unique() -> None:
    """A handful of people who combine what hardly ever goes together: most pairs fall short of independence."""
    common = np.repeat(np.eye(6, dtype=np.int64), 60, axis=0)
    odd = np.array([[1, 1, 1, 1, 1, 1]])
    sample = sample_of_codes(np.concatenate([common, odd]), 10_000, (2,) * 6)
    fit = fitted(sample, shrinkage=1)
    line = lines_of(fit)["uniques_without_probability"]
    assert (line.value, line.verdict) == (1, "caution")
    assert next(fit.unsampled()).prob_none().tolist() == [1.0]
    assert lines_of(fitted(sample, shrinkage=0))["uniques_without_probability"].verdict == "good"


def test_much_negative_probability_is_lack_of_fit() -> None:
    sample = twins.sample_for()
    assert lines_of(fitted(sample, shrinkage=1))["renormaliser"].verdict == "caution"
    assert lines_of(fitted(sample, shrinkage=0.1))["renormaliser"].verdict == "good"


def test_a_table_beyond_the_budget_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renormaliser_module, "CELLS", 20_000)
    sample = twins.sample_for()
    exact, sampled = fitted(sample, shrinkage=0.8), fitted(sample, shrinkage=0.8, budget=1)
    assert "standard error" in lines_of(sampled)["renormaliser"].words
    assert "standard error" not in lines_of(exact)["renormaliser"].words
    g = exact.shrinkage_path.place(0.8)
    c, estimate = exact.shrinkage_path.renormaliser, sampled.shrinkage_path.renormaliser
    assert abs(c.value[g] - estimate.value[g]) < 4 * estimate.error[g]


def test_weights_are_spoken_of() -> None:
    assert lines_of(fitted(twins.sample_for(weighted=True)))["design_effect"].value > 1.0  # type: ignore[operator]
    assert "design_effect" not in lines_of(fitted(twins.sample_for()))


def test_records_in_impossible_cells_are_refused() -> None:
    codes = dependent_people(600, rng=np.random.default_rng(54))
    with pytest.raises(ForbiddenRecords):
        fitted(sample_of_codes(codes, 9000, zeros=zeros_of()))


def test_margins_too_large_to_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(margins_module, "MOST_ENTRIES", 1000)
    fitted(twins.sample_for())
    with pytest.raises(FitFailed, match=r"more than 1,000\. Recode the key with 9 levels, or use order=2"):
        fitted(twins.sample_for(), order=3)


def test_the_published_shape_on_real_people() -> None:
    """Takemura's table: the estimate falls from lambda = 0 to 1, and renormalising raises it, more and more.

    Keys about the family, as in the paper, on which the additive law leaves few uniques without probability.
    """
    names = ("HHREL8", "FILER6", "AGE10", "MARITAL7", "EDUC17", "WKSTAT8", "CLASSWKR9")
    columns = duckdb.sql(f"SELECT {', '.join(names)} FROM '{census_income.path()}'").fetchnumpy()
    codes = np.stack([np.unique(columns[name].astype(str), return_inverse=True)[1] for name in names], axis=1)
    levels = tuple(int(column.max()) + 1 for column in codes.T)
    chosen = np.random.default_rng(1).choice(len(codes), 1000, replace=False)
    table = ContingencyTable.from_codes(keys_of(levels), codes[chosen])
    path = fitted(Sample(table, len(codes))).shrinkage_path
    places = [path.place(shrinkage) for shrinkage in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    tau1, plain, c = path.tau1[places], path.tau1_plain[places], path.renormaliser.value[places]
    assert (np.diff(tau1) < 0).all()
    assert (np.diff(plain) < 0).all()
    assert tau1[0] == plain[0]
    assert (tau1[2:] > plain[2:]).all()
    assert (np.diff(tau1 - plain)[1:] > 0).all()
    assert (np.diff(c)[1:] > 0).all()
