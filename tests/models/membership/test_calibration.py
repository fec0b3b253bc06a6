"""Intervals of tau1 and tau2 hold what they promise: ranks of the truth among posterior draws are uniform."""

import numpy as np
import pytest
from numpy.random import Generator

from keyhole.arrays import Codes
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.models.membership.state import Memberships
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
from tests.sampler_checks import calibration_ranks, keys_of, uniformity

LEVELS = (4, 3, 3)
ZEROS = StructuralZeros(keys_of(LEVELS), parse_zero_rules('- {K0: "0", K1: "1"}'))
RUN = {"people": 60, "records": 15, "replicates": 200, "warmup": 60, "draws": 30, "thin": 3}


class Forgetful(MembershipSampler):
    """Learns from one record only."""

    def start(self, records: Codes, rng: Generator, *, crowded: bool) -> Memberships:
        return super().start(records[:1], rng, crowded=crowded)

    def sweep(self, state: Memberships, records: Codes, rng: Generator) -> Memberships:
        return super().sweep(state, records[:1], rng)


def sampler(components: int, zeros: StructuralZeros | None = None) -> MembershipSampler:
    return MembershipSampler(LEVELS, components, "uniform", zeros=zeros, memberships=512)


@pytest.mark.statistical
@pytest.mark.parametrize("components", [0, 3])
@pytest.mark.parametrize("zeros", [None, ZEROS], ids=["all", "zeros"])
def test_ranks_are_uniform(components: int, zeros: StructuralZeros | None) -> None:
    ranks = calibration_ranks(sampler(components, zeros), LEVELS, **RUN, rng=np.random.default_rng(5))
    assert min(uniformity(ranks[:, i]) for i in range(2)) > 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("components", [0, 3])
def test_forgotten_records_are_noticed(components: int) -> None:
    wrong = Forgetful(LEVELS, components, "uniform", memberships=512)
    ranks = calibration_ranks(wrong, LEVELS, **RUN, rng=np.random.default_rng(5))
    assert min(uniformity(ranks[:, i]) for i in range(2)) < 1e-4
