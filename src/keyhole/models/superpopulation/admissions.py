"""What a model of the size index must admit: what it ignores, and how it did on real populations."""

import numpy as np

from keyhole.inference.fit import IGNORED_WEIGHTS, Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.population.sample import Sample

NEARLY_EQUAL = 0.05
"""Weights whose coefficient of variation over the cells is below this may be taken as equal."""


def admissions(sample: Sample, record: TrackRecord) -> tuple[Diagnostic, ...]:
    """What the user must know of any fit to this sample; nothing where tau is known whatever the model."""
    if sample.uniques == 0 or sample.unsampled_size == 0:
        return ()
    return (record.diagnostic(), *ignored_weights(sample))


def ignored_weights(sample: Sample) -> tuple[Diagnostic, ...]:
    """The admission that the model treats records alike although their weights differ, if they do."""
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
