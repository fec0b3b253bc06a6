"""Subsamples of the sample tell how far off a model is, where the sample is what it takes it for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.random import Generator

from keyhole.inference.fit import Fit
from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import model_named
from keyhole.population.multinomial import MultinomialUnsampled
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts
from keyhole.progress import Progress, silent
from keyhole.risk.compare import compare_models
from keyhole.risk.nested import NESTED_ERROR, NestedCheck, NestedPoint, nested_check
from keyhole.risk.reasons import why_the_pool
from keyhole.table.contingency import ContingencyTable

KEYS = (KeyVariable("A", tuple(map(str, range(60)))), KeyVariable("B", tuple(map(str, range(60)))))


def independent_sample(records: int = 6000, seed: int = 5) -> Sample:
    """Two keys of sixty levels, some of them rare, that say nothing of each other."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(60, 0.4))
    codes = np.stack([rng.choice(60, records, p=law), rng.choice(60, records, p=law)], axis=1)
    return Sample(ContingencyTable.from_codes(KEYS, codes), 20 * records)


@dataclass(frozen=True)
class TimesTwo:
    """Takes every cell for twice as large as it is under independence of the keys."""

    factor: float = 2.0
    name: str = "times-two"
    settings: Mapping[str, object] = field(default_factory=dict)

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> Fit:
        return _Doubled(sample, self.factor)  # type: ignore[return-value]


@dataclass(frozen=True)
class _Doubled:
    sample: Sample
    factor: float

    def unsampled(self) -> Iterator[UnsampledCounts]:
        table = self.sample.table
        margins = [np.bincount(column, table.counts, 60) / table.records for column in table.cells.T]
        unique = table.cells[table.uniques]
        probability = margins[0][unique[:, 0]] * margins[1][unique[:, 1]] * self.factor
        yield MultinomialUnsampled(probability, self.sample.unsampled_size)


def test_a_true_model_is_near_the_truth_and_one_that_is_off_is_found_out() -> None:
    sample = independent_sample()
    rng = np.random.default_rng(1)
    right = nested_check(model_named("independence"), sample, replicates=4, rng=rng)
    wrong = nested_check(TimesTwo(), sample, replicates=4, rng=rng)
    assert right is not None
    assert wrong is not None
    error, deviation = right.extrapolated()
    assert abs(error) < 4 * deviation
    assert right.diagnostic().verdict == "good"
    error, deviation = wrong.extrapolated()
    assert error < -4 * deviation
    assert wrong.diagnostic().verdict == "caution"


def test_a_line_in_the_logarithm_of_the_share_is_followed_a_factor_of_ten() -> None:
    points = tuple(
        NestedPoint(share, (100.0 * np.exp(0.1 + 0.05 * np.log(share)), 1.0), (100.0, 1.0))
        for share in (0.1, 0.2, 0.4)
    )
    assert NestedCheck(points, 0.02).extrapolated()[0] == pytest.approx(0.1 + 0.05 * np.log(0.02))
    assert NestedCheck(points, 1e-6).extrapolated()[0] == pytest.approx(0.1 + 0.05 * np.log(0.01))
    assert "extrapolated to this sample" in NestedCheck(points, 0.02).diagnostic().words
    assert "(95% interval: -43% to +46%)" in NestedCheck(points, 0.02).diagnostic().words
    assert "nothing could be extrapolated" in NestedCheck(points[:1], 0.02).diagnostic().words
    assert NestedCheck(points[:1], 0.02).extrapolated() == pytest.approx((0.1 + 0.05 * np.log(0.1), 0.1))


def test_small_or_weighted_samples_are_not_asked() -> None:
    rng = np.random.default_rng(1)
    assert nested_check(model_named("independence"), independent_sample(400), rng=rng) is None
    sample = independent_sample()
    weights = np.random.default_rng(2).uniform(1, 30, sample.table.occupied)
    weighted = ContingencyTable(
        sample.table.keys, sample.table.cells, sample.table.counts, weights * sample.table.counts
    )
    assert nested_check(model_named("independence"), Sample(weighted, 10**6), rng=rng) is None


def test_the_check_joins_the_others_of_its_model_and_no_other() -> None:
    sample = independent_sample(3000)
    models = [model_named(name, draws=20) for name in ("independence", "pitman")]
    found = compare_models(models, sample, subsampled=models[:1])
    names = [{check.name for check in one.diagnostics} for one in found.assessments]
    assert [NESTED_ERROR in own for own in names] == [True, False]


def test_a_caution_of_the_check_is_in_the_verdict() -> None:
    from tests.risk.samples import Geometric

    sample = independent_sample(3000)
    wrong = Geometric((0.999,), name="wrong")
    (found,) = compare_models([wrong], sample, subsampled=[wrong]).assessments
    assert "subsamples was off" in found.verdict
    (plain,) = compare_models([wrong], sample).assessments
    assert "subsamples" not in plain.verdict


def test_a_large_error_of_few_uniques_is_told_with_its_doubt() -> None:
    from keyhole.risk.assess import assess_risk
    from tests.risk.samples import Geometric

    sample = independent_sample(3000)
    few, many = (
        NestedCheck((NestedPoint(0.1, (size, 1.0), (2.0 * size, 1.0)),), 0.1).diagnostic() for size in (2.0, 200.0)
    )
    assert (few.value, few.verdict) == (many.value, "good")
    assert many.verdict == "caution"
    for check, doubt in ((few, True), (many, False)):
        member = assess_risk(Geometric(diagnostics=(check,)), sample)
        words = why_the_pool(replace(member, model="pool", members=(member,)), [member])
        assert "-50% by geometric" in words
        assert ("this may be chance" in words) == doubt
