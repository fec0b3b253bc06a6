r"""Which three-way terms a conditional lacks: a score test for each pair of earlier keys.

With S the summed residuals of the two-way fit by (level of a, level of b, level of the key) and V their
variances under the fit, the squares exceed their expectation where the pair acts jointly:

.. math:: z = \sum (S^2 - V) \Big/ \sqrt{\sum (2 V^2 + V)}.
"""

from itertools import combinations

import numpy as np

from keyhole.models.sequential import _kernels as kernels
from keyhole.models.sequential.conditional import Block
from keyhole.models.sequential.fitting import FittedConditional

MOST_PAIRS = 6
MOST_PARAMETERS = 1200
"""Three-way terms added to one conditional, and its coefficients with them."""

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
        spread = float((2 * V**2 + V).sum())
        found[a, b] = float((S**2 - V).sum()) / np.sqrt(spread) if spread > 0 else 0.0
    return found


def choose_pairs(fit: FittedConditional, sizes: tuple[int, ...], most: int = MOST_PAIRS) -> dict[Pair, float]:
    """The pairs to add with their z, best first, as many as the budget of coefficients allows."""
    scores = joint_scores(fit, sizes)
    chosen: dict[Pair, float] = {}
    parameters = fit.data.parameters
    for pair, z in sorted(scores.items(), key=lambda item: -item[1]):
        if z <= 0 or len(chosen) == most:
            break
        extra = Block.of(pair, sizes, fit.data.contexts).rows * (fit.data.levels - 1)
        if parameters + extra <= MOST_PARAMETERS:
            chosen[pair] = z
            parameters += extra
    return chosen
