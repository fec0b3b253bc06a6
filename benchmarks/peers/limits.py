"""What the peers leave out of a sample, said in words."""

from keyhole.inference.fit import IGNORED_WEIGHTS, Diagnostic
from keyhole.population.sample import Sample


def limits(sample: Sample) -> tuple[Diagnostic, ...]:
    """One caution for weights that differ and one for structural zeros: these models use neither."""
    found = []
    weights = sample.table.weights
    if weights is not None and not (weights * sample.sample_size == weights.sum() * sample.table.counts).all():
        words = "The survey weights differ, and this model treats all records alike."
        found.append(Diagnostic(IGNORED_WEIGHTS, "ignored", "caution", words))
    if sample.zeros is not None:
        words = "The declared impossible combinations are not used by this model."
        found.append(Diagnostic("ignored_zeros", "ignored", "caution", words))
    return tuple(found)
