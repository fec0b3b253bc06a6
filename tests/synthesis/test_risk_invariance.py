"""What the risk of synthetic files must not depend on, and files of next to nothing."""

import numpy as np
import pytest

from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.synthesis import class_draws, combination_risk
from keyhole.synthesis.class_draws import ClassDraw, Length
from keyhole.synthesis.generator import synthesize
from keyhole.synthesis.supports import Near
from tests.synthesis.small_files import (
    SHORT,
    assessed,
    runs,
    small_file,
    weighed,
)


def test_the_order_of_rows_does_not_matter() -> None:
    sampler, codes, copies = small_file(1)
    rng = np.random.default_rng(0)
    one = assessed(sampler, codes, copies)
    other = assessed(sampler, rng.permutation(codes), [rng.permutation(copy) for copy in copies])
    np.testing.assert_array_equal(one.combinations.probability, other.combinations.probability)
    np.testing.assert_array_equal(one.combinations.error, other.combinations.error)
    np.testing.assert_array_equal(one.weights.log_weight, other.weights.log_weight)
    assert one.combinations.counts.max() > 1
    assert one.combinations.counts.sum() == len(codes)
    assert (np.unique(one.combinations.cells, axis=0) == one.combinations.cells).all()


def test_threads_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, codes, copies = small_file(2)
    found = []
    for threads, at_once in ((1, 2_000_000), (4, 5_000)):
        for module in (class_draws, combination_risk):
            monkeypatch.setattr(module, "processors", lambda threads=threads: threads)
        monkeypatch.setattr(combination_risk, "AT_ONCE", at_once)
        found.append(assessed(sampler, codes, copies).combinations)
    np.testing.assert_allclose(found[0].probability, found[1].probability, rtol=1e-12)
    np.testing.assert_allclose(found[0].khat, found[1].khat, rtol=1e-6)
    np.testing.assert_array_equal(found[0].rank, found[1].rank)


def relabelled(draw: ClassDraw, rng: np.random.Generator) -> ClassDraw:
    """The same with other names for the classes, the one that stands for all empty ones too."""
    classes = draw.share.shape[1]
    order = rng.permutation(classes)
    place = np.argsort(order)
    assert draw.own is not None
    rows = np.concatenate([draw.weight, draw.weight[-1:]])  # nobody is taken away from the empty ones
    weight = np.concatenate([rows[:classes][order], draw.weight[-1:]])[:, order]
    return ClassDraw(weight, draw.share[:, order], draw.total[:, order], place[draw.own])


def test_names_of_classes_do_not_matter() -> None:
    sampler, codes, copies = small_file(3)
    asked = np.unique(codes, axis=0)
    rng = np.random.default_rng(0)
    drawn = [one.draws for one in runs(sampler, codes, copies, asked, SHORT)]
    other = [[relabelled(draw, rng) for draw in one] for one in drawn]
    support = Near(sampler.sizes, 2)
    one, two = weighed(support, asked, drawn), weighed(support, asked, other)
    np.testing.assert_allclose(one.chance, two.chance, rtol=1e-9)
    np.testing.assert_allclose(one.khat, two.khat, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("prior", ["uniform", "marginal"])
def test_a_single_record_and_a_single_key(prior: str) -> None:
    for codes, sizes in ((np.array([[1, 0]]), (3, 2)), (np.array([[0], [0], [2]]), (3,)), (np.array([[1]]), (2,))):
        sampler = LatentClassSampler(sizes, 3, prior)  # type: ignore[arg-type]
        rng = np.random.default_rng(3)
        copies = synthesize(sampler, codes, copies=2, length=Length(10, 1, 30, 2), rng=rng).copies
        found = assessed(sampler, codes, copies).combinations
        assert np.isfinite(found.probability).all()
        assert (found.probability > 0).all()
        assert (found.probability < 1).all()
        assert found.counts.sum() == len(codes)
        assert (found.candidates == 1 + sum(size - 1 for size in sizes)).all()


def test_records_that_are_alone_in_their_classes() -> None:
    """Records so far apart that each has a class: taken away, what is left is the law of the empty classes."""
    sizes = (9,) * 8
    codes = np.repeat(np.arange(9)[:, None], 8, axis=1)
    sampler = LatentClassSampler(sizes, 20, "marginal")
    rng = np.random.default_rng(3)
    copies = synthesize(sampler, codes, copies=1, length=Length(200, 1, 30, 1), rng=rng).copies
    found = assessed(sampler, codes, copies).combinations
    assert np.isfinite(found.probability).all()
    assert ((found.probability > 0) & (found.probability <= 1)).all()
    assert np.isfinite(found.error).all()
