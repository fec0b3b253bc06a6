"""A number with its uncertainty, and all that one model says of one sample."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from keyhole.arrays import Vector, read_only
from keyhole.inference.dependence import Dependence
from keyhole.inference.fit import Diagnostic
from keyhole.inference.model_path import ModelPath
from keyhole.inference.track_record import good_record
from keyhole.population.sample import Sample
from keyhole.risk.size_index_check import SizeIndexCheck

Status = Literal["ok", "not-converged", "failed"]


@dataclass(frozen=True, slots=True)
class RiskEstimate:
    """tau1 or tau2 of a sample.

    Attributes
    ----------
    estimate
        E(tau | data).
    low, high
        The predictive interval of tau itself: the randomness of the unsampled counts is included.
    level
        The probability that the interval claims.
    mcse
        Monte Carlo standard error of ``estimate``; 0 where it is a closed form.
    expected_sd
        Standard deviation of E(tau | parameters) over the parameter draws; None for plug-in models.
    quartiles
        A quarter of the draws of tau lie below the first and a quarter above the second; None where they are not
        known.
    """

    estimate: float
    low: float
    high: float
    level: float
    mcse: float
    expected_sd: float | None
    quartiles: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class RecordRisk:
    """The risk of each sample-unique record, in the order of ``ContingencyTable.uniques``.

    ``r1_low`` and ``r1_high`` bound r1 over the parameter draws; they are None for plug-in models.
    ``r2_every_cell`` is E(1/F | f) of every occupied cell, when it was asked for and the model can tell.
    """

    r1: Vector = field(repr=False)
    r2: Vector = field(repr=False)
    r1_low: Vector | None = field(repr=False)
    r1_high: Vector | None = field(repr=False)
    r2_every_cell: Vector | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("r1", "r2", "r1_low", "r1_high", "r2_every_cell"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, read_only(values))


@dataclass(frozen=True, slots=True)
class RiskAssessment:
    """What one model says of one sample, how surely, and how it was obtained.

    ``size_index`` is None for models that do not describe the size index, ``dependence`` for those that do not
    look at which keys go together, ``path`` for those that are not chosen among candidates, ``draws`` for those
    without chains. ``members`` are the models of a pool, each on its own. ``tau1``, ``tau2`` and ``records`` are
    None when the fit failed; ``verdict`` then says why. ``leaves_out`` is what the intervals do not account for,
    ``processor_seconds`` what fit and risk took of all processors.
    """

    model: str
    sample: Sample = field(repr=False)
    status: Status
    verdict: str
    tau1: RiskEstimate | None
    tau2: RiskEstimate | None
    records: RecordRisk | None = field(repr=False)
    diagnostics: tuple[Diagnostic, ...]
    size_index: SizeIndexCheck | None
    seed: int
    settings: Mapping[str, object]
    seconds_fit: float
    seconds_risk: float
    dependence: Dependence | None = field(default=None, repr=False)
    path: ModelPath | None = field(default=None, repr=False)
    draws: Mapping[str, Vector] | None = field(default=None, repr=False)
    members: "tuple[RiskAssessment, ...]" = field(default=(), repr=False)
    leaves_out: str = ""
    processor_seconds: float = field(default=math.nan, repr=False)

    @property
    def ending(self) -> str | None:
        """Why chains ended before they had converged; None if they had, or if there are none."""
        return next((str(check.value) for check in self.diagnostics if check.name == "ending"), None)

    @property
    def unfinished(self) -> bool:
        """Whether chains could go on where they were stopped."""
        return self.ending is not None

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped the chains; what they had found by then is here."""
        return self.ending == "interrupted"

    @property
    def size_index_misfit(self) -> float | None:
        """How far the fit is from the sample's size index; about 1 for a model that fits."""
        return None if self.size_index is None else self.size_index.misfit

    @property
    def record(self) -> Diagnostic | None:
        """The model's record on real populations with known truth, if it is good."""
        return good_record(self.diagnostics)
