"""Log-linear models whose terms are chosen from the sample: by Skinner and Shlomo's criteria, or by a penalty."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.errors import UnknownModel
from keyhole.inference.fit import Diagnostic
from keyhole.inference.model_path import ModelPath
from keyhole.inference.other_samples import poisson_cells
from keyhole.inference.track_record import TrackRecord, record_on
from keyhole.models.loglinear.checks import warned
from keyhole.models.loglinear.lasso import ON_THE_WAY, fit_lasso
from keyhole.models.loglinear.lasso_error import lasso_noise
from keyhole.models.loglinear.lasso_path import LassoPath
from keyhole.models.loglinear.means import empty_entries, means_of, multiplier
from keyhole.models.loglinear.model import LogLinearFit, refuse_few_draws
from keyhole.models.loglinear.search import search_terms
from keyhole.models.loglinear.search_path import SearchPath
from keyhole.population.perturbed_poisson import PerturbedPoissonUnsampled
from keyhole.population.poisson import PoissonUnsampled
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

CRITERIA = ("b1", "b2")

SEARCHED = TrackRecord(-27, 154, covered=33, samples=120)
PENALISED = TrackRecord(-43, 22, covered=73, samples=120)
"""tau1 on the samples of the page of log-linear models, with the models' own settings."""


@dataclass(frozen=True)
class SkinnerShlomo:
    """A log-linear model found by forward search: terms are added until the risk estimate shows no positive bias.

    Parameters
    ----------
    criterion
        ``b1`` to look at the bias of tau1, ``b2`` at that of tau2.
    three_way
        Whether terms of three keys are tried after those of two.
    threshold
        The bias, in standard deviations, at which the search stops: 0, or more for fewer terms.
    draws
        Draws of the estimation error behind the interval.

    References
    ----------
    Skinner & Shlomo (2008), Journal of the American Statistical Association 103, 989-1001.
    """

    criterion: str = "b2"
    three_way: bool = False
    threshold: float = 0.0
    draws: int = 400

    def __post_init__(self) -> None:
        refuse_few_draws(self.draws)
        if self.criterion not in CRITERIA:
            raise UnknownModel(f"The option criterion must be b1 or b2, found {self.criterion!r}.")
        if not 0.0 <= self.threshold < np.inf:
            raise UnknownModel(f"The option threshold must be a number from 0 on, found {self.threshold}.")

    @property
    def name(self) -> str:
        return "skinner-shlomo"

    @property
    def settings(self) -> Mapping[str, object]:
        return {
            "criterion": self.criterion,
            "three_way": self.three_way,
            "threshold": self.threshold,
            "draws": self.draws,
        }

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "SearchedFit":
        if sample.zeros is not None:
            sample.zeros.check(sample.table)
        searched = search_terms(
            sample,
            criterion="b1" if self.criterion == "b1" else "b2",
            largest=3 if self.three_way else 2,
            threshold=self.threshold,
            progress=progress,
        )
        empty = empty_entries(sample, searched.fitted.generators)
        means = means_of(sample, searched.fitted, empty, draws=self.draws, rng=rng)
        return SearchedFit(means, SEARCHED if self == SkinnerShlomo() else None, searched=searched)


@dataclass(frozen=True, eq=False)
class SearchedFit(LogLinearFit):
    """A model that was searched for, and the way to it."""

    searched: SearchPath = field(kw_only=True, repr=False)

    @property
    def path(self) -> ModelPath:
        return self.searched.model_path

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        step = self.searched.steps[self.searched.chosen]
        words = (
            f"The bias of tau1 is {step.b1:.2f} standard deviations by its criterion, that of tau2 {step.b2:.2f}."
        )
        chosen = Diagnostic(self.searched.criterion, getattr(step, self.searched.criterion), "good", words)
        return (*super().diagnostics, chosen, *warned("search", self.searched.warnings))


