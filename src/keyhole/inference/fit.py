"""What a model promises: fitted to a sample, it gives the law of the unsampled counts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.inference.elapsed import Elapsed
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts
from keyhole.progress import Progress, silent

Verdict = Literal["good", "caution", "untrusted"]
"""``untrusted`` marks the whole result as not to be believed."""

IGNORED_WEIGHTS = "ignored_weights"
"""Name of the diagnostic of a fit that treats records alike although their weights differ."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One check of a fit: a value, how grave it is, and what it means in words."""

    name: str
    value: float | int | str
    verdict: Verdict
    words: str


class Fit(Protocol):
    """A fitted model. A new object; there is no half-fitted state."""

    @property
    def sample(self) -> Sample: ...

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...

    @property
    def interval_leaves_out(self) -> str:
        """What the interval of tau does not account for, in words; empty if nothing is known to be left out."""

    @property
    def effective_draws(self) -> float | None:
        """How many independent parameter draws the laws are worth; None if they are as good as their number."""

    def unsampled(self) -> Iterator[UnsampledCounts]:
        """One law per draw of the parameters; exactly one for plug-in fits."""


@runtime_checkable
class MatchesEveryRecord(Protocol):
    """A fit that can also speak of records that are not unique in the sample."""

    def mean_match_all(self) -> Vector:
        """E(1/F | f) of each occupied cell of the sample's table."""


@runtime_checkable
class KeepsDraws(Protocol):
    """A fit made of chains, whose draws can be looked at."""

    def draws(self) -> Mapping[str, Vector]:
        """Watched numbers by chain and draw, tau1 and tau2 among them."""


@runtime_checkable
class ExpectsSizeIndex(Protocol):
    """A fit that describes how many cells hold one record, two records, ..."""

    @property
    def sample(self) -> Sample: ...

    @property
    def parameters_fitted(self) -> int:
        """The number of parameters that the size index determined."""

    def expected_size_index(self, sizes: IntVector) -> Vector:
        """The expected number of sample cells of each size."""


@runtime_checkable
class ScoresRecords(Protocol):
    """A fit that tells how well it predicts records which it has not seen."""

    @property
    def log_by_cell(self) -> Vector:
        """log p(x | all records but one in x), for each occupied cell x of the sample."""


@runtime_checkable
class ForetellsCells(Protocol):
    """A fit of the keys themselves that says what another sample of the same size would look like."""

    @property
    def sample(self) -> Sample: ...

    def expected_cells(self, sizes: IntVector, rng: Generator) -> Vector | None:
        """The expected number of cells with so many records each, in another sample; None if it cannot tell."""


class RiskModel(Protocol):
    """Frozen settings of a model."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, object]: ...

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> Fit: ...


@dataclass(frozen=True, slots=True)
class Member:
    """A model in a pool: its settings, its fit, and the share of the pool that is its own."""

    model: RiskModel
    fit: Fit = field(repr=False)
    share: float
    elapsed: Elapsed = Elapsed()  # noqa: RUF009


@runtime_checkable
class Pools(Protocol):
    """A fit that is made of the fits of several models."""

    @property
    def members(self) -> Sequence[Member]:
        """The models, in the order in which they are shown."""
