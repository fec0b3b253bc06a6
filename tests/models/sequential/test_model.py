"""The sequential logit as a model: options, odd samples, and diagnostics that speak up."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from keyhole.errors import DisclosureRiskError
from keyhole.inference.dependence import Dependence
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TRACK_RECORD, UNLIKE
from keyhole.keys.variable import MISSING, KeyVariable
from keyhole.models.sequential import shift as module
from keyhole.models.sequential.cell_posterior import CellPosterior
from keyhole.models.sequential.checks import ByOrder, diagnose, record_at
from keyhole.models.sequential.model import SequentialLogit, SequentialLogitFit, _stratified
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.scatter import Scatter
from keyhole.models.sequential.shift import (
    NESTED_DEVIATION,
    NESTED_MEAN,
    PRIOR_DEVIATION,
    Shift,
    _Run,
    _solve,
    expected_shift,
    shift_of,
)
from keyhole.population.sample import Sample
from keyhole.progress import silent
from keyhole.risk.assess import risk_of_laws
from keyhole.table.contingency import ContingencyTable
from tests.models.sequential.people import LEVELS, dependent_people, sample_of_codes, some_sample, zeros_of

MODEL = SequentialLogit(orders=2, nested=0, draws=20)


def fitted(sample: Sample, model: SequentialLogit = MODEL) -> SequentialLogitFit:
    return model.fit(sample, rng=np.random.default_rng(0))


def lines_of(fit: SequentialLogitFit) -> dict[str, Diagnostic]:
    return {line.name: line for line in fit.diagnostics}


@pytest.mark.parametrize(
    "options", [{"orders": 0}, {"orders": 6}, {"three_way": -1}, {"nested": -1}, {"draws": 1}]
)
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(DisclosureRiskError, match="option"):
        SequentialLogit(**options)


def test_settings_are_the_options() -> None:
    assert SequentialLogit(2, 3, 4, 50).settings == {"orders": 2, "three_way": 3, "nested": 4, "draws": 50}


def test_same_seed_same_laws_also_after_pickling() -> None:
    sample = some_sample()
    one, other = fitted(sample), pickle.loads(pickle.dumps(fitted(sample)))
    different = MODEL.fit(sample, rng=np.random.default_rng(1))
    for law, same, not_same in zip(one.unsampled(), other.unsampled(), different.unsampled(), strict=True):
        np.testing.assert_array_equal(law.mean_match(), same.mean_match())
        assert not np.array_equal(law.mean_match(), not_same.mean_match())


def test_scores_are_standard_normal_and_odd_moments_vanish() -> None:
    fit = fitted(some_sample(), SequentialLogit(orders=3, nested=0, draws=600))
    assert fit.scores.shape == (600, fit.sample.uniques)
    assert np.abs(fit.scores.mean(axis=0)).max() < 1e-5
    assert fit.scores.var() == pytest.approx(1.0, abs=0.05)
    assert fit.shifts.mean() == pytest.approx(fit.shift.mean, abs=1e-12)


@pytest.mark.parametrize(
    ("codes", "levels"),
    [
        ([[0, 0], [1, 2]], (2, 3)),
        ([[0, 0], [0, 0]], (2, 3)),
        ([[0], [1], [1], [2]], (3,)),
        ([[0, 1, 0], [0, 2, 0], [0, 2, 0]], (1, 3, 4)),
        ([[1, 1]] * 5, (3, 2)),
        (np.stack([np.arange(30), np.arange(30) % 7, np.arange(30) % 4], axis=1), (30, 7, 4)),
    ],
    ids=["two records", "two alike", "one key", "keys with one level", "one cell", "everyone unique"],
)
def test_odd_samples_give_finite_risk(codes: object, levels: tuple[int, ...]) -> None:
    sample = sample_of_codes(np.asarray(codes), 1000, levels)
    fit = fitted(sample)
    tau1, tau2, _ = risk_of_laws(fit.unsampled(), rng=np.random.default_rng(0))
    assert 0 <= tau1.estimate <= tau2.estimate <= sample.uniques
    assert np.isfinite([tau1.low, tau1.high, tau2.low, tau2.high, fit.log_score]).all()
    # Without uniques there is nothing to estimate, so nothing to distrust.
    assert [line.verdict for name, line in lines_of(fit).items() if name == "sample_size"] == (
        ["untrusted"] if sample.uniques else []
    )
    assert fit.simulate(10, np.random.default_rng(0)).shape == (10, len(levels))


def test_a_census_is_certain() -> None:
    codes = dependent_people(600, rng=np.random.default_rng(51))
    for law in fitted(sample_of_codes(codes, 600)).unsampled():
        np.testing.assert_array_equal(law.prob_none(), 1.0)
        np.testing.assert_allclose(law.mean_match(), 1.0, rtol=1e-12)


def test_a_good_sample_is_called_good() -> None:
    lines = lines_of(fitted(some_sample(1500, 30_000)))
    assert {lines[name].verdict for name in ("converged", "penalties_at_bound", "separation", "sample_size")} == {
        "good"
    }


def test_a_repeated_key_is_pointed_out() -> None:
    codes = dependent_people(800, rng=np.random.default_rng(52))
    repeated = sample_of_codes(np.hstack([codes, codes[:, :1]]), 16_000, (*LEVELS, 9))
    verdicts = {line.verdict for line in fitted(repeated).diagnostics if line.name == "separation"}
    assert verdicts == {"caution"}


def diagnosed(
    sample: Sample, by_order: tuple[list[float], list[float]], shift: Shift, deviation: float = 50.0
) -> dict[str, Diagnostic]:
    tau1, tau2 = map(np.array, by_order)
    found = ByOrder(tau1, tau2, np.full(len(tau1), deviation), np.full(len(tau2), deviation))
    lines = diagnose(sample, (), shift, Dependence((), (), ()), -5.0, found)
    return {line.name: line for line in lines}


@pytest.mark.parametrize(
    ("tau1", "verdict", "words"),
    [
        ([100.0, 105.0, 110.0], "good", "3 orders"),
        ([80.0, 100.0, 115.0], "caution", "does not hold"),
        ([40.0, 100.0, 130.0], "untrusted", "arbitrary choice"),
        ([0.1, 0.9], "good", "0%"),
    ],
)
def test_orders_that_disagree(tau1: list[float], verdict: str, words: str) -> None:
    line = diagnosed(some_sample(), (tau1, [200.0] * len(tau1)), Shift(0.0, 0.1))["order_spread"]
    assert line.verdict == verdict
    assert words in line.words
    other = diagnosed(some_sample(), ([200.0] * len(tau1), tau1), Shift(0.0, 0.1))["order_spread"]
    assert other.verdict == verdict


@pytest.mark.parametrize(("deviation", "verdict"), [(2.0, "good"), (1.0, "caution")])
def test_orders_that_disagree_beyond_their_intervals(deviation: float, verdict: str) -> None:
    orders = ([100.0, 103.0, 106.0], [200.0] * 3)
    line = diagnosed(some_sample(), orders, Shift(0.0, 0.1), deviation)["order_spread"]
    assert line.verdict == verdict
    assert ("nothing in common" in line.words) == (verdict == "caution")


@pytest.mark.parametrize(("size", "verdict"), [(499, "untrusted"), (500, "good")])
def test_small_samples_are_not_trusted(size: int, verdict: str) -> None:
    assert diagnosed(some_sample(size), ([], []), Shift(0.0, 0.1))["sample_size"].verdict == verdict


@pytest.mark.parametrize(("nested", "verdict"), [(0.1, "good"), (0.9, "caution"), (-0.9, "caution")])
def test_subsamples_that_contradict_other_populations(nested: float, verdict: str) -> None:
    line = diagnosed(some_sample(), ([], []), Shift(0.0, 0.04, nested, 0.09, 500))["nested_shift"]
    assert line.verdict == verdict
    assert ("contradict" in line.words) is (verdict == "caution")
    assert "nested_shift" not in diagnosed(some_sample(), ([], []), Shift(0.0, 0.1))


@pytest.mark.parametrize(
    ("mean", "words"), [(0.1, "lowers"), (-0.1, "raises"), (0.0, "as many people as the fit says")]
)
def test_the_shift_says_what_it_does_to_the_risk(mean: float, words: str) -> None:
    line = diagnosed(some_sample(), ([], []), Shift(mean, 0.1))["shift"]
    assert (line.value, line.verdict) == (mean, "good")
    assert words in line.words


def test_a_shift_that_is_carried_over_names_what_this_file_has() -> None:
    line = diagnosed(some_sample(400), ([], []), Shift(0.01, 0.1, extrapolated=True))["shift"]
    assert line.verdict == "caution"
    assert "this file has 400 and 6." in line.words


@pytest.mark.parametrize(("levels", "verdict"), [(120, "good"), (121, "caution"), (401, "untrusted")])
@pytest.mark.parametrize("missing", [0, 900])
def test_a_key_that_names_people_is_doubted(levels: int, verdict: str, missing: int) -> None:
    """A number of a person or a household beside two honest keys; those who have none do not count."""
    rng = np.random.default_rng(55)
    number = np.concatenate([np.arange(levels), rng.integers(levels, size=800 - levels), np.full(missing, levels)])
    codes = np.stack([rng.integers(5, size=len(number)), rng.integers(3, size=len(number)), number], axis=1)
    labels = (tuple("abcde"), tuple("xyz"), (*map(str, range(levels)), MISSING))
    keys = tuple(KeyVariable(name, own) for name, own in zip("ABC", labels, strict=True))
    sample = Sample(ContingencyTable.from_codes(keys, codes), 40_000)
    line = diagnosed(sample, ([], []), Shift(0.0, 0.1))["level_share"]
    assert (line.value, line.verdict) == (levels / 800, verdict)
    assert ("level of C" in line.words) == (verdict != "good")


def test_a_doubtful_key_leaves_no_record() -> None:
    """Six keys and 1,500 records, like samples behind the record; and a number of each household beside them."""
    codes = dependent_people(1500, rng=np.random.default_rng(56))
    honest = sample_of_codes(codes, 60_000)
    numbered = sample_of_codes(np.hstack([codes, np.arange(1500)[:, None] // 3]), 60_000, (*LEVELS, 500))
    model = SequentialLogit(orders=1, nested=0, draws=2)
    for sample, admitted in ((honest, record_at(1500).diagnostic()), (numbered, UNLIKE)):
        fit = replace(fitted(sample, model), standard=True)
        assert [line for line in fit.diagnostics if line.name == TRACK_RECORD] == [admitted]


def test_the_record_is_that_of_samples_of_about_the_same_size() -> None:
    assert record_at(1000) != record_at(5000) == record_at(100_000)
    assert record_at(1000).is_good
    assert record_at(5000).is_good


def test_surprise_counts_deviations() -> None:
    found = Shift(0.0, 0.04, NESTED_MEAN + 2 * np.hypot(0.09, NESTED_DEVIATION), 0.09, 500)
    assert found.surprise == pytest.approx(2.0)
    assert Shift(0.0, 0.1).surprise == 0.0


@pytest.mark.parametrize("shift", [-0.7, -0.1, 0.0, 0.15, 0.9])
def test_a_shift_put_in_by_hand_is_found(shift: float) -> None:
    rng = np.random.default_rng(53)
    runs = []
    for _ in range(3):
        shapes = rng.uniform(1.0, 20.0, 200)
        posterior = CellPosterior(rng.normal(-8, 1.5, 200), shapes**-0.5, shapes)
        runs.append(_Run(posterior, 500, 0.0))
        runs[-1] = replace(runs[-1], truth=runs[-1].excess(shift, 4500))
    found, without = _solve(runs, 4500)
    assert found == pytest.approx(shift, abs=1e-3)
    np.testing.assert_allclose(without, shift, atol=1e-3)
    assert _solve([replace(run, truth=0.0) for run in runs], 4500)[0] == module.FURTHEST
    assert _solve([replace(run, truth=1e9) for run in runs], 4500)[0] == -module.FURTHEST


def test_the_shift_without_a_run_is_that_of_the_others() -> None:
    """One Newton step away, where runs differ as subsamples do."""
    rng = np.random.default_rng(54)
    runs = []
    for shift in (-0.05, 0.02, 0.1, 0.04):
        shapes = rng.uniform(1.0, 20.0, 300)
        run = _Run(CellPosterior(rng.normal(-8, 1.5, 300), shapes**-0.5, shapes), 500, 0.0)
        runs.append(replace(run, truth=run.excess(shift, 4500)))
    _, without = _solve(runs, 4500)
    exact = [_solve(runs[:turn] + runs[turn + 1 :], 4500)[0] for turn in range(4)]
    np.testing.assert_allclose(without, exact, atol=2e-3)
    assert np.ptp(without) > 0.02


@pytest.mark.parametrize(("size", "replicates", "asked"), [(1999, 6, False), (2000, 0, False), (2000, 2, True)])
def test_nested_subsamples_are_taken_where_they_can_speak(size: int, replicates: int, asked: bool) -> None:
    sample = some_sample(size, 40_000)
    found = shift_of(
        sample,
        Observed.of(sample),
        replicates,
        2,
        most_pairs=0,
        rng=np.random.default_rng(0),
        progress=silent,
    )
    assert (found.nested is not None) is asked
    if asked:
        assert found.subsample == module.SMALLEST
        assert found.nested_deviation is not None
        assert 0 < found.nested_deviation < 0.5
    assert found.mean == expected_shift(6, size)
    assert found.deviation >= PRIOR_DEVIATION
    assert not found.extrapolated


def test_ends_of_intervals_are_not_left_to_chance() -> None:
    """What all cells share is spread evenly over the laws, several for each draw of the parameters."""
    for size in (7, 800):
        spread = _stratified(size, np.random.default_rng(1))
        cuts = np.sort(special.ndtr(spread)) * size
        assert ((cuts >= np.arange(size) - 0.51) & (cuts <= np.arange(size) + 1.51)).all()
        assert spread.mean() == pytest.approx(0.0, abs=1e-12)
    assert spread.std() == pytest.approx(1.0, abs=0.01)
    assert abs(np.corrcoef(spread, np.arange(size))[0, 1]) < 0.15
    fit = fitted(some_sample(900, 20_000), SequentialLogit(orders=1, nested=0, draws=20))
    assert len(list(fit.unsampled())) == len(fit.shifts) == len(fit.units) == 4 * len(fit.scores)
    assert fit.effective_draws == len(fit.scores) == 20


def test_subsamples_are_a_check_and_move_nothing() -> None:
    sample = some_sample(2000, 40_000)
    asked, unasked = (
        fitted(sample, SequentialLogit(orders=1, three_way=0, nested=nested, draws=6)) for nested in (2, 0)
    )
    assert (asked.shift.nested is None, unasked.shift.nested is None) == (False, True)
    for name in ("scores", "shifts", "units"):
        np.testing.assert_array_equal(getattr(asked, name), getattr(unasked, name))


def test_an_extrapolated_shift_says_so() -> None:
    for levels, size, seen in ((LEVELS, 1000, True), (LEVELS, 999, False), (LEVELS[:4], 1500, False)):
        sample = sample_of_codes(dependent_people(size, levels, rng=np.random.default_rng(3)), 40_000, levels)
        found = fitted(sample, SequentialLogit(orders=1, nested=0, draws=2))
        line = next(line for line in found.diagnostics if line.name == "shift")
        assert found.shift.extrapolated is not seen
        assert (line.verdict == "good") is seen
        assert ("carried over" in line.words) is not seen


def test_the_expected_shift_by_keys_and_records() -> None:
    """None with ten keys, less with more records, that of the bound beyond what was seen."""
    assert expected_shift(10, 1500.0) == 0.0
    assert expected_shift(7, 2000.0) == 2 * expected_shift(7, 4000.0) > 0 > expected_shift(12, 2000.0)
    assert expected_shift(2, 3000.0) == expected_shift(5, 3000.0)
    assert expected_shift(40, 300.0) == expected_shift(12, 1000.0)


def test_draws_of_the_cells_have_the_posterior_as_law() -> None:
    """The mean over the laws is the one over the nodes of the posterior."""
    fit = fitted(some_sample(900, 20_000), SequentialLogit(orders=1, nested=0, draws=400))
    fit = replace(fit, shifts=np.zeros(len(fit.shifts)))
    sampled, unsampled = fit.sides
    fit = replace(fit, units=np.full(len(fit.units), Scatter(5e-8).unit))
    alone, match = Scatter(5e-8).risks(fit.posterior, sampled, unsampled)
    drawn1 = np.mean([law.prob_none().sum() for law in fit.unsampled()])
    drawn2 = np.mean([law.mean_match().sum() for law in fit.unsampled()])
    assert drawn1 == pytest.approx(alone.sum(), rel=0.02)
    assert drawn2 == pytest.approx(match.sum(), rel=0.02)


def test_records_in_impossible_cells_are_not_fitted_silently() -> None:
    codes = dependent_people(600, rng=np.random.default_rng(54))
    assert zeros_of().contains(codes).any()
    with pytest.raises(DisclosureRiskError):
        fitted(sample_of_codes(codes, 9000, zeros=zeros_of()))


def test_other_samples_have_as_many_records_however_cells_scatter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where full cells lose records, more are drawn; the variance of a cell is that of all that are drawn."""
    told: list[int] = []

    def losing(self: Scatter, log_p: np.ndarray, records: int, rng: np.random.Generator) -> np.ndarray:
        assert len(log_p) == records
        told.append(records)
        return (rng.random(records) < 0.5).astype(np.int64)

    monkeypatch.setattr(Scatter, "crowds", losing)
    sample = some_sample(600)
    sizes = np.arange(1, 601)
    expected = fitted(sample, SequentialLogit(orders=2, nested=0, draws=2)).expected_cells(
        sizes, np.random.default_rng(5)
    )
    assert expected @ sizes == pytest.approx(600)
    assert len(set(told)) > 1
