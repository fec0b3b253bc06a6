"""Log-linear models as risk models: settings, fit, law of the unsampled counts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.errors import UnknownModel
from keyhole.inference.fit import Diagnostic
from keyhole.inference.formula import read_generators
from keyhole.inference.track_record import TrackRecord, record_on
from keyhole.models.loglinear.checks import diagnose, leaves_out
from keyhole.models.loglinear.means import Means, fit_means
from keyhole.population.perturbed_poisson import PerturbedPoissonUnsampled
from keyhole.population.poisson import PoissonUnsampled
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent


@dataclass(frozen=True)
class LogLinear:
    r"""Cell counts are Poisson, and the logarithm of their means is a sum of effects of some keys each.

    .. math:: f_k \sim \mathrm{Poisson}(\pi\lambda_k), \qquad \log\lambda_k = \sum_g u_g(k_g)

    Parameters
    ----------
    generators
        The terms, as in ``age*sex + region``, or ``independence``, ``two-way``, ``three-way``.
    draws
        Draws of the estimation error behind the interval.
    """

    generators: str = "two-way"
    draws: int = 400

    def __post_init__(self) -> None:
        refuse_few_draws(self.draws)

    @property
    def name(self) -> str:
        return "loglinear"

    @property
    def settings(self) -> Mapping[str, object]:
        return {"generators": self.generators, "draws": self.draws}

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "LogLinearFit":
        return fit_formula(self.generators, sample, self.draws, rng=rng, progress=progress)


@dataclass(frozen=True)
class Preset:
    """A log-linear model known by a name of its own.

    Parameters
    ----------
    draws
        Draws of the estimation error behind the interval.
    """

    formula: ClassVar[str]
    draws: int = 400

    def __post_init__(self) -> None:
        refuse_few_draws(self.draws)

    @property
    def name(self) -> str:
        return self.formula

    @property
    def settings(self) -> Mapping[str, object]:
        return {"draws": self.draws}

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "LogLinearFit":
        return fit_formula(self.formula, sample, self.draws, rng=rng, progress=progress)


class Independence(Preset):
    """Main effects alone: keys say nothing of each other."""

    formula = "independence"


class TwoWay(Preset):
    """All interactions of two keys."""

    formula = "two-way"


@dataclass(frozen=True, eq=False)
class LogLinearFit:
    """A hierarchical model at its maximum likelihood.

    Attributes
    ----------
    means
        The fitted means of the sample uniques.
    record
        How the model did on real populations; None if it was not tried.
    """

    means: Means
    record: TrackRecord | None = field(default=None)

    @property
    def sample(self) -> Sample:
        return self.means.sample

    @property
    def interval_leaves_out(self) -> str:
        return leaves_out(self.means)

    @property
    def effective_draws(self) -> None:
        return None

    def unsampled(self) -> Iterator[PoissonUnsampled | PerturbedPoissonUnsampled]:
        """The plug-in law; its draws hold the estimation error."""
        yield self.means.unsampled()

    def expected_cells(self, sizes: IntVector, rng: Generator) -> Vector | None:
        """Cells with so many records each in another sample."""
        return self.means.expected_cells(sizes, rng)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        checks = diagnose(self.means)
        if not self.sample.uniques or not self.sample.unsampled_size:
            return checks
        return (*checks, record_on(self.sample, self.record))


def fit_formula(
    formula: str, sample: Sample, draws: int, *, rng: Generator, progress: Progress = silent
) -> LogLinearFit:
    """Fit the model that a formula describes."""
    if sample.zeros is not None:
        sample.zeros.check(sample.table)
    generators = read_generators(formula, [key.name for key in sample.table.keys])
    return LogLinearFit(
        fit_means(sample, generators, draws=draws, rng=rng, progress=progress), RECORDS.get(formula)
    )


def refuse_few_draws(draws: int) -> None:
    if draws < 2:
        raise UnknownModel(f"The option draws must be at least 2, found {draws}.")


RECORDS: Mapping[str, TrackRecord] = {
    "independence": TrackRecord(112, 800, covered=0, samples=18),
    "two-way": TrackRecord(-80, 22, covered=50, samples=120),
}
"""tau1 on the samples of the model guide, and of the page of log-linear models, by preset."""
