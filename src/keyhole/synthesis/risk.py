"""The disclosure risk of synthetic files, for every combination of the confidential one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes
from keyhole.inference.fit import Diagnostic
from keyhole.inference.pareto_weights import HEAVY
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.model import NEAR
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.progress import Progress, silent
from keyhole.synthesis.class_draws import ClassDraw, Draws, draw_classes, occupied_in_words
from keyhole.synthesis.combination_risk import Evidence, weigh_combinations, weigh_in_short
from keyhole.synthesis.importance import CopyWeights, copy_weights
from keyhole.synthesis.question import Question
from keyhole.synthesis.risk_result import COARSE, Combinations, Estimator, SyntheticRisk

FEW, TOO_MANY = 0.05, 0.3
"""Shares of combinations not to be relied on that call for caution, and that spoil the whole."""

MANY = 200
"""Draws of the confidential file that weigh whole copies."""

FINER = 5
"""Times as many draws where parameters cannot be integrated out: their own scatter averages out within few sweeps,
and what is left of it in rare candidates makes the truth look less likely than it is."""


def synthetic_risk(
    sampler: LatentClassSampler,
    codes: Codes,
    copies: Sequence[Codes],
    question: Question,
    *,
    generating: Sequence[LatentClasses] | None = None,
    rng: Generator,
    progress: Progress = silent,
) -> SyntheticRisk:
    """Work out the risk of every distinct combination of ``codes``.

    Parameters
    ----------
    copies
        The synthetic files; nothing depends on the order of their rows.
    generating
        The parameters that made them, if they are known.
    """
    if sampler.diagram is not None:
        question = replace(question, length=question.length.finer(FINER))
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    chains, ends, more, walk = rng.spawn(4)
    streams = chains.spawn(len(copies) + 1)
    tree = CellTree.of(sampler.sizes, codes)
    # What the file alone predicts is in the ratio of every copy: its error counts m times, those of the copies add
    # up to that of sqrt(m) of them. Least error for the time comes with m times as many sweeps as with a copy.
    often = len(copies) if question.estimator == "bridge" else 1
    alone = draw_classes(
        sampler,
        tree,
        cells,
        replace(question.length, thin=question.length.thin * often),
        rng=streams[0],
        progress=progress,
        task="confidential file",
        keep_states=True,
    )

    def drawn(copy: Codes, task: str, own: Generator) -> Draws:
        """From where the chains on the file alone ended, so that both are in the same classes."""
        both = CellTree.of(sampler.sizes, np.concatenate([codes, copy]))
        length = replace(question.length, warmup=max(question.length.warmup // 2, 1))
        return draw_classes(sampler, both, cells, length, rng=own, progress=progress, task=task, starts=alone.ends)

    # The published sampler weighs whole copies instead of running chains with them.
    chains_with_copies = question.estimator == "bridge" or question.search is not None
    stacked = [
        drawn(copy, f"with copy {place} of {len(copies)}", own)
        for place, (copy, own) in enumerate(zip(copies, streams[1:], strict=True), 1)
        if chains_with_copies
    ]
    if question.search is not None:
        progress("searching combinations", 0)
        everything = np.unique(np.concatenate([cells, *copies]), axis=0)
        support = question.search.run(everything, alone.draws, [one.draws for one in stacked], walk)
        question = replace(question, support=support)
    states = _spread(alone.states, MANY)
    weights = copy_weights(sampler, states, copies, ends)
    made = None if generating is None else [ClassDraw.known(state, cells.shape[1]) for state in generating]
    found, curve = weigh_combinations(
        cells, counts, question, Evidence(alone, stacked, states, weights, made), progress
    )

    by_records = []
    for size, own in zip(question.sizes, more.spawn(len(question.sizes)), strict=True):
        # Records of a copy are exchangeable: any of them are a copy of fewer.
        parts = [copy[own.permutation(len(copy))[:size]] for copy in copies]
        smaller = [
            drawn(part, f"copies of {size:,} records", each)
            for part, each in zip(parts, own.spawn(len(parts)), strict=True)
            if question.estimator == "bridge"
        ]
        evidence = Evidence(alone, smaller, states, copy_weights(sampler, states, parts, own))
        by_records.append(weigh_in_short(cells, size, question, evidence, progress))
    return SyntheticRisk(
        copies=len(copies),
        records=len(codes),
        support=question.support.name,
        estimator=question.estimator,
        prior=question.prior,
        combinations=found,
        weights=weights,
        by_copies=curve,
        by_records=tuple(by_records),
        diagnostics=_diagnostics(sampler, [alone, *stacked], found, weights, question.estimator),
    )


def _spread(states: Sequence[LatentClasses], most: int) -> list[LatentClasses]:
    """At most so many, evenly spread."""
    places = np.unique(np.linspace(0, len(states) - 1, min(most, len(states))).round().astype(np.int64))
    return [states[place] for place in places]


def _diagnostics(
    sampler: LatentClassSampler,
    drawn: Sequence[Draws],
    found: Combinations,
    weights: CopyWeights,
    estimator: Estimator,
) -> tuple[Diagnostic, ...]:
    alone, most = drawn[0], max(one.most_classes for one in drawn)
    heavy, coarse = found.khat > HEAVY, found.error > COARSE * found.probability
    doubtful = float((heavy | coarse).mean())
    return (
        Diagnostic("rhat", alone.convergence.rhat, alone.agreement, alone.agreement_in_words),
        Diagnostic(
            "doubtful_combinations",
            doubtful,
            "good" if doubtful < FEW else "caution" if doubtful < TOO_MANY else "untrusted",
            f"Of {len(found):,} combinations, {int(heavy.sum()):,} have weights too uneven to rely on (k-hat "
            f"above {HEAVY:g}), and {int(coarse.sum()):,} a Monte Carlo error of more than half their chance.",
        ),
        Diagnostic(
            "classes",
            most,
            "good" if most < NEAR * sampler.classes else "caution",
            occupied_in_words(most, sampler.classes),
        ),
        Diagnostic(
            "importance",
            float(weights.effective.min()),
            "good" if estimator == "bridge" or weights.trusted else "untrusted",
            f"The published importance sampler would go by {weights.effective.min():.1f} to "
            f"{weights.effective.max():.1f} effective draws of {weights.log_weight.shape[1]}, k-hat up to "
            f"{weights.khat.max():.1f}"
            + (": its answers are not to be relied on." if not weights.trusted else "."),
        ),
    )
