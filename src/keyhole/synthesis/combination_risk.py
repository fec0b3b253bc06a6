"""What copies tell of every combination, worked out block by block."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.inference.threads import processors
from keyhole.models.latent_class.state import LatentClasses
from keyhole.progress import Progress
from keyhole.synthesis.chances import Weighed, ranks
from keyhole.synthesis.class_draws import ClassDraw, Draws
from keyhole.synthesis.importance import CopyWeights
from keyhole.synthesis.question import Question
from keyhole.synthesis.risk_result import Combinations, CurvePoint
from keyhole.synthesis.weighing import weigh

Answer = TypeVar("Answer")

AT_ONCE = 2_000_000
"""Probabilities of records, draws and candidates that are held together."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What there is to go by.

    Attributes
    ----------
    alone, stacked
        Draws of the file, and of the file with each copy; none of the latter for the published importance sampler.
    states, weights
        Some states of the chains on the file, and how likely each makes each copy.
    generating
        The parameters that made the copies, if they are known.
    """

    alone: Draws = field(repr=False)
    stacked: Sequence[Draws] = field(repr=False)
    states: Sequence[LatentClasses] = field(repr=False)
    weights: CopyWeights = field(repr=False)
    generating: Sequence[ClassDraw] | None = field(default=None, repr=False)


def weigh_combinations(
    cells: Codes, counts: IntVector, question: Question, evidence: Evidence, progress: Progress
) -> tuple[Combinations, tuple[CurvePoint, ...]]:
    """The risk of every combination from all copies, and in short from the first copy, the first two, ..."""

    def answered(block: IntVector) -> dict[str, Any]:
        part = cells[block]
        weighed = _weighed(part, block, question, evidence)
        chance, mask = weighed.chance[-1], question.support.mask(part)
        same = question.learned(part)
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
            "curve": np.stack([[one[:, 0], ranks(one, mask)] for one in weighed.chance]),
        }

    answers = _in_blocks(answered, cells, question, len(evidence.alone.draws), progress)
    joined: dict[str, Any] = {
        name: None if answers[0][name] is None else np.concatenate([one[name] for one in answers], axis=-1)
        for name in answers[0]
    }
    curve = joined.pop("curve")
    found = Combinations(cells=cells, counts=counts.astype(np.int64), **joined)
    return found, tuple(curve_point(number, *point) for number, point in enumerate(curve, 1))


def weigh_in_short(
    cells: Codes, number: int, question: Question, evidence: Evidence, progress: Progress
) -> CurvePoint:
    """The risk of all combinations from all copies, as one point of a curve."""

    def answered(block: IntVector) -> Vector:
        chance = _weighed(cells[block], block, question, evidence).chance[-1]
        return np.stack([chance[:, 0], ranks(chance, question.support.mask(cells[block]))])

    whole = _in_blocks(answered, cells, question, len(evidence.alone.draws), progress)
    return curve_point(number, *np.concatenate(whole, axis=1))


def curve_point(number: int, chance: Vector, rank: Vector) -> CurvePoint:
    """Of the chances and ranks of all combinations."""
    return CurvePoint(number, float(chance.mean()), float(chance.max()), int((rank == 1).sum()))


def _weighed(cells: Codes, block: IntVector, question: Question, evidence: Evidence) -> Weighed:
    return weigh(
        cells,
        question.support,
        evidence.alone.draws,
        [one.draws for one in evidence.stacked],
        block,
        question.log_beliefs(cells),
        model_prior=question.prior == "model",
        generating=evidence.generating,
        published=(evidence.states, evidence.weights) if question.estimator == "importance" else None,
    )


def _in_blocks(
    answered: Callable[[IntVector], Answer], cells: Codes, question: Question, draws: int, progress: Progress
) -> list[Answer]:
    """Answers of all combinations, block by block, on as many threads as there are processors."""
    width = question.support.candidates(cells[:1]).shape[1]
    each = max(1, AT_ONCE // max(draws * width, 1))
    parts, found = np.array_split(np.arange(len(cells)), max(1, -(-len(cells) // each))), []
    with ThreadPoolExecutor(processors()) as threads:
        for place, answer in enumerate(threads.map(answered, parts)):
            progress("weighing combinations", int(parts[place][-1]) + 1, len(cells))
            found.append(answer)
    return found
