"""Mixed-effects log-linear models as risk models: settings and fit."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector
from keyhole.errors import UnknownModel
from keyhole.inference.cell_law import PoissonCells
from keyhole.inference.chain import Watched
from keyhole.inference.chain_settings import ChainSettings
from keyhole.inference.chains import Chains, run_chains
from keyhole.inference.fit import Diagnostic
from keyhole.inference.formula import Generators, read_generators
from keyhole.inference.ignored_weights import ignored_weights
from keyhole.inference.sampled_fit import SampledFit
from keyhole.inference.track_record import UNTRIED
from keyhole.models.mixed_loglinear.base_measure import BASES, DEFAULTS, Base, BaseMeasure
from keyhole.models.mixed_loglinear.clustered import ClusteredSampler
from keyhole.models.mixed_loglinear.fixed_effects import FixedEffects
from keyhole.models.mixed_loglinear.full_table import FullTable
from keyhole.models.mixed_loglinear.laplace import MOST_FACTORISED
from keyhole.models.mixed_loglinear.parametric import ParametricSampler
from keyhole.models.mixed_loglinear.starts import independent_means
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

EVERY = 2
"""Sweeps between two looks at the cells."""

MANY = 80
"""Fixed effects above which steps of the parametric models have one metric, that of the mode."""

SKEWNESS = "how skewed the posterior of the fixed effects is, which are drawn from a normal approximation"

RARE = 0.15
"""Acceptance of the steps of the fixed effects below which they hardly move."""


@dataclass(frozen=True)
class MixedLogLinear(ChainSettings):
    """Cell counts are Poisson; fixed effects of the keys, and a random effect of each cell.

    Attributes
    ----------
    base
        The law of the random effects, or the base of the process that it is drawn from: ``log-gamma``, ``normal``
        or ``inverse-gaussian``.
    base_parameters
        Two numbers: shape and rate of a gamma law, mean and variance of a normal law of the logarithm, mean and
        shape of an inverse Gaussian law. If not given 1,0.1 for the first, and what is like it for the others.
    generators
        The fixed effects, as in ``age*sex + region``, or ``none``, ``main``, ``two-way``; nothing for the model's
        own.
    """

    label: ClassVar[str]
    formula: ClassVar[str]
    clusters: ClassVar[bool]

    base: str = "log-gamma"
    base_parameters: str = ""
    generators: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.measure  # noqa: B018, refuses what cannot be

    @property
    def name(self) -> str:
        return self.label

    @property
    def measure(self) -> BaseMeasure:
        """The base with its parameters."""
        if self.base not in BASES:
            raise UnknownModel(f"The option base must be one of {', '.join(BASES)}, found {self.base!r}.")
        first, second = DEFAULTS[self.base]
        if self.base_parameters:
            try:
                first, second = map(float, self.base_parameters.split(","))
            except ValueError:
                raise UnknownModel(
                    f"The option base_parameters must be two numbers like 1,0.1, found {self.base_parameters!r}."
                ) from None
        return BaseMeasure(cast(Base, self.base), first, second)

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> SampledFit:
        table = FullTable.of(sample)
        sampler = self.sampler(sample, table)
        watched = Watched(sample, EVERY, PoissonCells())
        found: Chains[Any] = run_chains(
            sampler,
            table,
            watched,
            self.schedule,
            rng=rng,
            progress=progress,
            checkpoint=self.checkpoint_of(self.name, sample, rng),
        )
        remarks = (*_remarks(found, sampler), *ignored_weights(sample), UNTRIED)
        left_out = SKEWNESS if getattr(sampler, "laplace", False) else self.leaves_out
        return SampledFit(sample, found, remarks, watched.law, left_out, partial(_redrawn, sampler))

    @property
    def leaves_out(self) -> str:
        return ""

    def sampler(self, sample: Sample, table: FullTable) -> Any:
        """The sampler of one table."""
        # A process learns the level of all cells together, a fixed law of their effects does not.
        fixed = FixedEffects.of(table.levels, self._generators(sample), overall=not self.clusters)
        if self.clusters:
            return ClusteredSampler(table, sample.population_size, self.measure, fixed)
        laplace = fixed.number > MOST_FACTORISED
        guided = not laplace and fixed.number > MANY
        return ParametricSampler(table, sample.population_size, self.measure, fixed, laplace, guided)

    def _generators(self, sample: Sample) -> Generators:
        formula = self.generators or self.formula
        return () if formula == "none" else read_generators(formula, [key.name for key in sample.table.keys])


class ParametricNone(MixedLogLinear):
    """P+O: independent random effects, no fixed effects."""

    label, formula, clusters = "p-o", "none", False


class ParametricMain(MixedLogLinear):
    """P+I: independent random effects and main effects."""

    label, formula, clusters = "p-i", "main", False


class ParametricTwoWay(MixedLogLinear):
    """P+II: independent random effects and all interactions of two keys."""

    label, formula, clusters = "p-ii", "two-way", False


class ClusteredNone(MixedLogLinear):
    """NP+O: Dirichlet-process random effects, no fixed effects."""

    label, formula, clusters = "np-o", "none", True


class ClusteredMain(MixedLogLinear):
    """NP+I: Dirichlet-process random effects and main effects."""

    label, formula, clusters = "np-i", "main", True


class EmpiricalMain(MixedLogLinear):
    """NP+I Emp: Dirichlet-process random effects around main effects at their maximum likelihood."""

    label, formula, clusters = "np-i-emp", "main", True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.generators not in ("", "main", "independence"):
            raise UnknownModel("The model np-i-emp has main effects only; np-i takes other generators.")

    @property
    def leaves_out(self) -> str:
        return "the uncertainty of the main effects, which are taken at their maximum likelihood"

    def sampler(self, sample: Sample, table: FullTable) -> ClusteredSampler:
        known = independent_means(table) - np.log(table.fraction)
        return ClusteredSampler(table, sample.population_size, self.measure, FixedEffects(table.levels, ()), known)


def _redrawn(sampler: ClusteredSampler | ParametricSampler, state: Any, rng: Generator) -> IntVector:
    """The counts of all cells in another sample."""
    return sampler.redraw(state, rng).counts


def _remarks(found: Chains[Any], sampler: ClusteredSampler | ParametricSampler) -> Iterator[Diagnostic]:
    cells = len(sampler.table)
    yield Diagnostic("cells", cells, "good", f"All {cells:,} cells that somebody could be in have an effect.")
    if isinstance(sampler, ClusteredSampler):
        number = found.values("clusters")
        words = f"Effects made {number.min():.0f} to {number.max():.0f} clusters, {number.mean():.1f} on average."
        yield Diagnostic("clusters", float(number.mean()), "good", words)
    if not sampler.fixed.number:
        return
    if isinstance(sampler, ParametricSampler) and sampler.laplace:
        words = (
            f"The {sampler.fixed.number:,} fixed effects were too many to be drawn exactly, and were drawn from a "
            "normal approximation: where pairs of levels have hardly anybody, risk may be too low, and that "
            "chains agree does not tell."
        )
        yield Diagnostic("laplace", sampler.fixed.number, "caution", words)
        return
    accepted = float(found.values("acceptance").mean())
    words = f"{accepted:.0%} of the steps of the {sampler.fixed.number:,} fixed effects were accepted."
    yield Diagnostic("acceptance", accepted, "good" if accepted > RARE else "caution", words)
