"""On populations of each variant's own making the true tau1 and tau2 are found."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.errors import NotConverged
from keyhole.inference.fit import RiskModel
from keyhole.models.catalogue import model_named
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.models.mixed_loglinear.model import ParametricTwoWay
from keyhole.population.sample import Sample
from keyhole.risk.assess import assess_risk
from keyhole.table.contingency import ContingencyTable
from tests.sampler_checks import keys_of, taus

LEVELS, FRACTION, EACH, POPULATIONS = (8, 6, 5, 4), 0.2, 3.0, 6
LAWS = {"log-gamma": (2.0, 2.0), "normal": (-0.2, 0.4), "inverse-gaussian": (1.0, 2.0)}
ATOMS = 6
SMALL = 0.3
"""The standard deviation of effects where there are very many of them."""


class Informed(ParametricTwoWay):
    """Knows how large effects are: with its own wide prior it would need far more records to find out."""

    def sampler(self, sample: Sample, table: FullTable) -> Any:
        return replace(super().sampler(sample, table), variance=SMALL**2)


def effects(base: str, size: int, rng: Generator) -> Vector:
    """What cells' means are multiplied by, of mean 1."""
    first, second = LAWS[base]
    if base == "log-gamma":
        return rng.gamma(first, 1 / second, size)
    if base == "normal":
        return np.exp(rng.normal(first, np.sqrt(second), size))
    return rng.wald(first, second, size)


def means(name: str, base: str, rng: Generator) -> Vector:
    """The mean of every cell of a population."""
    pairs = tuple((i, j) for i in range(4) for j in range(i))
    terms = {"o": (), "i": ((0,), (1,), (2,), (3,)), "ii": tuple(tuple(sorted(pair)) for pair in pairs)}
    fixed = FixedEffects.of(LEVELS, terms[name.split("-")[1]])
    log_xi = fixed.predictor(rng.normal(0.0, SMALL if name == "p-ii" else 0.5, fixed.number)).ravel()
    cells = len(log_xi)
    effect = effects(base, ATOMS if name.startswith("np") else cells, rng)
    if name.startswith("np"):
        effect = rng.choice(effect, cells, p=rng.dirichlet(np.full(ATOMS, 3.0)))
    return np.asarray(EACH * np.exp(log_xi) * effect)


def model_of(name: str, base: str, **options: object) -> RiskModel:
    """The model that the people come from; where its prior is narrow, the base has their level."""
    first, second = LAWS[base]
    if name != "p-ii":
        return model_named(name, most_sweeps=1500, base=base, base_parameters=f"{first},{second}", **options)
    level = {
        "log-gamma": (first, second / EACH),
        "normal": (first + np.log(EACH), second),
        "inverse-gaussian": (first * EACH, second * EACH),
    }[base]
    return Informed(most_sweeps=1500, base=base, base_parameters=f"{level[0]},{level[1]}")


def scores(name: str, seed: int, base: str = "log-gamma", **options: object) -> Vector:
    """How many standard deviations of the prediction the estimates are from the truth."""
    rng = np.random.default_rng(seed)
    people = rng.poisson(means(name, base, rng))
    counts = rng.binomial(people, FRACTION)
    cells = np.stack(np.unravel_index(np.flatnonzero(counts), LEVELS), axis=1)
    table = ContingencyTable.from_codes(keys_of(LEVELS), cells, counts[counts > 0])
    truth = taus(people[counts == 1] - 1)
    model = model_of(name, base, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        found = assess_risk(model, Sample(table, int(people.sum())), seed=seed)
    assert found.tau1 is not None
    assert found.tau2 is not None
    return np.array(
        [
            (tau.estimate - true) / max((tau.high - tau.low) / 3.92, 0.5)
            for tau, true in zip((found.tau1, found.tau2), truth, strict=True)
        ]
    )


@pytest.mark.statistical
@pytest.mark.parametrize("base", LAWS)
@pytest.mark.parametrize("name", ["p-o", "p-i", "p-ii", "np-o", "np-i", "np-i-emp"])
def test_truth_is_found(name: str, base: str) -> None:
    found = np.array([scores(name, seed, base) for seed in range(POPULATIONS)])
    assert np.abs(found.mean(axis=0) * np.sqrt(POPULATIONS)).max() < 3.5
    assert np.abs(found).max() < 4.5


@pytest.mark.statistical
def test_a_model_without_the_keys_is_noticed() -> None:
    rng = np.random.default_rng(0)
    assert means("p-i", "log-gamma", rng).shape == (960,)
    found = np.array([scores("p-i", seed, generators="none") for seed in range(POPULATIONS)])
    assert np.abs(found.mean(axis=0) * np.sqrt(POPULATIONS)).max() > 3.5