@dataclass(frozen=True)
class PoissonLasso:
    """A log-linear model of two-way terms with an absolute-value penalty on each of their effects.

    Parameters
    ----------
    lambdas
        Penalties that are tried at most, from one that leaves no interaction downwards.
    folds
        Parts of the sample that are held out in turn to choose among them.
    """

    lambdas: int = 10
    folds: int = 5

    def __post_init__(self) -> None:
        for option in ("lambdas", "folds"):
            if getattr(self, option) < 2:
                raise UnknownModel(f"The option {option} must be at least 2, found {getattr(self, option)}.")

    @property
    def name(self) -> str:
        return "lasso"

    @property
    def settings(self) -> Mapping[str, object]:
        return {"lambdas": self.lambdas, "folds": self.folds}

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "LassoFit":
        if sample.zeros is not None:
            sample.zeros.check(sample.table)
        chosen = fit_lasso(sample, lambdas=self.lambdas, folds=self.folds, rng=rng, progress=progress)
        record = PENALISED if self == PoissonLasso() else None
        return LassoFit(sample, chosen, lasso_noise(sample, chosen.fitted, rng=rng), record)


@dataclass(frozen=True, eq=False)
class LassoFit:
    """The chosen penalty's fit, and the way to it.

    Attributes
    ----------
    noise
        Draws of the error of log means of the uniques; None where it was not worked out.
    record
        How the model did on real populations; None if it was not tried with these settings.
    """

    sample: Sample
    chosen: LassoPath = field(repr=False)
    noise: Vector | None = field(repr=False)
    record: TrackRecord | None = field(default=None)

    @property
    def interval_leaves_out(self) -> str:
        beyond = "the shrinkage of the fit, and what two-way terms do not describe"
        return beyond if self.noise is not None else f"the estimation error and {beyond}"

    @property
    def effective_draws(self) -> None:
        return None

    @property
    def path(self) -> ModelPath:
        return self.chosen.model_path

    def unsampled(self) -> Iterator[PoissonUnsampled | PerturbedPoissonUnsampled]:
        """The plug-in law; its draws hold the estimation error where that is known."""
        found = self.chosen.fitted
        mean = np.asarray(found.fitted[found.cells.occupied[self.sample.table.uniques]] * multiplier(self.sample))
        yield PoissonUnsampled(mean) if self.noise is None else PerturbedPoissonUnsampled(mean, self.noise)

    def expected_cells(self, sizes: IntVector, rng: Generator) -> Vector:
        """Cells with so many records each in another sample; where cells stand for others, with these."""
        found = self.chosen.fitted
        each = np.ones(len(found.fitted)) if found.weights is None else found.weights
        return np.asarray(poisson_cells(found.fitted / each, int(sizes.max()), each)[sizes - 1])

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        found = self.chosen.fitted
        lines = [_penalty(self.chosen)]
        if not found.converged:
            lines.append(_violation(found.violation))
        lines += warned("lasso", self.chosen.warnings)
        if self.sample.uniques and self.sample.unsampled_size:
            lines.append(record_on(self.sample, self.record))
        return tuple(lines)


def _violation(violation: float) -> Diagnostic:
    words = (
        f"The penalised fit was ended before its conditions were met: a margin is off by {violation:.2g} of "
        "itself and its penalty"
    )
    if violation <= ON_THE_WAY:
        words += ", far less than its sampling error."
        return Diagnostic("violation", violation, "caution", words)
    return Diagnostic("violation", violation, "untrusted", f"{words}. Coarser keys would help.")


def _penalty(chosen: LassoPath) -> Diagnostic:
    step = chosen.steps[chosen.chosen]
    words = (
        f"The penalty lambda = {step.penalty:.3g} leaves {step.coefficients:,} effects in {step.pairs} pairs of "
        "keys; it was chosen by held-out records."
    )
    return Diagnostic("lambda", step.penalty, "good", words)
