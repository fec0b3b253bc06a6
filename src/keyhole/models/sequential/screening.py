r"""Which three-way terms a conditional lacks: a score test for each pair of earlier keys.

With S the summed residuals of the two-way fit by (level a of one key, level b of the other, level of the key that
is explained) and V their variances under the fit, the squares exceed their expectation where the pair acts
jointly:

.. math:: z = \sum (S^2 - sV) \Big/ \sqrt{\sum (2 V^2 + V)}, \qquad
          s_{ab} = 1 - V_{ab}/V_{a+} - V_{ab}/V_{+b} + V_{ab}/V_{++}.

The two-way terms have made the residuals of each a and of each b small, which leaves the share s of the variance:
one minus the leverage of a cell in an additive fit, exactly so where a and b do not depend on each other. Without
it z would be about -1 to -3 where keys act in pairs, and only strong three-way terms would pass. With it z is
about 0 there, with a deviation of 0.2 to 0.8 (the less, the more a and b depend on each other: the denominator is
that of the whole variance, so that pairs with little left have to show more). Terms from 1 on are added, and their
ridge shrinks those that are chance.
"""

from itertools import combinations

import numpy as np

from keyhole.arrays import Vector
from keyhole.models.sequential import _kernels as kernels
from keyhole.models.sequential.conditional import Block
from keyhole.models.sequential.fitting import FittedConditional

LEAST_SCORE = 1.0
"""z from which a term is added: lower ones let in so many that are chance that small samples suffer."""

MOST_PAIRS = 6
MOST_PARAMETERS = 1200
"""Three-way terms added to one conditional, and its coefficients with them."""

NOTHING = 1e-6
"""Share of the variance left, below which a pair has nothing to add: one of its keys decides the other."""

Pair = tuple[int, int]


def joint_scores(fit: FittedConditional, sizes: tuple[int, ...]) -> dict[Pair, float]:
    """z of each pair of earlier keys whose term could be added at all."""
    data = fit.data
    found: dict[Pair, float] = {}
    for a, b in combinations(data.earlier, 2):
        block = Block.of((a, b), sizes, data.contexts)
        if data.parameters + block.rows * (data.levels - 1) > MOST_PARAMETERS:
            continue
        S, V = np.zeros((2, block.rows, data.levels))
        code = block.row_of(data.contexts)
        kernels.residuals_by_pair(*data.layout, *data.entries, fit.coefficients, code, S, V)
        left = V * share_left(V, block)
        if left.sum() > NOTHING * V.sum():
            found[a, b] = float((S**2 - left).sum() / np.sqrt((2 * V**2 + V).sum()))
    return found


def share_left(variance: Vector, block: Block) -> Vector:
    """The share of each variance (joint levels, levels) that the terms of both keys alone have not used up."""
    one, two = np.divmod(block.combinations, block.sizes[1])
    share = np.ones_like(variance)
    whole = np.zeros(len(one), dtype=np.int64)
    for level, sign in ((one, -1.0), (two, -1.0), (whole, 1.0)):
        margin = np.zeros((int(level.max()) + 1, variance.shape[1]))
        np.add.at(margin, level, variance)
        around = margin[level]
        share += sign * np.divide(variance, around, out=np.zeros_like(variance), where=around > 0)
    return np.asarray(np.clip(share, 0.0, 1.0))


def choose_pairs(fit: FittedConditional, sizes: tuple[int, ...], most: int = MOST_PAIRS) -> dict[Pair, float]:
    """The pairs to add with their z, best first, as many as the budget of coefficients allows."""
    scores = joint_scores(fit, sizes)
    chosen: dict[Pair, float] = {}
    parameters = fit.data.parameters
    for pair, z in sorted(scores.items(), key=lambda item: -item[1]):
        if z <= LEAST_SCORE or len(chosen) == most:
            break
        extra = Block.of(pair, sizes, fit.data.contexts).rows * (fit.data.levels - 1)
        if parameters + extra <= MOST_PARAMETERS:
            chosen[pair] = z
            parameters += extra
    return chosen
