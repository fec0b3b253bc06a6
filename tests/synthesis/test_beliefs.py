"""What the intruder believed beforehand, and what he would know from the parameters."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from keyhole.arrays import Codes
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.synthesis.class_draws import ClassDraw, Length
from keyhole.synthesis.supports import Near, all_cells
from keyhole.synthesis.weighing import weigh
from tests.synthesis.small_files import (
    SHORT,
    SIZES,
    every_cell,
    level_counts,
    normal,
    run,
    skewed,
    small_file,
    weighed,
    without,
)


def test_beliefs_multiply_what_copies_tell(sampled: tuple[tuple[int, ...], Codes, Sequence[ClassDraw]]) -> None:
    sizes, asked, draws = sampled
    support = Near(sizes)
    mask = support.mask(asked)
    rng = np.random.default_rng(0)
    beliefs = rng.normal(size=mask.shape)
    drawn = [draws, draws[::-1]]
    even, uneven = weighed(support, asked, drawn), weighed(support, asked, drawn, beliefs)
    expected = even.chance[-1] * np.exp(beliefs)
    np.testing.assert_allclose(uneven.chance[-1], expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(uneven.before.sum(axis=1), 1.0)
    np.testing.assert_allclose(even.before, mask / mask.sum(axis=1, keepdims=True))


def test_with_beliefs_of_the_model_one_copy_leaves_the_file_with_the_copy() -> None:
    """p(x | others) p(x | others, copy) / p(x | others): the draws of the file alone cancel, errors and all."""
    sampler, codes, copies = small_file(6)
    asked = np.unique(codes, axis=0)
    support, places = Near(sampler.sizes), np.arange(len(asked))
    alone, other = (run(sampler, codes, asked, SHORT, seed).draws for seed in (1, 2))
    stacked = run(sampler, np.concatenate([codes, copies[0]]), asked, SHORT, 3).draws
    one = weigh(asked, support, alone, [stacked], places, None, model_prior=True)
    two = weigh(asked, support, other, [stacked], places, None, model_prior=True)
    np.testing.assert_allclose(one.chance, two.chance, rtol=1e-9)
    np.testing.assert_allclose(one.error, two.error, rtol=1e-6)


def test_knowing_the_parameters_is_bayes_rule_with_them() -> None:
    rng = np.random.default_rng(14)
    codes = skewed(SIZES, 30, rng)
    asked = np.unique(codes, axis=0)
    sampler = LatentClassSampler(SIZES, 1, "uniform", splits=0)
    drawn = run(sampler, codes, asked, Length(1, 1, 16, 2), 1)
    made = [ClassDraw.known(drawn.states[place], 3) for place in (3, 7)]
    found = weigh(
        asked, all_cells(SIZES, None), drawn.draws, [drawn.draws], np.arange(len(asked)), None, generating=made
    )
    cells = every_cell(SIZES)
    for i, row in enumerate(asked):
        others = level_counts(without(codes, row), SIZES)
        log = np.zeros(len(cells))
        for place in (3, 7):  # density of the parameters given the others and x
            theta = np.exp(drawn.states[place].log_theta[:, 0])
            for c, cell in enumerate(cells):
                for j, part in enumerate(np.split(theta, np.cumsum(SIZES)[:-1])):
                    seen = 1.0 + others[j] + np.eye(SIZES[j])[cell[j]]
                    log[c] += stats.dirichlet.logpdf(part / part.sum(), seen)
        assert found.known is not None
        assert found.known[i] == pytest.approx(normal(log)[(cells == row).all(axis=1)][0], rel=1e-8)
