"""The misfit of the size index is about 1 for the law that made the sample and large for another."""

import numpy as np
import pytest

from keyhole.models.catalogue import model_named
from keyhole.risk.compare import compare_models
from keyhole.risk.size_index_check import check_size_index
from tests.models.samples import sample_of


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
