"""Log-linear models as risk models: the scale of the risk, their ways, options and warnings."""

import numpy as np
import pytest

from keyhole.errors import UnknownKeyVariable, UnknownModel
from keyhole.inference.fit import RiskModel
from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import model_named
from keyhole.models.loglinear import means
from keyhole.models.loglinear.checks import diagnose
from keyhole.models.loglinear.lasso_error import lasso_noise
from keyhole.models.loglinear.model import LogLinear, LogLinearFit, TwoWay
from keyhole.models.loglinear.penalised import fit_penalised
from keyhole.models.loglinear.penalised_fit import penalised_design
from keyhole.population.sample import Sample
from keyhole.risk.assess import risk_of_laws
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules

SIZES = (8, 6, 5, 4, 4)
KEYS = tuple(
    KeyVariable(name, tuple(f"{name}{x}" for x in range(size))) for name, size in zip("ABCDE", SIZES, strict=True)
)


def pair_law(strength: float, seed: int = 1) -> np.ndarray:
    """Cell probabilities with two-way interactions of a given strength, uneven margins."""
    rng = np.random.default_rng(seed)
    log_p = np.zeros(SIZES)
    for j, size in enumerate(SIZES):
        shape = [1] * len(SIZES)
        shape[j] = size
        log_p = log_p + (-0.5 * np.arange(size)).reshape(shape)
        for k in range(j):
            shape[k] = SIZES[k]
            log_p = log_p + strength * rng.standard_normal((SIZES[k], size)).reshape(shape)
            shape[k] = 1
    p = np.exp(log_p)
    return np.asarray(p / p.sum())


def drawn(p: np.ndarray, people: int, fraction: float, rng: np.random.Generator) -> tuple[Sample, float, float]:
    """A population of Poisson cells, a sample of it, and its true tau1 and tau2."""
    population = rng.poisson(people * p.ravel())
    taken = rng.binomial(population, fraction)
    cells = np.stack(np.unravel_index(np.flatnonzero(taken), SIZES), axis=1)
    counts = taken[taken > 0].astype(np.int64)
    table = ContingencyTable.from_codes(KEYS, cells, counts)
    alone = population[taken == 1]
    return Sample(table, int(population.sum())), float((alone == 1).sum()), float((1 / alone).sum())


def relative_errors(model: RiskModel, p: np.ndarray, people: int, fraction: float, replicates: int) -> np.ndarray:
    """z of the mean error of tau1 and tau2 over replicates, and the same for a law on the scale of the sample."""
    errors, wrong = [], []
    for rng in np.random.default_rng(7).spawn(replicates):
        sample, tau1, tau2 = drawn(p, people, fraction, rng)
        law = next(iter(model.fit(sample, rng=rng).unsampled()))
        errors.append([law.prob_none().sum() - tau1, law.mean_match().sum() - tau2])
        scaled = (
            type(law)(law.mean * fraction, law.noise) if hasattr(law, "noise") else type(law)(law.mean * fraction)
        )
        wrong.append([scaled.prob_none().sum() - tau1, scaled.mean_match().sum() - tau2])
    return np.array(
        [np.mean(e, axis=0) / (np.std(e, axis=0, ddof=1) / np.sqrt(replicates)) for e in (errors, wrong)]
    )


@pytest.mark.parametrize("fraction", [0.01, 0.05])
def test_independence_is_unbiased_on_its_own_populations(fraction: float) -> None:
    right, wrong = relative_errors(model_named("independence", draws=2), pair_law(0.0), 60_000, fraction, 60)
    assert np.abs(right).max() < 3
    assert np.abs(wrong).min() > 10


@pytest.mark.parametrize("fraction", [0.01, 0.05])
def test_a_decomposable_model_is_unbiased_on_its_own_populations(fraction: float) -> None:
    """A chain of two pairs, large enough that no margin is sparse."""
    p = pair_law(0.0)
    joint = pair_law(0.4).sum(axis=(2, 3, 4))
    p = p / p.sum(axis=(2, 3, 4), keepdims=True) * joint[:, :, None, None, None]
    model = LogLinear("A*B", draws=2)
    right, wrong = relative_errors(model, p, round(10_000 / fraction), fraction, 60)
    assert np.abs(right).max() < 3
    assert np.abs(wrong).min() > 10


def some_sample(size: int = 2_000, people: int = 40_000, zeros: StructuralZeros | None = None) -> Sample:
    rng = np.random.default_rng(3)
    p = pair_law(0.6)
    if zeros is not None:
        cells = np.stack(np.unravel_index(np.arange(p.size), SIZES), axis=1)
        p = np.where(zeros.contains(cells).reshape(SIZES), 0.0, p)
        p = p / p.sum()
    codes = np.stack(np.unravel_index(rng.choice(p.size, size, p=p.ravel()), SIZES), axis=1)
    return Sample(ContingencyTable.from_codes(KEYS, codes), people, zeros)


