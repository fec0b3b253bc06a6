"""The admission of models that treat records alike although their weights differ."""

import numpy as np

from keyhole.inference.fit import IGNORED_WEIGHTS, Diagnostic
from keyhole.population.sample import Sample

NEARLY_EQUAL = 0.05
"""Weights whose coefficient of variation over the cells is below this may be taken as equal."""


def ignored_weights(sample: Sample) -> tuple[Diagnostic, ...]:
    """What a model without weights must say of this sample; nothing if it has none that differ."""
    table = sample.table
    if table.weights is None:
        return ()
    mean = table.weights / table.counts
    centre = np.average(mean, weights=table.counts)
    variation = float(np.sqrt(np.average((mean - centre) ** 2, weights=table.counts)) / centre)
    if variation < NEARLY_EQUAL:
        return ()
    return (
        Diagnostic(
            IGNORED_WEIGHTS,
            variation,
            "caution",
            f"The model treats every record as equally likely to be sampled, but the weights differ between cells "
            f"(coefficient of variation {variation:.0%}).",
        ),
    )
