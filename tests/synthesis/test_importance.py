"""The published importance sampler: its formula, and how it fails."""

import numpy as np
import pytest

from keyhole.arrays import Codes
from keyhole.inference.pareto_weights import HEAVY
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.synthesis.chances import chances
from keyhole.synthesis.class_draws import Length
from keyhole.synthesis.generator import synthesize
from keyhole.synthesis.importance import CopyWeights, copy_weights, importance_sums
from keyhole.synthesis.supports import Near
from keyhole.synthesis.weighing import weigh
from tests.synthesis.small_files import (
    SHORT,
    assessed,
    clustered,
    run,
    small_file,
)


def test_the_weights_of_whole_copies_spread_as_the_number_of_parameters_says() -> None:
    """log p = -|u - v|^2 / 2: u standard normal in q dimensions, v of variance 2 (posterior and copy): 5 q / 2.

    Given v its variance over u is q / 2 + |v|^2, and |v|^2 is 2 q on average. The effective share of the draws is
    (3/4)^(q/2) exp(-|v|^2 / 6), about exp(-0.48 q).
    """
    rng = np.random.default_rng(4)
    sizes = (5, 6, 7, 4, 6)
    q = sum(size - 1 for size in sizes)
    codes = np.stack([rng.integers(0, size, 3_000) for size in sizes], axis=1)
    sampler = LatentClassSampler(sizes, 1, "uniform", splits=0)
    length = Length(5, 1, 200, 2)
    made = synthesize(sampler, codes, copies=25, length=length, rng=rng)
    weights = copy_weights(sampler, made.draws.states, made.copies, rng)
    ratio = np.sqrt((weights.spread**2).mean() / (2.5 * q))
    print(f"spread over sqrt(2.5 q): {ratio:.3f}; effective draws {weights.effective.mean():.2f} of 200")
    assert ratio == pytest.approx(1.0, abs=0.12)
    assert np.median(weights.effective) < 6
    assert weights.khat.max() > HEAVY
    assert not weights.trusted


def test_one_parameter_is_not_too_many_for_whole_copies() -> None:
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 2, (500, 1))
    sampler = LatentClassSampler((2,), 1, "uniform", splits=0)
    made = synthesize(sampler, codes, copies=40, length=Length(5, 1, 400, 2), rng=rng)
    weights = copy_weights(sampler, made.draws.states, made.copies, rng)
    assert (weights.spread**2).mean() == pytest.approx(2.5, rel=0.5)
    assert np.median(weights.effective) > 100


def test_few_effective_draws_are_not_trusted_even_where_khat_is_small() -> None:
    log = np.zeros((1, 200))
    assert CopyWeights(log).trusted
    assert CopyWeights(log).effective[0] == pytest.approx(200)
    assert not CopyWeights(13.0 * np.random.default_rng(0).normal(size=(1, 200))).trusted


def test_the_importance_sampler_is_never_passed_off_as_sound() -> None:
    rng = np.random.default_rng(12)
    sizes = (5, 6, 5)
    codes = clustered(sizes, 400, rng)
    sampler = LatentClassSampler(sizes, 8, "marginal")
    made = synthesize(sampler, codes, copies=2, length=SHORT, rng=rng).copies
    found = assessed(sampler, codes, made, estimator="importance")
    assert not found.weights.trusted
    assert not found.trusted
    assert found.untrusted.all()
    (said,) = (one for one in found.diagnostics if one.name == "importance")
    assert said.verdict == "untrusted"
    assert said.value == pytest.approx(found.weights.effective.min())
    assert "not to be relied on" in said.words
    bridged = assessed(sampler, codes, made)
    (said,) = (one for one in bridged.diagnostics if one.name == "importance")
    assert said.verdict == "good"
    assert not bridged.untrusted.all()


def test_the_importance_sampler_is_the_published_formula() -> None:
    """Equations 12 to 15, in loops."""
    sampler, codes, copies = small_file(3, 12)
    asked = np.unique(codes, axis=0)[:3]
    states = run(sampler, codes, np.unique(codes, axis=0), Length(20, 1, 12, 1), 1).states
    rng = np.random.default_rng(0)
    support = Near(sampler.sizes)
    sums = importance_sums(asked, support, states, copy_weights(sampler, states, copies, rng))
    even = np.where(support.mask(asked), 0.0, -np.inf)
    found = chances(even, [one.sum(axis=0) for one in sums])[-1]
    mask, candidates = support.mask(asked), support.candidates(asked)

    def probability(state: LatentClasses, cell: Codes) -> float:
        return float(np.exp(state.log_weight + state.log_theta[sampler.begins[:-1] + cell].sum(axis=0)).sum())

    for i, row in enumerate(asked):
        expected = np.zeros(mask.shape[1])
        for place in np.flatnonzero(mask[i]):
            ratio = np.array([probability(s, candidates[i, place]) / probability(s, row) for s in states])
            expected[place] = 1.0
            for copy in copies:
                p = np.array([sum(np.log(probability(s, one)) for one in copy) for s in states])
                expected[place] *= np.exp(p - p.max()) @ (ratio / ratio.sum())
        np.testing.assert_allclose(found[i], expected / expected.sum(), rtol=1e-8)


def test_the_importance_sampler_answers_every_question_itself() -> None:
    """Curves, errors and beliefs are its own: the last point of the curve is the whole, and beliefs multiply."""
    sampler, codes, copies = small_file(4)
    even, model = (assessed(sampler, codes, copies, estimator="importance", prior=p) for p in ("uniform", "model"))
    bridged = assessed(sampler, codes, copies)
    for found in (even, model):
        last, each = found.by_copies[-1], found.combinations
        assert last.mean_probability == pytest.approx(each.probability.mean())
        assert last.top_ranked == each.ranked(1)
        assert (each.khat == found.weights.khat.max()).all()
    assert np.abs(even.combinations.probability - bridged.combinations.probability).max() > 0.01
    assert np.abs(even.combinations.error - bridged.combinations.error).max() > 0.001
    np.testing.assert_allclose(bridged.combinations.before, even.combinations.before)
    asked = even.combinations.cells
    support = Near(sampler.sizes)
    drawn = run(sampler, codes, asked, SHORT, 3)
    published = drawn.states, copy_weights(sampler, drawn.states, copies, np.random.default_rng(0))
    one, two = (
        weigh(
            asked, support, drawn.draws, (), np.arange(len(asked)), None, model_prior=by_model, published=published
        )
        for by_model in (False, True)
    )
    expected = one.chance[-1] * two.before
    np.testing.assert_allclose(two.chance[-1], expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


def test_the_error_of_the_importance_sampler_tells_that_one_draw_decides() -> None:
    """Five copies of a file with many parameters: answers with an eighth of the draws left out are all over."""
    rng = np.random.default_rng(12)
    sizes = (5, 6, 5)
    codes = clustered(sizes, 400, rng)
    sampler = LatentClassSampler(sizes, 8, "marginal")
    made = synthesize(sampler, codes, copies=3, length=SHORT, rng=rng).copies
    published = assessed(sampler, codes, made, estimator="importance").combinations
    bridged = assessed(sampler, codes, made).combinations
    assert np.median(published.error / published.probability) > np.median(bridged.error / bridged.probability)
