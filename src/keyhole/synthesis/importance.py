r"""The paper's importance sampler (Hu, Reiter & Wang, eqs 12 to 15), kept because it is published.

Draws of the parameters given the confidential file stand for draws given any file that differs from it in one
record, each weighed by the probability of a whole synthetic copy. With q parameters that the data determine these
weights have a standard deviation of about :math:`\sqrt{2.5 q}` on the log scale: one draw decides. Their effective
number and k-hat are always shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.inference.pareto_weights import HEAVY, smoothed_weights
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.synthesis.chances import SMALLEST, grouped
from keyhole.synthesis.class_draws import ClassDraw
from keyhole.synthesis.supports import Support

FEWEST = 10.0
"""Effective draws below which an average means nothing."""


@dataclass(frozen=True, eq=False)
class CopyWeights:
    """log P(copy | parameters) by copy and draw, and what averages over them are worth."""

    log_weight: Vector = field(repr=False)

    @property
    def spread(self) -> Vector:
        """Standard deviation by copy."""
        return np.asarray(self.log_weight.std(axis=1, ddof=1))

    @property
    def effective(self) -> Vector:
        """Effective draws by copy."""
        weight = np.exp(self.log_weight - self.log_weight.max(axis=1, keepdims=True))
        return np.asarray(weight.sum(axis=1) ** 2 / (weight**2).sum(axis=1))

    @property
    def khat(self) -> Vector:
        return smoothed_weights(self.log_weight)[1]

    @property
    def trusted(self) -> bool:
        return bool((self.khat < HEAVY).all() and (self.effective > FEWEST).all())


def copy_weights(
    sampler: LatentClassSampler, states: Sequence[LatentClasses], copies: Sequence[Codes], rng: np.random.Generator
) -> CopyWeights:
    """Of the draws given the confidential file (eq. 14)."""
    log = np.empty((len(copies), len(states)))
    for place, copy in enumerate(copies):
        cells, counts = np.unique(copy, axis=0, return_counts=True)
        for h, state in enumerate(states):
            log[place, h] = counts @ np.log(np.maximum(sampler.probabilities(state, cells, rng), SMALLEST))
    return CopyWeights(log)


def importance_sums(
    cells: Codes, support: Support, states: Sequence[LatentClasses], weights: CopyWeights
) -> list[Vector]:
    """Sums by group of draws, record and place: of f(x | draw) / f(record | draw); of that times each copy's p.

    The second over the first is P(copy | record is x), up to a constant (eq. 15).
    """
    nobody: IntVector = np.full(len(cells), -1)
    found = np.stack(
        [support.probabilities(cells, nobody, ClassDraw.known(state, cells.shape[1])) for state in states]
    )
    ratio = found / np.maximum(found[:, :, :1], SMALLEST)
    weight = np.exp(weights.log_weight - weights.log_weight.max(axis=1, keepdims=True))
    return [grouped(ratio), *(grouped(ratio * p[:, None, None]) for p in weight)]
