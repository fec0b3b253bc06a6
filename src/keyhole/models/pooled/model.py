"""The pool as a risk model: which models are in it, and the laws it draws from them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.errors import FitFailed, UnknownModel
from keyhole.inference.dependence import Dependence, FindsDependence
from keyhole.inference.elapsed import Elapsed
from keyhole.inference.fit import Diagnostic, Fit, ForetellsCells, MatchesEveryRecord, Member, RiskModel
from keyhole.models.catalogue import model_named
from keyhole.models.pooled.checks import ENDED_EARLY, INTERRUPTED, diagnose
from keyhole.models.pooled.laws import pooled_laws
from keyhole.models.pooled.shares import gap_of, shares_of
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts
from keyhole.population.weights import weights_differ
from keyhole.progress import Progress, silent
from keyhole.randomness import stream_beside

EFFORTS = ("quick", "normal", "thorough")

LEADER = "sequential-logit"
"""The model that the others are pooled with: without it there is no pool."""

ANSWER_ALONE: Mapping[str, object] = {"nested": 0}
"""Options of the leader under which it gives the same answer, unchecked."""

SWEEPS: Mapping[str, int] = {"normal": 6_000_000, "thorough": 100_000_000}
"""Records times sweeps of each chain of latent classes: a number, not a time, so that a seed has one answer."""

TRIAL_SWEEPS: Mapping[str, int] = {"normal": 300, "thorough": 0}
"""Sweeps of a trial run, after which a model that predicts far worse than the leader is out; 0 for no trial. With
a limit of time, which might end it when chains have seen nothing yet, there is none either."""

FEWEST_SWEEPS = 400
MOST_SWEEPS: Mapping[str, int] = {"normal": 3_000, "thorough": 20_000}


@dataclass(frozen=True)
class Pooled:
    """Several models at once, pooled by how well each predicts the records it has not seen.

    Parameters
    ----------
    effort
        ``quick``: the sequential logit alone. ``normal``: pooled with latent classes, from chains of moderate
        length. ``thorough``: from long chains.
    max_seconds
        Stop chains after this long and say so; 0 for no limit. With a limit, results depend on the machine.
    second_opinion
        Whether what does not move the pool's answer is run all the same, to be shown beside it: a model that is
        out after its trial run, and the leader's check by subsamples.
    """

    effort: str = "normal"
    max_seconds: float = 0.0
    second_opinion: bool = True

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise UnknownModel(
                f"The effort must be {', '.join(EFFORTS[:-1])} or {EFFORTS[-1]}, found {self.effort!r}."
            )

    @property
    def name(self) -> str:
        return "auto"

    @property
    def settings(self) -> Mapping[str, object]:
        return {
            "effort": self.effort,
            "max_seconds": self.max_seconds,
            "second_opinion": self.second_opinion,
        }

    def models(self, sample: Sample) -> tuple[RiskModel, ...]:
        """The members, the leader first."""
        leader = model_named(LEADER, **({} if self.second_opinion else ANSWER_ALONE))
        if self.effort == "quick" or weights_differ(sample):
            return (leader,)  # of the two only the leader uses weights
        sweeps = max(SWEEPS[self.effort] // max(sample.sample_size, 1), FEWEST_SWEEPS)
        sweeps = min(sweeps, MOST_SWEEPS[self.effort])
        return leader, model_named("latent-class", most_sweeps=sweeps, max_seconds=self.max_seconds)

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "PooledFit":
        fitted: list[tuple[RiskModel, Fit, Elapsed]] = []
        failures: dict[str, str] = {}
        behind: dict[str, float] = {}
        stopped = False
        for model in (models := self.models(sample)):
            progress(f"auto: {model.name}", len(fitted), len(models))
            begun = Elapsed.now()
            try:
                fit: Fit | None = None
                if fitted and TRIAL_SWEEPS[self.effort] and not self.max_seconds:
                    fit = self._trial(model, fitted[0][1], behind, rng=rng, progress=progress)
                if fit is None and (self.second_opinion or model.name not in behind):
                    # Each says what it says alone.
                    fit = model.fit(sample, rng=stream_beside(rng, self.name, model.name), progress=progress)
            except FitFailed as failure:
                if model.name == LEADER:
                    raise
                if model.name not in behind:
                    failures[model.name] = str(failure)
                continue
            except KeyboardInterrupt:
                if not fitted:
                    raise
                stopped = True  # what the others said stands
                break
            if fit is not None:
                fitted.append((model, fit, begun.since()))
        heard = [model.name not in behind for model, _, _ in fitted]
        shares = shares_of([fit for _, fit, _ in fitted], sample, heard, rng=rng)
        members = tuple(
            Member(model, fit, float(share), elapsed)
            for (model, fit, elapsed), share in zip(fitted, shares, strict=True)
        )
        return PooledFit(sample, members, failures, behind, stopped)

    def _trial(
        self, model: RiskModel, leader: Fit, behind: dict[str, float], *, rng: Generator, progress: Progress
    ) -> Fit | None:
        """A short run; by how much it is behind is noted if it is out. Gives the fit if it is all there will be.

        Chains that have not met look better than they are, so that one which is far behind will stay there.
        """
        own = stream_beside(rng, self.name, f"{model.name} trial")
        shorter: Any = replace(model, most_sweeps=TRIAL_SWEEPS[self.effort])  # type: ignore[type-var]
        found: Fit = shorter.fit(leader.sample, rng=own, progress=progress)
        if any(check.value == INTERRUPTED for check in found.diagnostics):
            return found
        gap = gap_of(leader, found, leader.sample, rng=own)
        if gap is not None:
            behind[model.name] = gap
        return None


@dataclass(frozen=True, eq=False)
class PooledFit:
    """Fits of several models, and which share of the laws each gives.

    Attributes
    ----------
    failures
        Models that could not be fitted, and why.
    behind
        Models that are out after their trial run, and by how much the log probability of all records was lower.
    interrupted
        Whether somebody ended the run before a model had an answer.
    """

    sample: Sample
    members: tuple[Member, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    behind: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def interval_leaves_out(self) -> str:
        return self.members[0].fit.interval_leaves_out

    @property
    def effective_draws(self) -> float | None:
        """At least what the members' own draws are worth, together."""
        worths = [member.fit.effective_draws for member in self.members if member.share]
        known = [worth for worth in worths if worth is not None]
        return None if len(known) < len(worths) or not known else sum(known)

    def unsampled(self) -> Iterator[UnsampledCounts]:
        """Laws of every member, as many of each as its share says."""
        return pooled_laws(self.members)

    def mean_match_all(self) -> Vector:
        """E(1/F | f) of each occupied cell: the members' own, by their shares."""
        total = np.zeros(self.sample.table.occupied)
        for member in self.members:
            if member.share:
                assert isinstance(member.fit, MatchesEveryRecord)
                total += member.share * member.fit.mean_match_all()
        return total

    @cached_property
    def dependence(self) -> Dependence:
        """Which keys go together, as the leader found."""
        leader = self.members[0].fit
        assert isinstance(leader, FindsDependence)
        return leader.dependence

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        checks = diagnose(self.members, self.failures, self.behind)
        return (*checks, ENDED_EARLY) if self.interrupted else checks

    def expected_cells(self, sizes: IntVector, rng: Generator) -> Vector | None:
        """The members' expectations, by their shares; None if one cannot tell."""
        total = np.zeros(len(sizes))
        for member in self.members:
            if not member.share:
                continue
            own = member.fit.expected_cells(sizes, rng) if isinstance(member.fit, ForetellsCells) else None
            if own is None:
                return None
            total += member.share * own
        return total
