"""What holds for every model: the shared promises of a fit."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from keyhole.errors import FitFailed
from keyhole.inference.fit import Fit
from keyhole.models.catalogue import CATALOGUE
from keyhole.population.sample import Sample
from keyhole.risk.assess import risk_of_laws
from keyhole.risk.size_index_check import check_size_index
from tests.models.samples import BY_LIKELIHOOD, SIZE_INDEX_ALONE, quick, sample_of, typical_sample


def fitted(name: str, sample: Sample, seed: int = 1) -> Fit:
    return quick(name).fit(sample, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("name", CATALOGUE)
def test_risk_is_ordered_and_bounded(name: str) -> None:
    sample = typical_sample()
    for law in fitted(name, sample).unsampled():
        r1, r2 = law.prob_none(), law.mean_match()
        assert len(r1) == len(r2) == sample.uniques
        assert np.all((r1 >= 0) & (r1 <= r2) & (r2 <= 1))


@pytest.mark.parametrize("name", CATALOGUE)
def test_same_seed_same_laws_and_picklable(name: str) -> None:
    sample = typical_sample()
    first, second = fitted(name, sample), pickle.loads(pickle.dumps(fitted(name, sample)))
    for one, other in zip(first.unsampled(), second.unsampled(), strict=True):
        np.testing.assert_array_equal(one.mean_match(), other.mean_match())


@pytest.mark.parametrize("name", SIZE_INDEX_ALONE)
def test_only_the_size_index_matters(name: str) -> None:
    """Other keys, other cells, another order of records: the same laws."""
    counts = [1] * 60 + [2] * 11 + [6] * 3
    shuffled = list(np.random.default_rng(0).permutation(counts))
    first, second = sample_of(counts, 2000, keys=2, levels=100), sample_of(shuffled, 2000, keys=4, levels=10)
    for one, other in zip(fitted(name, first).unsampled(), fitted(name, second).unsampled(), strict=True):
        np.testing.assert_array_equal(one.mean_match(), other.mean_match())
        np.testing.assert_array_equal(one.prob_none(), other.prob_none())


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_census_has_every_unique_for_certain(name: str) -> None:
    sample = sample_of([1] * 400 + [2] * 50 + [9] * 10, 590)
    fit = fitted(name, sample)
    assert all(diagnostic.verdict != "untrusted" for diagnostic in fit.diagnostics)
    for law in fit.unsampled():
        np.testing.assert_allclose(law.prob_none(), 1.0, rtol=1e-12)
        np.testing.assert_allclose(law.mean_match(), 1.0, rtol=1e-12)
        assert not law.draw(np.random.default_rng(0)).any()


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_uniques_means_no_risk(name: str) -> None:
    fit = fitted(name, sample_of([2] * 150 + [5] * 60, 12_000))
    tau1, tau2, _ = risk_of_laws(fit.unsampled(), rng=np.random.default_rng(0))
    assert (tau1.estimate, tau2.estimate, tau1.high) == (0.0, 0.0, 0.0)
    assert all(diagnostic.verdict != "untrusted" for diagnostic in fit.diagnostics)


@pytest.mark.parametrize("name", SIZE_INDEX_ALONE)
@pytest.mark.parametrize(("uniques", "people"), [(1, 50), (2, 50), (60, 5000), (60, 10**9)])
def test_everyone_unique_gives_no_number(name: str, uniques: int, people: int) -> None:
    """Without a tie the prior alone would answer; with N = 1e9 its answer would be no risk at all."""
    with pytest.raises(FitFailed, match="is unique on these keys"):
        fitted(name, sample_of([1] * uniques, people))


@pytest.mark.parametrize("name", SIZE_INDEX_ALONE)
def test_a_census_of_uniques_is_known(name: str) -> None:
    tau1, tau2, _ = risk_of_laws(fitted(name, sample_of([1] * 60, 60)).unsampled(), rng=np.random.default_rng(0))
    assert (tau1.estimate, tau2.estimate) == (60, 60)


@pytest.mark.parametrize("name", SIZE_INDEX_ALONE)
def test_more_cells_than_a_float_can_count(name: str) -> None:
    sample = sample_of([1, 1, 2, 3], 50, keys=160)
    assert sample.table.size > 10**308
    tau1, tau2, _ = risk_of_laws(fitted(name, sample).unsampled(), rng=np.random.default_rng(0))
    assert 0 <= tau1.estimate <= tau2.estimate <= 2


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("counts", [[2], [1, 2], [3], [1, 1, 2]])
def test_tiny_samples_do_not_crash(name: str, counts: list[int]) -> None:
    fit = fitted(name, sample_of(counts, 1000))
    tau1, tau2, _ = risk_of_laws(fit.unsampled(), rng=np.random.default_rng(0))
    assert 0 <= tau1.estimate <= tau2.estimate <= counts.count(1)
    assert np.isfinite([tau1.low, tau1.high, tau2.low, tau2.high]).all()


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_model_of_a_sample_is_held_against_its_size_index(name: str) -> None:
    check = check_size_index(fitted(name, typical_sample()), rng=np.random.default_rng(0))
    assert (check is None) is (name == "benedetti-franconi")
    assert check is None or 0.0 <= check.misfit < np.inf


@pytest.mark.parametrize("name", SIZE_INDEX_ALONE)
def test_expected_size_index_resembles_the_sample(name: str) -> None:
    sample = typical_sample()
    fit = fitted(name, sample)
    expected = fit.expected_size_index(np.arange(1, sample.sample_size + 5))  # type: ignore[attr-defined]
    assert expected.shape == (sample.sample_size + 4,)
    assert np.all(expected >= 0)
    assert not expected[sample.sample_size :].any()
    # The slide law is not tied to n, and one shape cannot serve this tail; the others reproduce n exactly.
    records = float(np.arange(1, sample.sample_size + 5) @ expected)
    assert records == pytest.approx(sample.sample_size, rel=0.3 if name.startswith("slide") else 0.01)


@pytest.mark.parametrize("name", [*BY_LIKELIHOOD, "benedetti-franconi"])
def test_match_of_every_record(name: str) -> None:
    sample = typical_sample()
    fit = fitted(name, sample)
    match = fit.mean_match_all()  # type: ignore[attr-defined]
    assert match.shape == sample.table.counts.shape
    assert np.all((match > 0) & (match <= 1 / sample.table.counts))
    unique = np.mean([law.mean_match() for law in fit.unsampled()])
    np.testing.assert_allclose(match[sample.table.uniques], unique, rtol=1e-12)
    by_size = match[np.searchsorted(sample.table.counts, [1, 2, 3, 5, 12])]
    assert np.all(np.diff(by_size) < 0)


@pytest.mark.parametrize("name", BY_LIKELIHOOD)
def test_match_of_uniques_by_summation_is_the_closed_form(name: str) -> None:
    """The route for every f, taken at f = 1, must give the closed form of r2."""
    fit = fitted(name, typical_sample())
    law = fit.family.law(fit.peak.working)  # type: ignore[attr-defined]
    summed = fit._mean_match(law, 1)  # type: ignore[attr-defined]
    assert summed == pytest.approx(law.unsampled(fit.sample).mean_match()[0], rel=1e-6)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_larger_population_lowers_the_risk(name: str) -> None:
    risks = []
    for people in (1200, 12_000, 10**9):
        fit = fitted(name, replace(typical_sample(), population_size=people))
        risks.append(np.mean([law.mean_match()[0] for law in fit.unsampled()]))
    assert risks[0] > risks[1] > risks[2]


@pytest.mark.parametrize("name", ["poisson-gamma", "poisson-inverse-gaussian"])
def test_any_number_of_cells(name: str) -> None:
    counts = [1] * 60 + [2] * 11 + [6] * 3
    for keys, levels in ((1, 74), (1, 80), (2, 100), (15, 100)):
        fit = fitted(name, sample_of(counts, 2000, keys, levels))
        tau1, tau2, _ = risk_of_laws(fit.unsampled(), rng=np.random.default_rng(0))
        assert 0 <= tau1.estimate <= tau2.estimate <= 60
        assert np.isfinite(tau2.estimate)
