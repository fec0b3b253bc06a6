"""What a model of the size index must admit: what it ignores, and how it did on real populations."""

from keyhole.inference.fit import Diagnostic
from keyhole.inference.ignored_weights import ignored_weights
from keyhole.inference.track_record import TrackRecord
from keyhole.population.sample import Sample


def admissions(sample: Sample, record: TrackRecord) -> tuple[Diagnostic, ...]:
    """What the user must know of any fit to this sample; nothing where tau is known whatever the model."""
    if sample.uniques == 0 or sample.unsampled_size == 0:
        return ()
    return (record.diagnostic(), *ignored_weights(sample))