def fitted(model: LogLinear | TwoWay, sample: Sample) -> LogLinearFit:
    return model.fit(sample, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("formula", "way"),
    [
        ("independence", "closed form"),
        ("A*B + B*C", "closed form"),
        ("A*B + B*C + C*D + D*A", "junction tree"),
        ("two-way", "active cells"),
    ],
)
def test_each_model_is_fitted_the_way_that_suits_it(
    formula: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(means, "FEWEST_TREE_CELLS", 1)
    fit = fitted(LogLinear(formula), some_sample())
    assert fit.means.way == way
    assert fit.means.converged
    assert ("estimation error" in fit.interval_leaves_out) is (fit.means.noise is None)


def test_a_term_of_very_many_keys_has_more_empty_entries_than_64_bits_count() -> None:
    rng = np.random.default_rng(2)
    keys = tuple(KeyVariable(f"V{j}", ("a", "b", "c", "d")) for j in range(40))
    table = ContingencyTable.from_codes(keys, rng.integers(0, 4, (50, 40)))
    fit = fitted(LogLinear("*".join(key.name for key in keys)), Sample(table, 5000))
    assert fit.means.empty == 4**40 - 50


def test_empty_entries_that_a_rule_excludes_are_not_counted() -> None:
    rng = np.random.default_rng(3)
    codes = np.stack([rng.integers(len(key), size=200) for key in KEYS], axis=1)
    codes = codes[~((codes[:, 0] >= 6) & (codes[:, 1] >= 4))]
    table = ContingencyTable.from_codes(KEYS, codes)
    zeros = StructuralZeros(KEYS, parse_zero_rules("- {A: [A6, A7], B: [B4, B5]}", "the rules"))
    pair = ((0, 1),)
    without, within = (means.empty_entries(Sample(table, 5000, rules), pair) for rules in (None, zeros))
    assert without == within + 4


def test_a_model_with_more_effects_than_records_is_not_trusted() -> None:
    codes = np.random.default_rng(4).integers(0, SIZES, (60, 5))
    fit = fitted(TwoWay(), Sample(ContingencyTable.from_codes(KEYS, codes), 5000))
    found = {check.name: check for check in fit.diagnostics}
    assert (fit.means.parameters or 0) > 60
    assert found["parameters"].verdict == "untrusted"


def test_thin_margins_are_told() -> None:
    """Independent keys of three hundred levels, of which a thousand records show a few people each."""
    keys = tuple(KeyVariable(f"V{j}", tuple(map(str, range(300)))) for j in range(2))
    codes = np.random.default_rng(5).integers(0, 300, (1000, 2))
    found = {
        check.name: check
        for check in fitted(
            LogLinear("independence"), Sample(ContingencyTable.from_codes(keys, codes), 20_000)
        ).diagnostics
    }
    assert found["thin_margins"].verdict == "caution"
    assert "understates" in found["thin_margins"].words
    plenty = {check.name: check for check in fitted(LogLinear("independence"), some_sample()).diagnostics}
    assert plenty.get("thin_margins") is None or plenty["thin_margins"].verdict == "good"


def test_ways_agree_where_more_than_one_leads_there() -> None:
    """Rules that exclude nobody send a decomposable model over the cells."""
    sample = some_sample()
    zeros = StructuralZeros(KEYS, parse_zero_rules("- {A: A7, B: B5, C: C4, D: D3, E: E3}", "the rules"))
    assert not zeros.violations(sample.table).any()
    plain = fitted(LogLinear("A*B + B*C"), sample)
    visited = fitted(LogLinear("A*B + B*C"), Sample(sample.table, sample.population_size, zeros))
    assert visited.means.way == "active cells"
    np.testing.assert_allclose(visited.means.fitted, plain.means.fitted, rtol=2e-3)
    ratio = visited.means.noise.std(axis=0) / plain.means.noise.std(axis=0)
    assert abs(ratio.mean() - 1) < 0.1


def test_structural_zeros_take_their_mass_away() -> None:
    zeros = StructuralZeros(KEYS, parse_zero_rules("- {A: [A0, A1], B: [B0, B1]}", "the rules"))
    sample = some_sample(zeros=zeros)
    with_zeros = fitted(TwoWay(), sample)
    blind = LogLinear("independence").fit(
        Sample(sample.table, sample.population_size), rng=np.random.default_rng(0)
    )
    known = LogLinear("independence").fit(sample, rng=np.random.default_rng(0))
    assert with_zeros.means.converged
    assert not np.allclose(blind.means.fitted, known.means.fitted, rtol=0.05)


def test_the_interval_is_about_the_estimate_and_wider_with_the_estimation_error() -> None:
    fit = fitted(TwoWay(draws=300), some_sample())
    law = next(iter(fit.unsampled()))
    tau1, tau2, _ = risk_of_laws([law], rng=np.random.default_rng(1))
    assert tau1.low < tau1.estimate < tau1.high
    assert tau2.low < tau2.estimate < tau2.high
    plain = type(law)(law.mean, np.zeros((2, len(law.mean))))
    narrow = risk_of_laws([plain], rng=np.random.default_rng(1))[1]
    assert tau2.high - tau2.low > 1.2 * (narrow.high - narrow.low)


def test_what_should_be_known_is_said() -> None:
    lines = {line.name: line for line in fitted(TwoWay(), some_sample(400)).diagnostics}
    assert lines["empty_margins"].verdict == "caution"
    assert "does not exist" in lines["empty_margins"].words
    saturated = LogLinear("A*B*C*D*E").fit(some_sample(), rng=np.random.default_rng(0))
    assert "untrusted" in {line.verdict for line in saturated.diagnostics if line.name == "saturated"}
    assert "saturated" not in {line.name for line in fitted(LogLinear("independence"), some_sample()).diagnostics}


def test_bad_options_are_refused() -> None:
    with pytest.raises(UnknownModel, match="draws"):
        TwoWay(draws=1)
    with pytest.raises(UnknownModel, match="cannot be read"):
        fitted(LogLinear("A**B"), some_sample())
    with pytest.raises(UnknownKeyVariable, match="not a key"):
        fitted(LogLinear("A*Z"), some_sample())
    with pytest.raises(UnknownModel, match="b1 or b2"):
        model_named("skinner-shlomo", criterion="b3")
    with pytest.raises(UnknownModel, match="folds"):
        model_named("lasso", folds=1)


def test_weights_that_are_equal_change_nothing() -> None:
    sample = some_sample()
    table = sample.table
    weights = table.counts * (sample.population_size / sample.sample_size)
    weighted = Sample(ContingencyTable(table.keys, table.cells, table.counts, weights), sample.population_size)
    for formula in ("independence", "two-way"):
        one = next(iter(fitted(LogLinear(formula), sample).unsampled()))
        other = next(iter(fitted(LogLinear(formula), weighted).unsampled()))
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6)


