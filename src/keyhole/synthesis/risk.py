"""The disclosure risk of synthetic files, for every combination of the confidential one."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.pareto_weights import HEAVY
from keyhole.inference.threads import processors
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.model import NEAR
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.progress import Progress, silent
from keyhole.synthesis.bridge import Weighed, blocks, ranks, weigh
from keyhole.synthesis.class_draws import ClassDraw, Draws, Length, draw_classes
from keyhole.synthesis.importance import CopyWeights, copy_weights, importance_chances
from keyhole.synthesis.risk_result import COARSE, Combinations, CurvePoint, Estimator, Prior, SyntheticRisk
from keyhole.synthesis.search import Search
from keyhole.synthesis.supports import Support

Answer = TypeVar("Answer")

FEW, TOO_MANY = 0.05, 0.3
"""Shares of combinations not to be relied on that call for caution, and that spoil the whole."""

MANY = 200
"""Draws of the confidential file that weigh whole copies."""


Beliefs = Callable[[Codes], Vector]
"""The logarithm of what an intruder believes of combinations, by row."""


@dataclass(frozen=True, eq=False)
class Question:
    """What to work out: candidates, estimator, the intruder's beliefs, and the keys he wants to learn.

    With a search its candidates take the place of the support.
    """

    support: Support
    estimator: Estimator = "bridge"
    prior: Prior = "uniform"
    beliefs: Beliefs | None = None
    learns: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    length: Length = field(default=Length())
    search: Search | None = None


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
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    chains, ends, more = rng.spawn(3)

    streams = chains.spawn(len(copies) + 1)
    tree = CellTree.of(sampler.sizes, codes)
    alone = draw_classes(
        sampler,
        tree,
        cells,
        question.length,
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

    stacked = [
        drawn(copy, f"with copy {place} of {len(copies)}", own)
        for place, (copy, own) in enumerate(zip(copies, streams[1:], strict=True), 1)
    ]
    if question.search is not None:
        progress("searching combinations", 0)
        everything = np.unique(np.concatenate([cells, *copies]), axis=0)
        support = question.search.run(everything, alone.draws, [one.draws for one in stacked], rng.spawn(1)[0])
        question = replace(question, support=support)
    weights = copy_weights(sampler, _spread(alone.states, MANY), copies, ends)
    found, curve = _all_combinations(cells, counts, question, alone, stacked, weights, generating, progress)
    by_records = [
        _smaller(cells, copies, question, alone, size, drawn, own, progress)
        for size, own in zip(question.sizes, more.spawn(len(question.sizes)), strict=True)
    ]
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


def _all_combinations(
    cells: Codes,
    counts: IntVector,
    question: Question,
    alone: Draws,
    stacked: Sequence[Draws],
    weights: CopyWeights,
    generating: Sequence[LatentClasses] | None,
    progress: Progress,
) -> tuple[Combinations, tuple[CurvePoint, ...]]:
    made = None if generating is None else [ClassDraw.known(state, cells.shape[1]) for state in generating]
    states = _spread(alone.states, MANY)

    def answered(block: IntVector) -> dict[str, Any]:
        part = cells[block]
        weighed = _weighed(part, block, question, alone, stacked, made)
        chance, mask = weighed.chance[-1], question.support.mask(part)
        if question.estimator == "importance":
            chance = importance_chances(part, question.support, states, weights, _beliefs(question, part))
        same = _same(question, part)
        return {
            "probability": chance[:, 0],
            "error": weighed.error,
            "rank": ranks(chance, mask),
            "before": weighed.before[:, 0],
            "candidates": mask.sum(axis=1),
            "needed": chance.max(axis=1) / np.maximum(chance[:, 0], 1e-300),
            "khat": weighed.khat,
            "learned": None if same is None else (chance * same).sum(axis=1),
            "learned_before": None if same is None else (weighed.before * same).sum(axis=1),
            "known": weighed.known,
            "curve": np.stack([[one[:, 0], ranks(one, mask)] for one in weighed.chance], axis=2),
        }

    answers = _in_blocks(answered, cells, question, len(alone.draws), progress)
    joined: dict[str, Any] = {
        name: None if answers[0][name] is None else np.concatenate([one[name] for one in answers], axis=-1)
        for name in answers[0]
        if name != "curve"
    }
    curve = np.concatenate([one["curve"].transpose(0, 2, 1) for one in answers], axis=2)
    return Combinations(cells=cells, counts=counts.astype(np.int64), **joined), _curve(*curve)


def _in_blocks(
    answered: Callable[[IntVector], Answer], cells: Codes, question: Question, draws: int, progress: Progress
) -> list[Answer]:
    """Answers of all combinations, block by block, on as many threads as there are processors."""
    width = question.support.candidates(cells[:1]).shape[1]
    parts, found = blocks(len(cells), draws, width), []
    with ThreadPoolExecutor(processors()) as threads:
        for place, answer in enumerate(threads.map(answered, parts)):
            progress("weighing combinations", int(parts[place][-1]) + 1, len(cells))
            found.append(answer)
    return found


def _weighed(
    cells: Codes,
    block: IntVector,
    question: Question,
    alone: Draws,
    stacked: Sequence[Draws],
    generating: Sequence[ClassDraw] | None = None,
) -> Weighed:
    return weigh(
        cells,
        question.support,
        alone.draws,
        [one.draws for one in stacked],
        block,
        _beliefs(question, cells),
        model_prior=question.prior == "model",
        generating=generating,
    )


def _same(question: Question, cells: Codes) -> Mask | None:
    """Which candidates have the true levels of the keys to be learned."""
    if not question.learns:
        return None
    learns = list(question.learns)
    return np.asarray((question.support.candidates(cells)[:, :, learns] == cells[:, None, learns]).all(axis=2))


def _smaller(
    cells: Codes,
    copies: Sequence[Codes],
    question: Question,
    alone: Draws,
    size: int,
    drawn: Callable[..., Draws],
    rng: Generator,
    progress: Progress,
) -> CurvePoint:
    """The risk had copies had only so many records: any of them, since they are exchangeable."""
    parts = [copy[rng.permutation(len(copy))[:size]] for copy in copies]
    stacked = [
        drawn(part, f"copies of {size:,} records", own)
        for part, own in zip(parts, rng.spawn(len(parts)), strict=True)
    ]

    def answered(block: IntVector) -> Vector:
        chance = _weighed(cells[block], block, question, alone, stacked).chance[-1]
        first = ranks(chance, question.support.mask(cells[block])).astype(np.float64)
        return np.stack([chance[:, 0], first])

    whole = np.concatenate(_in_blocks(answered, cells, question, len(alone.draws), progress), axis=1)
    (point,) = _curve(whole[:1], whole[1:])
    return CurvePoint(size, point.mean_probability, point.max_probability, point.top_ranked)


def _beliefs(question: Question, cells: Codes) -> Vector | None:
    if question.beliefs is None:
        return None
    candidates = question.support.candidates(cells)
    return question.beliefs(candidates.reshape(-1, cells.shape[1])).reshape(candidates.shape[:2])


def _curve(chance: Vector, rank: Vector) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(number, float(row.mean()), float(row.max()), int((first == 1).sum()))
        for number, (row, first) in enumerate(zip(chance, rank, strict=True), 1)
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
            f"Never more than {most} of {sampler.classes} classes were occupied.",
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
