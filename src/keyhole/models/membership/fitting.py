"""Chains of a mixed membership model on a sample, and what is to be said of them."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes
from keyhole.inference.chain import Watched
from keyhole.inference.chains import Chains, run_chains
from keyhole.inference.checkpoint import Checkpoint
from keyhole.inference.fit import Diagnostic
from keyhole.inference.ignored_weights import ignored_weights
from keyhole.inference.other_samples import redrawn_counts
from keyhole.inference.sampled_fit import SampledFit
from keyhole.inference.schedule import Schedule
from keyhole.inference.track_record import UNTRIED
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.models.membership.state import Memberships
from keyhole.population.sample import Sample
from keyhole.progress import Progress

EVERY = 20
"""Sweeps between two looks at the cells: a look costs as much as ten of them, and neighbours tell the same."""

REPEATS = 4
"""Times that the cells of a last state are weighed again, to see what the choice of memberships does to tau1."""

NEGLIGIBLE = 0.3
"""Share of the deviation of tau1 that may come from the memberships: a tenth of its variance."""


def records_of(sample: Sample) -> Codes:
    """One row for each record, records of a cell together."""
    return np.repeat(sample.table.cells, sample.table.counts, axis=0).astype(np.int32)


def fit_sampler(
    sampler: MembershipSampler,
    sample: Sample,
    schedule: Schedule,
    remarks: tuple[Diagnostic, ...],
    checkpoint: Checkpoint | None,
    *,
    rng: Generator,
    progress: Progress,
) -> SampledFit:
    """The fit, with the model's own remarks."""
    own = rng.spawn(1)[0]
    watched = Watched(sample, EVERY)
    chains = run_chains(
        sampler, records_of(sample), watched, schedule, rng=rng, progress=progress, checkpoint=checkpoint
    )
    said = (*_remarks(sampler, sample, watched, chains, own), *remarks)
    return SampledFit(sample, chains, said, another=partial(redrawn_counts, sampler, sample))


def _remarks(
    sampler: MembershipSampler, sample: Sample, watched: Watched, chains: Chains[Memberships], rng: Generator
) -> Iterator[Diagnostic]:
    profiles = chains.values("profiles")
    words = f"There were {profiles.min():.0f} to {profiles.max():.0f} profiles, {profiles.mean():.1f} on average."
    yield Diagnostic("profiles", float(profiles.mean()), "good", words)
    if sampler.zeros is not None:
        yield _imaginary(chains, sample)
    if sample.uniques and sample.unsampled_size:
        yield _cell_error(sampler, sample, watched, chains, rng)
    yield from ignored_weights(sample)
    yield UNTRIED


def _imaginary(chains: Chains[Memberships], sample: Sample) -> Diagnostic:
    ratio = float(chains.values("imaginary").mean()) / max(sample.sample_size, 1)
    words = f"Beside each record {ratio:.2g} inadmissible ones were imagined, to learn what the zeros leave out."
    return Diagnostic("imaginary", ratio, "good", words)


def _cell_error(
    sampler: MembershipSampler, sample: Sample, watched: Watched, chains: Chains[Memberships], rng: Generator
) -> Diagnostic:
    """By how much tau1 of one state varies with the memberships over which its cells are averaged."""
    cells = sample.table.cells
    variances = [
        np.var([watched.taus(sampler.probabilities(chain.state, cells, rng))[0] for _ in range(REPEATS)], ddof=1)
        for chain in chains.chains
    ]
    spread = float(chains.values("tau1").std())
    share = float(np.sqrt(np.mean(variances)) / spread) if spread > 0 else 0.0
    return Diagnostic(
        "cell_error",
        share,
        "good" if share < NEGLIGIBLE else "caution",
        f"Cells are averaged over {sampler.memberships:,} memberships, which accounts for {share:.0%} of the "
        "deviation of tau1.",
    )