def test_models_that_choose_show_their_path() -> None:
    sample = some_sample(300)
    searched = model_named("skinner-shlomo").fit(sample, rng=np.random.default_rng(0))
    penalised = model_named("lasso", lambdas=4, folds=2).fit(sample, rng=np.random.default_rng(0))
    for fit in (searched, penalised):
        assert len(fit.path.steps) > 1
        chosen = fit.path.steps[fit.path.chosen]
        law = next(iter(fit.unsampled()))
        assert law.prob_none().sum() == pytest.approx(chosen.tau1, rel=0.02)
        assert all(line.words for line in fit.diagnostics)


def test_terms_left_out_are_warned_of_in_the_direction_in_which_they_err() -> None:
    """Too few terms overstate risk, empty margins of a complete model understate it."""
    few = {line.name: line for line in fitted(LogLinear("A*B"), some_sample(400)).diagnostics}
    assert "overstated" in few["pairs_left_out"].words
    assert few["pairs_left_out"].value == 9
    assert "understates" not in few["empty_margins"].words
    all_pairs = {line.name: line for line in fitted(TwoWay(), some_sample(400)).diagnostics}
    assert "pairs_left_out" not in all_pairs
    assert "understates risk" in all_pairs["empty_margins"].words


def test_an_information_matrix_from_part_of_the_cells_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = fitted(TwoWay(), some_sample())
    assert "information_cells" not in {line.name for line in diagnose(fit.means)}
    monkeypatch.setattr("keyhole.models.loglinear.checks.MOST_SUMMED", 10)
    told = {line.name: line for line in diagnose(fit.means)}
    assert "estimated" in told["information_cells"].words


def test_the_error_of_a_lasso_is_that_of_the_effects_it_left() -> None:
    """Without a penalty it is the error of the two-way model; under the largest, that of independence."""
    sample = some_sample(4_000)
    design = penalised_design(sample)
    for penalty, formula in ((np.inf, "independence"), (1e-9, "two-way")):
        fit = fit_penalised(design, sample.table.counts, penalty)
        found = lasso_noise(sample, fit, draws=1500, rng=np.random.default_rng(0))
        plain = fitted(LogLinear(formula, draws=1500), sample).means.noise
        assert np.median(found.std(axis=0) / plain.std(axis=0)) == pytest.approx(1, abs=0.05)
