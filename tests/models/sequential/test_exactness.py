"""Where the answer is known exactly: saturated fits, margins, and probabilities that add up to one."""

import numpy as np
import pytest

from keyhole.models.sequential.joint import JointLaw, fit_joint
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import key_orders
from keyhole.population.sample import Sample
from tests.models.sequential.people import (
    LEVELS,
    dependent_people,
    possible_people,
    sample_of_codes,
    some_sample,
    zeros_of,
)
from tests.table.brute_force import all_cells


def law_of(sample: Sample, turn: int = 0, **options: object) -> JointLaw:
    observed = Observed.of(sample)
    order = key_orders(observed, 3)[turn]
    return fit_joint(observed, order, sample.zeros, rng=np.random.default_rng(0), **options)  # type: ignore[arg-type]


def test_all_interactions_reproduce_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three keys, the last one given both others jointly, no ridge: every cell gets its share of the records."""
    monkeypatch.setattr("keyhole.models.sequential.screening.joint_scores", lambda *_: {(0, 1): 2.0})
    codes = dependent_people(20_000, (4, 3, 2), rng=np.random.default_rng(2))
    sample = sample_of_codes(codes, 10**6, (4, 3, 2))
    assert sample.table.occupied == 24
    law = law_of(sample, ridge=False)
    assert [len(pairs) for pairs in law.pairs] == [0, 0, 1]
    share = sample.table.counts / sample.sample_size
    np.testing.assert_allclose(np.exp(law.log_probability(law.observed.cells)), share, atol=1e-6)
    # Without the three-way term the table is not reproduced.
    plain = law_of(sample, most_pairs=0, ridge=False)
    assert np.abs(np.exp(plain.log_probability(plain.observed.cells)) - share).max() > 1e-4


def test_one_key_is_its_margin() -> None:
    codes = dependent_people(500, (9,), rng=np.random.default_rng(3))
    sample = sample_of_codes(codes, 10**5, (9,))
    law = law_of(sample)
    share = sample.table.counts / sample.sample_size
    np.testing.assert_allclose(np.exp(law.moments[:, 0]), share, rtol=1e-6)


def test_the_first_key_keeps_its_margin_among_others() -> None:
    sample = some_sample()
    law = law_of(sample)
    first = law.order[0]
    cells = all_cells(law.observed.sizes)
    margin = np.bincount(cells[:, first], np.exp(law.log_probability(cells)))
    share = np.bincount(law.observed.cells[:, first], law.observed.records) / sample.sample_size
    np.testing.assert_allclose(margin, share, rtol=1e-6)


@pytest.mark.parametrize("turn", [0, 1, 2])
@pytest.mark.parametrize("declared", [False, True])
def test_probabilities_add_up_to_one(turn: int, declared: bool) -> None:
    zeros = zeros_of() if declared else None
    sample = sample_of_codes(possible_people(500, rng=np.random.default_rng(4)), 10**4, zeros=zeros)
    law = law_of(sample, turn)
    dense = all_cells(law.observed.sizes)
    cells = np.stack([levels[codes] for levels, codes in zip(law.observed.levels, dense.T, strict=True)], axis=1)
    probability = np.exp(law.log_probability(dense))
    assert probability.sum() == pytest.approx(1.0, rel=1e-10)
    impossible = zeros_of().contains(cells)
    if declared:
        assert not probability[impossible].any()
        assert (probability[~impossible] > 0).all()
    else:
        assert probability[impossible].sum() > 0.01


def test_moments_and_probability_agree_on_seen_cells() -> None:
    sample = sample_of_codes(possible_people(500, rng=np.random.default_rng(4)), 10**4, zeros=zeros_of())
    law = law_of(sample)
    np.testing.assert_allclose(law.moments[:, 0], law.log_probability(law.observed.cells), rtol=1e-10)


def test_simulated_people_follow_the_law() -> None:
    sample = sample_of_codes(dependent_people(400, (3, 3, 2), rng=np.random.default_rng(5)), 10**4, (3, 3, 2))
    law = law_of(sample)
    size = 100_000
    drawn = law.simulate(size, np.random.default_rng(6))
    cells = all_cells((3, 3, 2))
    probability = np.exp(law.log_probability(cells))
    packed = np.ravel_multi_index(tuple(drawn.T), (3, 3, 2))
    share = np.bincount(packed, minlength=18) / size
    z = (share - probability) / np.sqrt(probability * (1 - probability) / size)
    assert np.abs(z).max() < 4
    assert np.abs((share - 1 / 18) / np.sqrt(1 / 18 / size)).max() > 10


def test_declared_zeros_raise_the_likelihood() -> None:
    """Mass that could only lie in impossible cells goes to the people who are there."""
    codes = possible_people(800, rng=np.random.default_rng(7))
    free = law_of(sample_of_codes(codes, 10**4))
    declared = law_of(sample_of_codes(codes, 10**4, zeros=zeros_of()))
    records = free.observed.records
    assert records @ declared.moments[:, 0] > records @ free.moments[:, 0]
    held_out = possible_people(2000, rng=np.random.default_rng(7))[800:]
    assert len(held_out) > 500
    assert declared.observed.sizes == LEVELS
    assert declared.log_probability(held_out).mean() > free.log_probability(held_out).mean()


def test_a_law_in_several_terms_is_unsure_of_unseen_combinations() -> None:
    """Combinations of earlier levels that nobody has add nothing: the law stays finite and adds up."""
    codes = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [2, 2, 1], [2, 2, 1], [0, 0, 1]])
    law = law_of(sample_of_codes(codes, 100, (3, 3, 2)))
    probability = np.exp(law.log_probability(all_cells((3, 3, 2))))
    assert (probability > 0).all()
    assert probability.sum() == pytest.approx(1.0)
