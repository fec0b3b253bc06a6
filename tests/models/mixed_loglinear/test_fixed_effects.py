"""Margins do what a design matrix would."""

from functools import reduce

import numpy as np
import pytest

from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects, Margins
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.models.mixed_loglinear.starts import independent_means, rough_effects
from keyhole.numerics.binomial_match import binomial_match, poisson_match

LEVELS = (3, 2, 4)
MODELS = [((0,), (1,), (2,)), ((0, 1), (1, 2)), ((0, 1, 2),)]


def design(fixed: FixedEffects) -> np.ndarray:
    """The matrix that is never made: one row for each cell."""
    columns = []
    for term in fixed.terms:
        parts = [
            fixed.contrasts[key] if key in term else np.ones((size, 1)) for key, size in enumerate(fixed.levels)
        ]
        columns.append(reduce(np.kron, parts))
    return np.hstack(columns)


@pytest.mark.parametrize("generators", MODELS)
@pytest.mark.parametrize("overall", [False, True])
def test_effects_are_those_of_the_design_matrix(generators: tuple[tuple[int, ...], ...], overall: bool) -> None:
    rng = np.random.default_rng(0)
    fixed = FixedEffects.of(LEVELS, generators, overall=overall)
    X = design(fixed)
    assert X.shape == (24, fixed.number)
    beta, y = rng.normal(size=fixed.number), rng.random(LEVELS)
    np.testing.assert_allclose(fixed.predictor(beta).ravel(), X @ beta, atol=1e-12)
    np.testing.assert_allclose(fixed.projected(Margins(y)), X.T @ y.ravel(), atol=1e-12)
    information = X.T @ (y.ravel()[:, None] * X)
    np.testing.assert_allclose(fixed.information(Margins(y)), information, atol=1e-12)
    np.testing.assert_allclose(fixed.projected_squares(Margins(y)), np.diagonal(information), atol=1e-12)


def test_effects_add_up_to_zero_over_the_levels_of_any_key() -> None:
    fixed = FixedEffects.of(LEVELS, MODELS[1])
    effect = fixed.predictor(np.random.default_rng(1).normal(size=fixed.number))
    np.testing.assert_allclose(effect.mean(), 0.0, atol=1e-12)


def test_a_key_of_one_level_has_no_effect() -> None:
    fixed = FixedEffects.of((1, 3), ((0,), (1,)))
    assert fixed.number == 2
    assert fixed.predictor(np.ones(2)).shape == (1, 3)


def test_independent_means_have_the_margins_of_the_counts() -> None:
    rng = np.random.default_rng(2)
    counts = rng.poisson(3.0, 24)
    place = np.sort(rng.permutation(24)[:18])
    for table in (FullTable(LEVELS, None, counts, 0.1), FullTable(LEVELS, place, counts[place], 0.1)):
        fitted = Margins(table.spread(np.exp(independent_means(table))))
        seen = Margins(table.spread(table.counts.astype(float)))
        for key in range(3):
            np.testing.assert_allclose(fitted.of((key,)), seen.of((key,)), rtol=1e-6)
    beta = rough_effects(FixedEffects.of(LEVELS, MODELS[0]), FullTable(LEVELS, None, counts, 0.1))
    assert np.isfinite(beta).all()


def test_a_poisson_match_is_the_limit_of_binomial_ones() -> None:
    mean = np.array([0.01, 1.0, 30.0])
    counts = np.array([1, 3, 2])
    np.testing.assert_allclose(poisson_match(counts, mean), binomial_match(counts, 10**9, mean / 1e9), rtol=1e-7)
