"""The misfit of the size index is about 1 for the law that made the sample and large for another."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import model_named
from keyhole.population.sample import Sample
from keyhole.risk.compare import compare_models
from keyhole.risk.size_index_check import check_size_index
from keyhole.table.contingency import ContingencyTable
from tests.models.samples import sample_of


def _levels(probability: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One level for each row of probabilities."""
    return (probability.cumsum(axis=1) < rng.random((len(probability), 1))).sum(axis=1).clip(max=11)


def restaurant(theta: float, sigma: float, records: int, rng: np.random.Generator) -> list[int]:
    """Sizes of the tables of a two-parameter Chinese restaurant."""
    sizes: list[float] = []
    for seated in range(records):
        weights = np.array([size - sigma for size in sizes] + [theta + sigma * len(sizes)])
        chosen = int(rng.choice(len(weights), p=weights / (theta + seated))) if seated else 0
        if chosen == len(sizes):
            sizes.append(0)
        sizes[chosen] += 1
    return [int(size) for size in sizes]


@pytest.mark.parametrize(
    ("name", "theta", "sigma"), [("ewens", 60.0, 0.0), ("pitman", 10.0, 0.5), ("pitman", -0.5, 0.8)]
)
def test_the_law_that_made_the_sample_has_a_misfit_of_about_one(name: str, theta: float, sigma: float) -> None:
    rng = np.random.default_rng(7)
    misfits = []
    for _ in range(30):
        sample = sample_of(restaurant(theta, sigma, 500, rng), 10_000)
        check = check_size_index(model_named(name, draws=20).fit(sample, rng=rng), rng=rng)
        if check is not None:  # with all records in one cell there is nothing to compare
            misfits.append(check.misfit)
    assert len(misfits) > 25
    # A chi-squared of 3 to 6 degrees of freedom over them has a standard deviation of at most 0.8.
    assert np.mean(misfits) == pytest.approx(1.0, abs=4 * 0.8 / np.sqrt(30))


def test_another_law_has_a_large_one() -> None:
    rng = np.random.default_rng(7)
    sample = sample_of(restaurant(10.0, 0.7, 1500, rng), 30_000)
    ewens = check_size_index(model_named("ewens", draws=20).fit(sample, rng=rng), rng=rng)
    pitman = check_size_index(model_named("pitman", draws=20).fit(sample, rng=rng), rng=rng)
    assert ewens is not None
    assert pitman is not None
    assert ewens.misfit > 5 > pitman.misfit
    assert ewens.criterion is not None
    assert pitman.criterion is not None
    assert ewens.criterion > pitman.criterion


def test_a_second_parameter_must_earn_its_place() -> None:
    """Under Ewens' law Pitman's model fits a little better every time, and is rarely recommended."""
    rng = np.random.default_rng(11)
    models = [model_named(name, draws=20) for name in ("pitman", "ewens")]
    chosen = [
        compare_models(models, sample_of(restaurant(100.0, 0.0, 500, rng), 5000)).recommended for _ in range(20)
    ]
    assert chosen.count("ewens") >= 16


def test_a_law_of_the_keys_is_held_against_other_samples_from_it() -> None:
    """The sequential logit, which learns how keys depend, fits its sample and not one whose keys do not."""
    rng = np.random.default_rng(3)
    habits = rng.dirichlet(np.full(12, 0.7), (2, 3))
    group = rng.integers(0, 2, 2000)
    codes = np.stack([_levels(habits[group, j], rng) for j in range(3)], axis=1)
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(12)))) for j in range(3))
    sample = Sample(ContingencyTable.from_codes(keys, codes), 50_000)
    fit = model_named("sequential-logit", orders=1, nested=0, draws=20).fit(sample, rng=rng)
    check = check_size_index(fit, rng=rng)
    assert check is not None
    assert check.criterion is None
    assert check.misfit < 3
    apart = replace(fit, sample=Sample(ContingencyTable.from_codes(keys, rng.integers(0, 12, (2000, 3))), 50_000))
    wrong = check_size_index(apart, rng=rng)
    assert wrong is not None
    assert wrong.misfit > 10


@dataclass(frozen=True)
class _Foretells:
    """A fit that expects a fixed share more of each number of cells than its sample has."""

    sample: Sample
    more: float

    def expected_cells(self, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (1.0 + self.more) * np.array([self.sample.size_index.at(int(size)) for size in sizes])


@pytest.mark.parametrize("copies", [1, 10, 1000])
def test_small_departures_are_no_misfit_however_large_the_sample(copies: int) -> None:
    """2% of each number of cells are, by chance or by the tolerance; 20% are one as soon as they are clear."""
    sample = sample_of([1] * (400 * copies) + [2] * (90 * copies) + [3] * (30 * copies), 10**8, levels=1000)
    near, far = (
        check_size_index(_Foretells(sample, more), rng=np.random.default_rng(1))  # type: ignore[arg-type]
        for more in (0.02, 0.2)
    )
    assert near is not None
    assert far is not None
    assert near.misfit < 0.5
    assert (far.misfit > 10) == (copies >= 10)
