"""Settings that every model of the size index has: how many draws carry its interval."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from keyhole.errors import FitFailed, UnknownModel
from keyhole.inference.track_record import TrackRecord
from keyhole.models.superpopulation.likelihood_fit import Family, LikelihoodFit, fit_by_likelihood
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent


@dataclass(frozen=True)
class SizeIndexModel:
    """A model that looks at the size index alone.

    Parameters
    ----------
    draws
        Parameter draws (or resampled size indices) behind the estimate and its interval.
    """

    name: ClassVar[str]
    record: ClassVar[TrackRecord]

    draws: int = 1000

    def __post_init__(self) -> None:
        if isinstance(self.draws, bool) or not isinstance(self.draws, int) or not 20 <= self.draws <= 1_000_000:
            raise UnknownModel(
                f"The option draws must be a whole number from 20 to 1,000,000, found {self.draws!r}."
            )

    def check_ties(self, sample: Sample) -> None:
        """Refuse a sample in which nobody shares a combination: the likelihood has no maximum then."""
        if sample.unsampled_size and sample.uniques == sample.sample_size:
            raise FitFailed(
                f"Every one of the {sample.sample_size:,} records is unique on these keys, so nothing tells how "
                f"often combinations repeat, and {self.name} cannot be fitted. Coarsen the keys, or use fewer."
            )

    @property
    def settings(self) -> Mapping[str, object]:
        return {"draws": self.draws}


def countable(cells: int) -> float:
    """A number of cells as a float; beyond 1e100 more of them change nothing."""
    return float(min(cells, 10**100))


@dataclass(frozen=True)
class LikelihoodModel(SizeIndexModel, ABC):
    """A model of the size index fitted by maximum likelihood within its family."""

    @abstractmethod
    def family(self, sample: Sample) -> Family:
        """The family of laws, with what it needs to know of the sample."""

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> LikelihoodFit:
        self.check_ties(sample)
        return fit_by_likelihood(self.family(sample), sample, self.name, self.draws, self.record, rng)
