"""Which three-way terms are added: none by habit where keys act in pairs, and weak ones where they do not."""

import numpy as np
import pytest

from keyhole.arrays import IntVector
from keyhole.models.sequential import screening
from keyhole.models.sequential.conditional import Block
from keyhole.models.sequential.fitting import FittedConditional, fit_conditional
from keyhole.models.sequential.joint import JointLaw, fit_joint
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.screening import LEAST_SCORE, joint_scores, share_left
from tests.models.sequential.people import LEVELS, conditionals_of, dependent_people, sample_of_codes

RECORDS, REPLICATES = 1_500, 12


@pytest.fixture(scope="module")
def pairwise_law() -> JointLaw:
    """Keys that act in pairs only."""
    codes = dependent_people(6_000, rng=np.random.default_rng(5))
    observed = Observed.of(sample_of_codes(codes, 10**6))
    order = tuple(range(len(LEVELS)))
    return fit_joint(observed, order, None, most_pairs=0, rng=np.random.default_rng(0))


def fitted(codes: IntVector) -> list[FittedConditional]:
    found = conditionals_of(sample_of_codes(codes, 10**6))
    return [fit_conditional(data, draft=True, rng=np.random.default_rng(0)) for data in found[2:]]


def scores(codes: IntVector) -> list[float]:
    return [z for fit in fitted(codes) for z in joint_scores(fit, LEVELS).values()]


def test_where_keys_act_in_pairs_scores_are_around_zero(pairwise_law: JointLaw) -> None:
    """A little above it, because the ridge leaves some of the two-way effects in the residuals."""
    found = [scores(pairwise_law.simulate(RECORDS, np.random.default_rng(seed))) for seed in range(REPLICATES)]
    assert -0.1 < np.mean(found) < 0.5
    assert 0.05 < np.mean(np.array(found) > LEAST_SCORE) < 0.25


def test_expecting_all_of_the_variance_would_miss_terms(
    pairwise_law: JointLaw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken on purpose: as if the two-way fit had spent nothing."""
    monkeypatch.setattr(screening, "share_left", lambda variance, _: np.ones_like(variance))
    found = [scores(pairwise_law.simulate(RECORDS, np.random.default_rng(seed))) for seed in range(REPLICATES)]
    assert np.mean(found) < -1.0
    assert np.mean(np.array(found) > LEAST_SCORE) < 0.01


def test_a_weak_joint_effect_is_found(pairwise_law: JointLaw) -> None:
    """Of the records half of the joint levels of two keys have, a fifth change the last key."""
    codes = pairwise_law.simulate(4 * RECORDS, np.random.default_rng(99))
    chosen = ((codes[:, 1] + codes[:, 2]) % 2 == 0) & (np.random.default_rng(7).random(len(codes)) < 0.2)
    codes[chosen, 5] = 1 - codes[chosen, 5]
    pairs = screening.choose_pairs(fitted(codes)[-1], LEVELS)
    assert next(iter(pairs)) == (1, 2)
    assert pairs[1, 2] > 3.0


def test_the_share_left_is_that_of_an_additive_fit() -> None:
    """Of keys that do not depend on each other: one minus the diagonal of the hat matrix of least squares."""
    weight = np.outer([5.0, 2.0, 1.0], [4.0, 3.0, 2.0, 1.0])
    block = Block((0, 1), (3, 4), np.arange(12))
    one, two = np.divmod(np.arange(12), 4)
    design = np.column_stack([np.eye(3)[one], np.eye(4)[two][:, 1:]]) * np.sqrt(weight.ravel())[:, None]
    hat = design @ np.linalg.solve(design.T @ design, design.T)
    share = share_left(weight.reshape(12, 1), block)
    np.testing.assert_allclose(share[:, 0], 1.0 - np.diag(hat), atol=1e-12)


def test_combinations_without_a_residual_of_their_own_are_passed_over() -> None:
    """Two keys of which one decides the other: their joint levels are those of one of them."""
    codes = dependent_people(800, rng=np.random.default_rng(3))
    codes[:, 1] = codes[:, 0] % LEVELS[1]
    for fit in fitted(codes):
        assert (0, 1) not in joint_scores(fit, LEVELS)
