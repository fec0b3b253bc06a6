"""Every model against populations from its own law: no bias, and intervals that cover as often as they say.

Bias must be within 3 Monte Carlo standard errors and coverage of the 95% intervals between 93% and 97%. Over
600 replicates an interval that covers exactly 95% is measured outside 93-97% with probability 0.025, so the
seed is fixed; the replicates' own standard error of coverage is 0.9%.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from keyhole.inference.fit import RiskModel
from keyhole.models.catalogue import model_named
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts
from keyhole.risk.assess import risk_of_laws
from tests.statistical.own_laws import (
    Drawn,
    Law,
    gamma_rates,
    inverse_gaussian_rates,
    inverse_sampling,
    restaurant,
    sibuya_sizes,
    slide,
)

REPLICATES = 600
DRAWS = 300

CASES: dict[str, tuple[str, Law]] = {
    "ewens, 10%": ("ewens", restaurant(300.0, 0.0, 5000, 500)),
    "ewens, 25%": ("ewens", restaurant(50.0, 0.0, 4000, 1000)),
    "ewens, 6%, few ties": ("ewens", restaurant(2000.0, 0.0, 10_000, 600)),
    "pitman, 5%": ("pitman", restaurant(20.0, 0.6, 10_000, 500)),
    "pitman, 25%": ("pitman", restaurant(5.0, 0.4, 4000, 1000)),
    "pitman, 10%": ("pitman", restaurant(200.0, 0.2, 10_000, 1000)),
    "poisson-gamma, 5%": ("poisson-gamma", gamma_rates(5000, 0.2, 20_000, 1000)),
    "poisson-gamma, 10%, many cells": ("poisson-gamma", gamma_rates(100_000, 0.01, 10_000, 1000)),
    "poisson-gamma, 10%": ("poisson-gamma", gamma_rates(2000, 0.5, 4000, 400)),
    "slide, 10%": ("slide-negative-binomial", slide(3000, 0.5, 8.0, 0.1)),
    "slide, 20%": ("slide-negative-binomial", slide(2000, 1.5, 3.0, 0.2)),
    "slide, 5%": ("slide-negative-binomial", slide(5000, 0.3, 20.0, 0.05)),
    "inverse-gaussian, 10%": ("poisson-inverse-gaussian", inverse_gaussian_rates(5000, 3.0, 20.0, 0.1)),
    "inverse-gaussian, 10%, sparse": ("poisson-inverse-gaussian", inverse_gaussian_rates(20_000, 0.5, 30.0, 0.1)),
    "inverse-gaussian, 25%": ("poisson-inverse-gaussian", inverse_gaussian_rates(2000, 2.0, 3.0, 0.25)),
    "zayatz, 10%": ("zayatz", sibuya_sizes(3000, 0.6, 0.1)),
    "zayatz, 20%": ("zayatz", sibuya_sizes(2000, 0.7, 0.2)),
    "benedetti-franconi": ("benedetti-franconi", inverse_sampling(400, 100)),
}


@dataclass(frozen=True)
class Measured:
    """Errors of tau1 and tau2 and whether their intervals covered, one row per replicate."""

    error: np.ndarray
    covered: np.ndarray

    @property
    def z(self) -> np.ndarray:
        return np.asarray(self.error.mean(axis=0) / (self.error.std(axis=0, ddof=1) / np.sqrt(len(self.error))))

    @property
    def coverage(self) -> np.ndarray:
        return np.asarray(self.covered.mean(axis=0))

    def __str__(self) -> str:
        return f"z of bias {self.z.round(2)}, coverage {self.coverage.round(3)}"


def laws_of(model: RiskModel, sample: Sample, rng: np.random.Generator) -> "list[UnsampledCounts]":
    return list(model.fit(sample, rng=rng).unsampled())


def measure(name: str, law: Law, replicates: int, believed_fraction: float = 1.0) -> Measured:
    """Fit the model to samples of its own law.

    ``believed_fraction`` below 1 breaks the scale on purpose: the model is told a population that much smaller,
    which is what forgetting to divide by the sampling fraction amounts to.
    """
    options = {} if name == "benedetti-franconi" else {"draws": DRAWS}
    model = model_named(name, **options)
    error, covered = [], []
    for rng in np.random.default_rng(20260101).spawn(replicates):
        drawn = law(rng)
        sample, truth = drawn.sample, drawn.truth
        if believed_fraction < 1:
            people = round(sample.sample_size + believed_fraction * sample.unsampled_size)
            sample = Sample(sample.table, people)
        tau1, tau2, _ = risk_of_laws(iter(laws_of(model, sample, rng)), rng=rng)
        error.append([tau1.estimate - truth[0], tau2.estimate - truth[1]])
        covered.append([tau1.low <= truth[0] <= tau1.high, tau2.low <= truth[1] <= tau2.high])
    return Measured(np.array(error), np.array(covered))


@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES)
def test_unbiased_and_covering(case: str) -> None:
    measured = measure(*CASES[case], REPLICATES)
    print(f"{case}: {measured}")
    assert np.all(np.abs(measured.z) < 3), str(measured)
    assert np.all((measured.coverage >= 0.93) & (measured.coverage <= 0.97)), str(measured)


@pytest.mark.statistical
@pytest.mark.parametrize("case", [case for case in CASES if case != "benedetti-franconi"])
def test_a_formula_on_the_wrong_scale_is_rejected(case: str) -> None:
    """A model that believes in half of the unsampled people must fail the same test, with far fewer replicates."""
    measured = measure(*CASES[case], 60, believed_fraction=0.5)
    assert np.all(np.abs(measured.z) > 3), str(measured)
    assert measured.coverage.min() < 0.93, str(measured)


@pytest.mark.statistical
def test_weights_on_the_wrong_scale_are_rejected() -> None:
    """Benedetti-Franconi knows the population by its weights alone: halve them."""
    law = inverse_sampling(400, 100)

    def halved(rng: np.random.Generator) -> Drawn:
        drawn = law(rng)
        assert drawn.weights is not None
        return replace(drawn, weights=drawn.weights / 2)

    measured = measure("benedetti-franconi", halved, 60)
    assert np.all(np.abs(measured.z) > 3), str(measured)
    assert measured.coverage.min() < 0.93, str(measured)
