"""Populations from a law of each model: tau1 and tau2 are found, and means on the scale of the sample are not.

A replicate is a population, a sample of it and a fit. What is judged is the mean over replicates of estimate minus
truth, in its standard errors. Records are many for the effects of the model, as the theory of maximum likelihood
asks: with steeper main effects (0.6 a level) and 10,000 records the margins of pairs are sparse, and tau1 of a
model in closed form was 18% too low at pi = 0.01 and 7% at 0.05.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from keyhole.arrays import Vector
from keyhole.inference.fit import RiskModel
from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import model_named
from keyhole.models.loglinear import means
from keyhole.population.perturbed_poisson import PerturbedPoissonUnsampled
from keyhole.population.poisson import PoissonUnsampled
from keyhole.population.sample import Sample
from keyhole.risk.assess import assess_risk
from keyhole.table.contingency import ContingencyTable

Terms = Sequence[tuple[int, ...]]


def law_of(sizes: Sequence[int], terms: Terms, strength: float, seed: int) -> Vector:
    """Cell probabilities of a log-linear law: uneven main effects and normal effects of the terms."""
    rng = np.random.default_rng(seed)
    logit = np.zeros(sizes)
    for keys in [*((key,) for key in range(len(sizes))), *terms]:
        shape = [size if key in keys else 1 for key, size in enumerate(sizes)]
        effect = -0.3 * np.arange(sizes[keys[0]]) if len(keys) == 1 else strength * rng.standard_normal(shape)
        logit = logit + effect.reshape(shape)
    weight = np.exp(logit)
    return np.asarray(weight / weight.sum())


def drawn(p: Vector, records: int, fraction: float, rng: np.random.Generator) -> tuple[Sample, Vector]:
    """A sample of a population with this law, and its true tau1 and tau2."""
    people = rng.multinomial(round(records / fraction), p.ravel())
    # A simple random sample of fixed size, by cell.
    taken = rng.multivariate_hypergeometric(people, records, method="marginals")
    cells = np.stack(np.unravel_index(np.flatnonzero(taken), p.shape), axis=1)
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(size)))) for j, size in enumerate(p.shape))
    table = ContingencyTable.from_codes(keys, cells, taken[taken > 0])
    alone = people[taken == 1]
    return Sample(table, int(people.sum())), np.array([(alone == 1).sum(), (1 / alone).sum()])


def on_the_scale_of_the_sample(
    law: PoissonUnsampled | PerturbedPoissonUnsampled, fraction: float
) -> PoissonUnsampled | PerturbedPoissonUnsampled:
    """The commonest error: fitted means are not divided by the sampling fraction."""
    return replace(law, mean=law.mean * fraction)


def errors_of(model: RiskModel, p: Vector, records: int, fraction: float, replicates: int) -> dict[str, Vector]:
    """Estimate minus truth of tau1 and tau2, one row per replicate, as it is and on the wrong scale; the truth."""
    found: dict[str, list[Vector]] = {"model": [], "wrong": [], "truth": []}
    for rng in np.random.default_rng(20).spawn(replicates):
        sample, truth = drawn(p, records, fraction, rng)
        law = next(iter(model.fit(sample, rng=rng).unsampled()))
        laws = {"model": law, "wrong": on_the_scale_of_the_sample(law, fraction)}
        for name, one in laws.items():
            found[name].append(np.array([one.prob_none().sum(), one.mean_match().sum()]) - truth)
        found["truth"].append(truth)
    return {name: np.array(rows) for name, rows in found.items()}


def in_standard_errors(errors: Vector) -> Vector:
    """The mean error over its standard error."""
    return np.asarray(errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors))))


SIZES = (10, 9, 8, 7, 6)
CHAIN = ((0, 1), (1, 2))
CYCLE = ((0, 1), (1, 2), (2, 3), (0, 3))

CASES = {
    "independence": ("independence", {}, (), 0.0),
    "a formula in closed form": ("loglinear", {"generators": "K0*K1 + K1*K2"}, CHAIN, 0.4),
    "a formula on a junction tree": ("loglinear", {"generators": "K0*K1+K1*K2+K2*K3+K0*K3"}, CYCLE, 0.4),
    "two-way": ("two-way", {}, CYCLE, 0.4),
    "skinner-shlomo": ("skinner-shlomo", {}, CHAIN, 0.4),
    "lasso": ("lasso", {}, CHAIN, 0.4),
}


RECORDS = 20_000


def judge(case: str, fraction: float, replicates: int) -> dict[str, Vector]:
    name, options, terms, strength = CASES[case]
    p = law_of(SIZES, terms, strength, 3)
    errors = errors_of(model_named(name, **options), p, RECORDS, fraction, replicates)
    for form in ("model", "wrong"):
        relative = errors[form].mean(axis=0) / errors["truth"].mean(axis=0)
        print(f"{case} {fraction} {form}: {relative.round(4)}, z {in_standard_errors(errors[form]).round(2)}")
    return errors


@pytest.mark.parametrize("fraction", [0.01, 0.05])
@pytest.mark.parametrize(
    "case",
    [
        "a formula on a junction tree",
        *(
            pytest.param(case, marks=pytest.mark.statistical)
            for case in CASES
            if case not in ("lasso", "a formula on a junction tree")
        ),
    ],
)
def test_risk_is_unbiased_on_the_populations_of_the_model(
    case: str, fraction: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(means, "FEWEST_TREE_CELLS", 1)
    errors = judge(case, fraction, 12)
    assert np.abs(in_standard_errors(errors["model"])).max() < 3
    assert np.abs(in_standard_errors(errors["wrong"])).min() > 10


@pytest.mark.statistical
def test_the_lasso_is_too_low_on_its_own_populations_but_on_the_right_scale() -> None:
    """It was 21% too low for tau1 and 3% for tau2: held-out records choose a fit that follows the sample."""
    errors = judge("lasso", 0.01, 12)
    relative = errors["model"].mean(axis=0) / errors["truth"].mean(axis=0)
    assert (relative > -0.4).all()
    assert (relative < 0.1).all()
    assert np.abs(in_standard_errors(errors["wrong"])).min() > 10


def zipf(levels: int) -> Vector:
    """Independent keys, the first with levels whose frequencies fall as 1, 1/2, 1/3, ..."""
    first = 1.0 / np.arange(1, levels + 1)
    p = np.multiply.outer(first / first.sum(), np.multiply.outer(np.arange(1, 7) / 21, np.full((5, 4), 0.05)))
    return np.asarray(p)


@pytest.mark.statistical
@pytest.mark.parametrize(("levels", "records", "holds"), [(20, 2000, True), (300, 1000, False)])
def test_intervals_hold_but_for_thin_margins_which_are_told(levels: int, records: int, holds: bool) -> None:
    """With 300 levels of one key tau1 was 12% too low, and 6 of 40 intervals covered it."""
    covered, errors, told = np.zeros(2), [], 0
    for rng in np.random.default_rng(21).spawn(40):
        sample, truth = drawn(zipf(levels), records, 0.05, rng)
        found = assess_risk(model_named("independence"), sample)
        assert found.tau1 is not None
        assert found.tau2 is not None
        covered += [tau.low <= true <= tau.high for tau, true in zip((found.tau1, found.tau2), truth, strict=True)]
        errors.append(np.array([found.tau1.estimate, found.tau2.estimate]) / truth - 1)
        told += any(check.name == "thin_margins" and check.verdict == "caution" for check in found.diagnostics)
    print(f"{levels} levels, {records} records: covered {covered}, errors {np.mean(errors, axis=0).round(3)}")
    assert (covered.min() >= 36) == holds
    assert told == (0 if holds else 40)
