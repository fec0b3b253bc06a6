"""Where chains of fixed effects begin."""

import numpy as np

from keyhole.arrays import Vector
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects, Margins
from keyhole.models.mixed_loglinear.full_table import FullTable

PRIOR_VARIANCE = 10.0
"""Of each fixed effect."""


def rough_effects(fixed: FixedEffects, table: FullTable) -> Vector:
    """Main effects from the margins of the counts, and no others."""
    beta = np.zeros(fixed.number)
    margins = Margins(table.spread(table.counts.astype(np.float64)))
    for term, block in zip(fixed.terms, fixed.blocks, strict=True):
        if len(term) == 1:
            beta[block] = np.log(margins.of(term) + 0.5) @ fixed.contrasts[term[0]]
    return beta


def independent_means(table: FullTable, sweeps: int = 200) -> Vector:
    """log of the means of the counts under main effects alone, at the maximum of the likelihood.

    Iterative proportional fitting; a level that nobody has gets minus infinity (extended maximum likelihood).
    """
    seen = Margins(table.spread(table.counts.astype(np.float64)))
    mean = table.spread(np.ones(len(table)))
    keys = range(len(table.levels))
    for _ in range(sweeps):
        change = 0.0
        for key in keys:
            observed = seen.of((key,))
            fitted = mean.sum(axis=tuple(other for other in keys if other != key))
            factor = np.divide(observed, fitted, out=np.zeros_like(fitted), where=fitted > 0)
            mean = mean * factor.reshape([-1 if other == key else 1 for other in keys])
            change = max(change, float(np.abs(factor[observed > 0] - 1.0).max(initial=0.0)))
        if change < 1e-10:
            break
    with np.errstate(divide="ignore"):
        return np.log(table.gathered(mean))
