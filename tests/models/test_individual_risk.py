"""Benedetti-Franconi with survey weights."""

from dataclasses import replace

import numpy as np
import pytest

from keyhole.models.individual_risk.benedetti_franconi import BenedettiFranconi
from keyhole.numerics.negative_binomial_match import negative_binomial_match
from tests.models.samples import sample_of


def test_weights_give_each_cell_its_own_risk() -> None:
    sample = sample_of([1, 1, 2, 1], 100)
    weights = np.array([10.0, 50.0, 30.0, 0.5])
    weighted = replace(sample, table=replace(sample.table, weights=weights))
    fit = BenedettiFranconi().fit(weighted, rng=np.random.default_rng(0))
    (law,) = fit.unsampled()
    p = np.array([0.1, 0.02, 1.0])
    np.testing.assert_allclose(law.prob_none(), p)
    np.testing.assert_allclose(law.mean_match()[:2], -p[:2] * np.log(p[:2]) / (1 - p[:2]))
    match = fit.mean_match_all()
    np.testing.assert_allclose(match[[0, 1, 3]], law.mean_match(), rtol=1e-12)
    assert match[2] == pytest.approx(negative_binomial_match(np.array([2]), np.array([2 / 30]))[0])
    flagged = {line.name: line.verdict for line in fit.diagnostics}
    assert flagged == {"weights": "good", "weights_below_one": "caution", "track_record": "caution"}
    assert fit.interval_leaves_out


def test_without_weights_everyone_has_the_sampling_fraction() -> None:
    fit = BenedettiFranconi().fit(sample_of([1, 1, 2], 40), rng=np.random.default_rng(0))
    (law,) = fit.unsampled()
    assert law.prob_none().tolist() == [0.1, 0.1]
    assert {line.name for line in fit.diagnostics if line.verdict == "caution"} == {"weights", "track_record"}
