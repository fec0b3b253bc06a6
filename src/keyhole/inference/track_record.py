"""How a model did on real populations whose truth is known: what its own interval cannot know."""

from collections.abc import Iterable
from dataclasses import dataclass

from keyhole.inference.fit import Diagnostic
from keyhole.population.sample import Sample

TRACK_RECORD = "track_record"
"""Name of the diagnostic that carries the record."""

NO_RECORD = "none"
"""The value of that diagnostic where there is no record."""

UNTRIED = Diagnostic(
    TRACK_RECORD,
    NO_RECORD,
    "caution",
    "With these settings this model was not tried on samples of real populations like this one with known truth: "
    "take it as a second opinion.",
)
"""What a model without a record says of itself."""

UNLIKE = Diagnostic(
    TRACK_RECORD,
    NO_RECORD,
    "caution",
    "Of the samples of real populations with known truth on which this model was tried none was like this file: "
    "how often its intervals hold here is not known.",
)
"""What a model with a record says of itself where the file is not like those behind it."""

SMALLEST = 1000
"""Records of the smallest samples that records come from."""

GOOD_PERCENT = 90
"""Per cent of the samples whose 95% intervals must have covered the truth for a record to be good."""


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """Errors of tau1 on samples of real populations, as ``docs/reference/model-guide.md`` shows them.

    Attributes
    ----------
    lowest, highest
        The range of the errors, in percent of the truth.
    covered, samples
        On how many of the samples the 95% interval covered the truth.
    """

    lowest: int
    highest: int
    covered: int
    samples: int

    @property
    def is_good(self) -> bool:
        """Whether the intervals held what they promise, on nearly all samples."""
        return self.samples > 0 and 100 * self.covered >= GOOD_PERCENT * self.samples

    def diagnostic(self) -> Diagnostic:
        """The record in words, for every result of the model.

        Examples
        --------
        >>> TrackRecord(-8, 12, covered=17, samples=18).diagnostic().verdict
        'good'
        >>> TrackRecord(23, 676, covered=2, samples=18).diagnostic().verdict
        'caution'
        """
        words = (
            f"On {self.samples} samples of real populations with known truth its tau1 was {self._range()}, and "
            f"{self.covered} of {self.samples} intervals covered the truth"
        )
        shown = f"{self.lowest:+d}% to {self.highest:+d}%"
        if self.is_good:
            return Diagnostic(TRACK_RECORD, shown, "good", f"{words}.")
        return Diagnostic(
            TRACK_RECORD, shown, "caution", f"{words}: take the order of magnitude from it, not more."
        )

    def _range(self) -> str:
        if self.lowest >= 0:
            return f"{self.lowest} to {self.highest}% too high"
        if self.highest <= 0:
            return f"{-self.highest} to {-self.lowest}% too low"
        return f"from {-self.lowest}% too low to {self.highest}% too high"


def record_on(sample: Sample, record: TrackRecord | None) -> Diagnostic:
    """A model's record, if the samples it comes from were like this one: large, without weights, without zeros."""
    alike = sample.sample_size >= SMALLEST and sample.table.weights is None and sample.zeros is None
    return record.diagnostic() if record is not None and alike else UNTRIED


def good_record(diagnostics: Iterable[Diagnostic]) -> Diagnostic | None:
    """The record among the checks of a fit, if it has one and it is good."""
    found = (check for check in diagnostics if check.name == TRACK_RECORD and check.verdict == "good")
    return next(found, None)


def was_tried(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether the checks of a fit tell of samples of real populations like this one, good or bad."""
    return any(check.name == TRACK_RECORD and check.value != NO_RECORD for check in diagnostics)
