"""A small model whose law is simple enough to reason about, and samples of every awkward kind."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.errors import FitFailed
from keyhole.inference.dependence import Dependence, PairDependence, TripleDependence
from keyhole.inference.fit import Diagnostic, Verdict
from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts
from keyhole.progress import Progress, silent
from keyhole.risk.compare import Comparison, compare_models
from keyhole.table.contingency import ContingencyTable


@dataclass(frozen=True)
class PoissonCounts:
    """Independent Poisson unsampled counts, one mean per sample unique."""

    mean: Vector

    def prob_none(self) -> Vector:
        return np.exp(-self.mean)

    def mean_match(self) -> Vector:
        return np.where(self.mean > 0, -np.expm1(-self.mean) / np.maximum(self.mean, 1e-300), 1.0)

    def draw(self, rng: Generator) -> IntVector:
        return rng.poisson(self.mean)


@dataclass(frozen=True)
class ToyFit:
    sample: Sample
    laws: tuple[PoissonCounts, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    interval_leaves_out: str = ""
    effective_draws: float | None = None

    def unsampled(self) -> Iterator[UnsampledCounts]:
        return iter(self.laws)

    def mean_match_all(self) -> Vector:
        return 1.0 / self.sample.table.counts


@dataclass(frozen=True)
class DescribingFit(ToyFit):
    """A fit that also expects a size index, with ``factor`` times as many uniques as there are."""

    factor: float = 1.0
    parameters_fitted: int = 2

    def expected_size_index(self, sizes: IntVector) -> Vector:
        found = np.array([self.sample.size_index.at(int(size)) for size in sizes], dtype=np.float64)
        return np.where(sizes == 1, self.factor, 1.0) * found


@dataclass(frozen=True)
class DependentFit(ToyFit):
    """A fit that says which keys go together: the nearer to each other and to the first, the stronger."""

    three_way: bool = True

    @property
    def dependence(self) -> Dependence:
        names = [key.name for key in self.sample.table.keys]
        pairs = [
            PairDependence(names[a], names[b], 2.5 / (b - a) / (1 + a))
            for b in range(len(names))
            for a in range(b)
        ]
        triples = [TripleDependence(names[c - 2], names[c - 1], names[c], 30.0 / c) for c in range(2, len(names))]
        strongest = sorted(pairs, key=lambda pair: -pair.strength)
        return Dependence(tuple(names), tuple(strongest), tuple(triples) if self.three_way else ())


@dataclass(frozen=True)
class SearchingFit(ToyFit):
    """A fit that was chosen among candidates."""

    path: ModelPath = field(default_factory=lambda: make_term_path())


def make_term_path(steps: int = 8, chosen: int | None = None) -> ModelPath:
    """Terms added one by one to independence: tau1 falls from 310 towards 90, both statistics towards 0."""
    keys = ("AGE", "SEX", "REGION", "JOB")
    terms = [f"{keys[i % 4]}*{keys[(i + 1 + i // 4) % 4]}" for i in range(steps - 1)]
    found = tuple(
        PathStep(label, None, 90 + 220 * 0.5**i, 200 + 300 * 0.6**i, {"B1": 14 * 0.5**i - 0.5, "B2": 9 * 0.7**i})
        for i, label in enumerate(["independence", *terms])
    )
    return ModelPath("term added", found, steps - 1 if chosen is None else chosen)


def make_lambda_path(steps: int = 21, chosen: int = 8) -> ModelPath:
    """Values of lambda from 0 to 1, with a score whose values are far from 0."""
    values = [i / (steps - 1) for i in range(steps)]
    found = tuple(
        PathStep(f"{v:.3g}", v, 310 - 200 * v, 500 - 220 * v, {"score": -8123.4 - 9 * (v - 0.4) ** 2})
        for v in values
    )
    return ModelPath("lambda", found, chosen)


@dataclass(frozen=True)
class ToyModel:
    """Poisson unsampled counts: the same mean for all uniques, or rising along them when ``uneven``."""

    name: str = "toy"
    mean: float = 1.5
    uneven: bool = False
    draws: int = 1
    fails: str = ""
    untrusted: bool = False
    admits: tuple[Diagnostic, ...] = ()
    factor: float | None = None
    dependent: bool = False
    three_way: bool = True
    path: ModelPath | None = None
    settings: Mapping[str, object] = field(default_factory=lambda: {"mean": 1.5, "label": "a<b"})

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> ToyFit:
        if self.fails:
            raise FitFailed(self.fails)
        census = sample.unsampled_size == 0
        mean = 0.0 if census else self.mean
        means = np.full(sample.uniques, mean)
        if self.uneven:
            means = np.linspace(0.01, 4, sample.uniques) ** 1.5 * mean
        laws = tuple(
            PoissonCounts(means * scale)
            for scale in (np.linspace(0.9, 1.1, self.draws) if self.draws > 1 else (1.0,))
        )
        words = "The chains have not met." if self.untrusted else "The chains have met."
        met: tuple[float, Verdict] = (1.31, "untrusted") if self.untrusted else (1.001, "good")
        checks = (
            Diagnostic("rhat_tau1", *met, words),
            Diagnostic("boundary", "interior", "good", "The parameters are inside their range."),
            *self.admits,
        )
        leaves_out = "" if self.draws > 1 else "the uncertainty of the fitted parameters"
        if self.dependent:
            return DependentFit(sample, laws, checks, leaves_out, three_way=self.three_way)
        if self.path is not None:
            return SearchingFit(sample, laws, checks, leaves_out, path=self.path)
        if self.factor is None:
            return ToyFit(sample, laws, checks, leaves_out)
        return DescribingFit(sample, laws, checks, leaves_out, factor=self.factor)


def make_sample(
    levels: Sequence[Sequence[str]],
    names: Sequence[str],
    records: int,
    population_size: int,
    seed: int = 3,
) -> Sample:
    """Records whose levels are drawn independently, low codes more often than high ones."""
    rng = np.random.default_rng(seed)
    keys = tuple(KeyVariable(name, tuple(found)) for name, found in zip(names, levels, strict=True))
    codes = np.stack([np.minimum(rng.geometric(0.45, records) - 1, len(key) - 1) for key in keys], axis=1)
    return Sample(ContingencyTable.from_codes(keys, codes), population_size)


@pytest.fixture(scope="session")
def sample() -> Sample:
    ages = [f"{start}-{start + 9}" for start in range(0, 90, 10)]
    sexes, regions = ["female", "male"], ["north", "south", "east", "west", "islands"]
    jobs = [f"job {i}" for i in range(12)]
    return make_sample([ages, sexes, regions, jobs], ["AGE", "SEX", "REGION", "JOB"], 600, 12_000)


@pytest.fixture(scope="session")
def toy() -> type[ToyModel]:
    return ToyModel


@pytest.fixture(scope="session")
def term_path() -> Callable[..., ModelPath]:
    return make_term_path


@pytest.fixture(scope="session")
def lambda_path() -> Callable[..., ModelPath]:
    return make_lambda_path


@pytest.fixture(scope="session")
def sampled() -> Callable[..., Sample]:
    return make_sample


@pytest.fixture(scope="session")
def compared(sample: Sample) -> Callable[..., Comparison]:
    """Compare toy models on the usual sample, or on another."""

    def compare(*models: ToyModel, on: Sample | None = None) -> Comparison:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compare_models(models or (ToyModel(),), on or sample)

    return compare


def rename(sample: Sample, names: Sequence[str], levels: Sequence[Sequence[str]] | None = None) -> Sample:
    """The same sample under other labels."""
    keys = tuple(
        KeyVariable(name, key.levels if levels is None else tuple(levels[j]))
        for j, (name, key) in enumerate(zip(names, sample.table.keys, strict=True))
    )
    return replace(sample, table=replace(sample.table, keys=keys))


HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="session")
def hostile(sample: Sample) -> Sample:
    """A sample whose labels try everything."""
    names = [HOSTILE, "a & b \"quoted\" '$x_1^2$'", "משרד \u202e 🔑 \x1b[31m", "very long " * 40]
    levels = [
        [f"{HOSTILE}{i} [bold]:smile: {{{{ 7 * 7 }}}} $\\frac{{1}}{{{j}$" for i in range(len(key))]
        for j, key in enumerate(sample.table.keys)
    ]
    return rename(sample, names, levels)


@pytest.fixture(scope="session")
def everyday(compared: Callable[..., Comparison]) -> Comparison:
    """A comparison with a bit of everything."""
    return compared(
        ToyModel("pitman", mean=1.6, factor=1.4),
        ToyModel("ewens", mean=2.4, factor=0.6),
        ToyModel("two-way", mean=1.2, uneven=True, factor=1.0, draws=60),
        ToyModel("hdp", mean=3.0, uneven=True, draws=60, untrusted=True),
        ToyModel("lancaster", fails="The table has too few cells to fit."),
    )
