"""How a model did on real populations whose truth is known: what its own interval cannot know."""

from dataclasses import dataclass

from keyhole.inference.fit import Diagnostic

TRACK_RECORD = "track_record"
"""Name of the diagnostic that carries the record."""


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

    def diagnostic(self) -> Diagnostic:
        """The record in words, for every result of the model."""
        return Diagnostic(
            TRACK_RECORD,
            f"{self.lowest:+d}% to {self.highest:+d}%",
            "caution",
            f"On {self.samples} samples of real populations with known truth its tau1 was {self._range()}, and "
            f"{self.covered} of {self.samples} intervals covered the truth: take the order of magnitude from it, "
            "not more.",
        )

    def _range(self) -> str:
        if self.lowest >= 0:
            return f"{self.lowest} to {self.highest}% too high"
        if self.highest <= 0:
            return f"{-self.highest} to {-self.lowest}% too low"
        return f"from {-self.lowest}% too low to {self.highest}% too high"
