"""Sampler and model are the same: Geweke's comparison, with and without structural zeros."""

import numpy as np
import pytest

from keyhole.arrays import Codes, Vector
from keyhole.models.membership import _kernels as kernels
from keyhole.models.membership.level_prior import Prior
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.models.membership.state import Memberships
from keyhole.numerics.concentration import GammaPrior
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
from tests.models.membership import twins
from tests.sampler_checks import geweke_scores, keys_of

LEVELS = (3, 2, 2)
ZEROS = StructuralZeros(keys_of(LEVELS), parse_zero_rules('- {K0: "0", K1: "1"}\n- {K1: "0", K2: "1"}'))
SIZE = 5


def statistics(state: Memberships, records: Codes) -> Vector:
    """What does not depend on the labels of the profiles, nor on profiles that nobody has."""
    start = np.cumsum([0, *LEVELS[:-1]])
    rows = np.asarray(records) + start
    held = state.theta[rows, state.z]
    weight = state.g0[state.z]
    alike = (state.z[:, 0] == state.z[:, 1]).mean()
    return np.array(
        [
            state.alpha.mean(),
            np.log(state.alpha).mean(),
            state.alpha0,
            held.mean(),
            (held**2).mean(),
            weight.mean(),
            (weight**2).mean(),
            alike,
            alike * state.alpha.mean(),
            float(len(np.unique(state.z))),
            np.log(state.mass).mean(),
            state.base[0],
            (records[:, 0] == 0).mean(),
            (records[:, 1] == records[:, 2]).mean(),
            (records[0] == records[1]).mean(),
        ]
    )


CASES = [
    pytest.param(0, "uniform", None, id="hdp-uniform"),
    pytest.param(0, "marginal", None, id="hdp-marginal"),
    pytest.param(0, "uniform", ZEROS, id="hdp-uniform-zeros"),
    pytest.param(3, "uniform", None, id="gom-uniform"),
    pytest.param(3, "marginal", None, id="gom-marginal"),
    pytest.param(3, "uniform", ZEROS, id="gom-uniform-zeros"),
]
"""Zeros with the flat prior only: learned masses make profiles with hardly an admissible record too frequent, and
one of these takes forever to redraw."""


def scores(sampler: MembershipSampler, draws: int, sweeps: int = 2, seed: int = 11) -> Vector:
    found = geweke_scores(sampler, SIZE, statistics, draws=draws, sweeps=sweeps, rng=np.random.default_rng(seed))
    constant = [2] * (sampler.components > 0) + [10, 11] * (sampler.prior == "uniform")
    return np.delete(found, constant)


@pytest.mark.statistical
@pytest.mark.parametrize(("components", "prior", "zeros"), CASES)
def test_sweeps_leave_the_joint_law_as_it_is(components: int, prior: Prior, zeros: StructuralZeros | None) -> None:
    found = scores(MembershipSampler(LEVELS, components, prior, zeros=zeros), 20_000)
    assert np.abs(found).max() < 4


@pytest.mark.parametrize(("components", "prior", "zeros"), [CASES[1], CASES[5]])
def test_a_short_look_at_the_joint_law(components: int, prior: Prior, zeros: StructuralZeros | None) -> None:
    assert np.abs(scores(MembershipSampler(LEVELS, components, prior, zeros=zeros), 800, 1)).max() < 4.5


@pytest.mark.statistical
def test_the_printed_table_counts_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """With alpha_0 far from alpha_i, so that to take one for the other shows."""
    monkeypatch.setattr(kernels, "allocate", twins.slipped)
    sampler = MembershipSampler(LEVELS, 0, "uniform", above=GammaPrior(20.0, 1.0))
    assert np.abs(scores(sampler, 4_000)).max() > 5


@pytest.mark.statistical
@pytest.mark.parametrize("components", [3])
def test_zeros_without_imaginary_records_are_rejected(components: int) -> None:
    class Careless(MembershipSampler):
        def sweep(self, state: Memberships, records: Codes, rng: np.random.Generator) -> Memberships:
            return MembershipSampler(LEVELS, components, "uniform").sweep(state, records, rng)

    assert np.abs(scores(Careless(LEVELS, components, "uniform", zeros=ZEROS), 1500, 3)).max() > 5
