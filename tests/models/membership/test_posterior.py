"""The sampler against the exact posterior of a few records, every allocation enumerated."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest

from keyhole.arrays import Vector
from keyhole.models.membership import _kernels as kernels
from keyhole.models.membership import sampler
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.numerics.concentration import GammaPrior
from tests.models.membership import twins

RECORDS = np.array([[0, 0, 1], [1, 1, 1]], dtype=np.int32)
LEVELS = (2, 2, 2)
BATCHES = 50
SECOND_KEY_FORGOTTEN = partial(twins.split_or_merge, choice=False)

ABOVE = GammaPrior(20.0, 1.0)
"""alpha_0 far from alpha_i, so that to take one for the other shows."""


def visited(model: MembershipSampler, hierarchical: bool, sweeps: int = 3000) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(8)
    state = model.start(RECORDS, rng, crowded=True)
    found = []
    for _ in range(sweeps):
        state = model.sweep(state, RECORDS, rng)
        found.append(twins.canonical(state.z) if hierarchical else tuple(state.z.ravel().tolist()))
    return found


def features(z: tuple[int, ...]) -> list[float]:
    """What is compared: pairs of keys with the same profile, within a record and between records, and its use."""
    one, other = np.array(z).reshape(RECORDS.shape)
    within = [one[0] == one[1], one[1] == one[2], other[0] == other[2], len(set(one)) == 1, len(set(other)) == 1]
    between = [one[0] == other[0], one[2] == other[2], one[0] == other[1]]
    number = [len(set(z)) == k for k in range(1, 7)]
    return [float(truth) for truth in (*within, *between, *number)]


def scores(found: list[tuple[int, ...]], exact: dict[tuple[int, ...], float]) -> Vector:
    """z-scores of the mean features, with standard errors by batch means."""
    assert set(found) <= set(exact)
    expected = np.array(list(exact.values())) @ np.array([features(z) for z in exact])
    means = np.array([features(z) for z in found]).reshape(BATCHES, -1, len(expected)).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(BATCHES)
    return np.asarray((means.mean(axis=0) - expected) / np.maximum(error, 1e-3))


@cache
def exact_posterior(components: int) -> dict[tuple[int, ...], float]:
    if not components:
        return twins.hierarchical_posterior(RECORDS, LEVELS, ABOVE)
    return twins.graded_posterior(RECORDS, LEVELS, components)


def test_graded_membership_visits_allocations_as_often_as_it_must() -> None:
    found = visited(MembershipSampler(LEVELS, 3, "uniform"), False, 12_000)
    assert np.abs(scores(found, exact_posterior(3))).max() < 4


def test_hierarchical_membership_visits_partitions_as_often_as_it_must() -> None:
    found = visited(MembershipSampler(LEVELS, 0, "uniform", above=ABOVE), True, 12_000)
    assert np.abs(scores(found, exact_posterior(0))).max() < 4


@pytest.mark.statistical
@pytest.mark.parametrize("above", [GammaPrior(), GammaPrior(1.0, 2.0)], ids=["many", "few"])
def test_profiles_of_one_key_come_and_go_as_they_must(above: GammaPrior) -> None:
    """With a small alpha_0 it shows whether a key's own profile is taken for one that others have."""
    found = visited(MembershipSampler(LEVELS, 0, "uniform", above=above), True, 80_000)
    assert np.abs(scores(found, twins.hierarchical_posterior(RECORDS, LEVELS, above))).max() < 4


@pytest.mark.statistical
def test_the_table_counts_printed_in_the_paper_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "allocate", twins.slipped)
    found = visited(MembershipSampler(LEVELS, 0, "uniform", above=ABOVE), True, 6000)
    assert np.abs(scores(found, exact_posterior(0))).max() > 4


def test_an_alpha_that_does_not_know_the_tables_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "draw_common", lambda prior, tables, longer, rng: 8.0 + prior.draw(rng))
    found = visited(MembershipSampler(LEVELS, 3, "uniform"), False)
    assert np.abs(scores(found, exact_posterior(3))).max() > 5


@pytest.mark.parametrize(
    ("components", "name", "broken"),
    [
        (0, "move_tables", twins.heedless),
        pytest.param(3, "move_tables", twins.heedless, marks=pytest.mark.statistical),
        pytest.param(0, "split_or_merge", SECOND_KEY_FORGOTTEN, marks=pytest.mark.statistical),
        pytest.param(3, "split_or_merge", SECOND_KEY_FORGOTTEN, marks=pytest.mark.statistical),
        pytest.param(
            3, "split_or_merge", partial(twins.split_or_merge, labels=False), marks=pytest.mark.statistical
        ),
    ],
)
def test_broken_moves_are_rejected(
    components: int, name: str, broken: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, name, broken)
    model = MembershipSampler(LEVELS, components, "uniform", above=ABOVE)
    vars(model)["moves"] = ("keys", "tables") if name == "move_tables" else ("keys", "profiles", "profiles")
    found = visited(model, components == 0, 120_000 if broken is SECOND_KEY_FORGOTTEN else 12_000)
    assert np.abs(scores(found, exact_posterior(components))).max() > 4
