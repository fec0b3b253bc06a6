"""Small samples and transparent models for the tests of the risk layer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.errors import FitFailed
from keyhole.inference.dependence import Dependence
from keyhole.inference.fit import Diagnostic
from keyhole.inference.model_path import ModelPath
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts
from keyhole.progress import Progress, silent
from keyhole.table.contingency import ContingencyTable


def random_sample(records: int = 300, population_size: int = 6000, seed: int = 0) -> Sample:
    """Records on three keys of 4, 6 and 10 levels, skewed so that some cells are full and some unique."""
    rng = np.random.default_rng(seed)
    sizes = (4, 6, 10)
    codes = np.column_stack([rng.binomial(size - 1, 0.3, records) for size in sizes])
    keys = tuple(KeyVariable(f"K{j}", tuple(f"level {x}" for x in range(size))) for j, size in enumerate(sizes))
    return Sample(ContingencyTable.from_codes(keys, codes), population_size)


@dataclass(frozen=True)
class GeometricCounts:
    """Independent geometric unsampled counts: P(U = u) = p (1 - p)^u, so r1 = p."""

    p: Vector

    def prob_none(self) -> Vector:
        return self.p

    def mean_match(self) -> Vector:
        return -self.p * np.log(self.p) / (1 - self.p)

    def draw(self, rng: Generator) -> IntVector:
        return rng.geometric(self.p) - 1


@dataclass(frozen=True)
class GeometricFit:
    sample: Sample
    chances: Vector
    diagnostics: tuple[Diagnostic, ...] = ()
    interval_leaves_out: str = ""
    effective_draws: float | None = None

    def unsampled(self) -> Iterator[UnsampledCounts]:
        for chance in self.chances:
            yield GeometricCounts(np.full(self.sample.uniques, chance))


@dataclass(frozen=True)
class DependentFit(GeometricFit):
    """A fit that also says which keys go together."""

    dependence: Dependence = field(default_factory=lambda: Dependence((), (), ()))


@dataclass(frozen=True)
class SearchingFit(GeometricFit):
    """A fit that was chosen among candidates."""

    path: ModelPath = field(default_factory=lambda: ModelPath("term added", (), 0))


@dataclass(frozen=True)
class Geometric:
    """A model whose risk is known in closed form: r1 is one of ``chances`` in each parameter draw.

    It can fail, or somebody can end the run while it is fitted.
    """

    chances: tuple[float, ...] = (0.2,)
    diagnostics: tuple[Diagnostic, ...] = ()
    name: str = "geometric"
    fails: bool = False
    stops: bool = False
    dependence: Dependence | None = None
    path: ModelPath | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> GeometricFit:
        if self.stops:
            raise KeyboardInterrupt
        if self.fails:
            raise FitFailed("The likelihood has no maximum.")
        if self.dependence is not None:
            return DependentFit(sample, np.array(self.chances), self.diagnostics, dependence=self.dependence)
        if self.path is not None:
            return SearchingFit(sample, np.array(self.chances), self.diagnostics, path=self.path)
        return GeometricFit(sample, np.array(self.chances), self.diagnostics)
