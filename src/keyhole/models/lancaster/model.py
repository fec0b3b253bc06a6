"""The Lancaster additive model as a risk model: settings, fit, law of the unsampled counts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.errors import UnknownModel
from keyhole.inference.fit import Diagnostic
from keyhole.inference.model_path import ModelPath
from keyhole.models.lancaster.checks import diagnose
from keyhole.models.lancaster.held_out import hold_out
from keyhole.models.lancaster.margins import Margins
from keyhole.models.lancaster.path import LancasterPath, shrinkage_grid
from keyhole.models.lancaster.renormaliser import renormalise
from keyhole.models.lancaster.sampled import sampled_size_index
from keyhole.population.multinomial import MultinomialUnsampled
from keyhole.population.sample import Sample
from keyhole.population.weights import inclusion, pseudo_counts
from keyhole.progress import Progress, silent

AUTOMATIC = "auto"
"""The shrinkage that leaves the choice to held-out records."""

CELLS_OF_OTHERS = 200_000
"""Cells that are sampled to say what other samples look like: f_1 to about 2%."""


@dataclass(frozen=True)
class LancasterAdditive:
    r"""Independence plus the sum of the interactions of pairs (and triples) of keys, shrunk by lambda.

    .. math:: p(\lambda) = \frac{1}{c(\lambda)} \max\Bigl(0, \; \prod_i p_i
        \bigl\{ 1 + \lambda \sum_{i<j} \bigl(\tfrac{p_{ij}}{p_i p_j} - 1\bigr) \bigr\} \Bigr)

    Parameters
    ----------
    order
        2, or 3 to add the three-way interactions.
    shrinkage
        lambda from 0 (independence) to 1, or ``auto`` to choose it by held-out records.
    budget
        Cells that are visited at most to find c(lambda) exactly; beyond, it is estimated from sampled cells.

    References
    ----------
    Takemura, Evaluation of per-record identification risk by additive modeling of interaction for contingency
    table cell probabilities, eqs. (1)-(5).
    """

    order: int = 2
    shrinkage: str | float = AUTOMATIC
    budget: int = 2_000_000_000

    def __post_init__(self) -> None:
        if self.order not in (2, 3):
            raise UnknownModel(f"The option order must be 2 or 3, found {self.order}.")
        if self.budget < 1:
            raise UnknownModel(f"The option budget must be at least 1, found {self.budget}.")
        _read_shrinkage(self.shrinkage)

    @property
    def name(self) -> str:
        return "lancaster"

    @property
    def settings(self) -> Mapping[str, object]:
        return {"order": self.order, "shrinkage": self.shrinkage, "budget": self.budget}

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "LancasterFit":
        if sample.zeros is not None:
            sample.zeros.check(sample.table)
        table = sample.table
        cells, levels = table.dense()
        weight = pseudo_counts(sample)
        margins = Margins.of(cells, weight, tuple(map(len, levels)), self.order)
        given = _read_shrinkage(self.shrinkage)
        grid = shrinkage_grid(given)
        c = renormalise(margins, levels, sample.zeros, grid, budget=self.budget, rng=rng, progress=progress)
        held_out = hold_out(margins, cells, table.counts, weight, grid, c)
        law = margins.at(cells[table.uniques])
        raw = np.maximum([law.probability(shrinkage) for shrinkage in grid], 0.0)
        tau1, tau2 = np.array([_tau(sample, p) for p in raw / c.value[:, None]]).T
        tau1_plain, tau2_plain = np.array([_tau(sample, p) for p in raw]).T
        without = (raw == 0.0).sum(axis=1)
        path = LancasterPath(grid, c, held_out, tau1, tau2, tau1_plain, tau2_plain, without)
        place = held_out.best() if given is None else path.place(given)
        probability = raw[place] / c.value[place]
        return LancasterFit(sample, self.order, margins, path, float(grid[place]), given is None, probability)


@dataclass(frozen=True, eq=False)
class LancasterFit:
    """The additive law at the sample uniques.

    Attributes
    ----------
    order
        2 or 3, the most keys that interact.
    margins
        What the law is made of.
    shrinkage_path
        What every lambda says.
    shrinkage
        The lambda of the law.
    automatic
        Whether held-out records chose it.
    probability
        p / c of each sample-unique cell.
    """

    sample: Sample
    order: int
    margins: Margins = field(repr=False)
    shrinkage_path: LancasterPath
    shrinkage: float
    automatic: bool
    probability: Vector = field(repr=False)

    @property
    def interval_leaves_out(self) -> str:
        return "the sampling error of the margins and of lambda, and what additive interactions do not describe"

    @property
    def effective_draws(self) -> None:
        return None

    def unsampled(self) -> Iterator[MultinomialUnsampled]:
        """The law of the estimated probabilities."""
        yield unsampled_law(self.sample, self.probability)

    def expected_cells(self, sizes: IntVector, rng: Generator) -> Vector:
        """Cells with so many records each in another sample, estimated from sampled cells."""
        _, levels = self.sample.table.dense()
        path, largest = self.shrinkage_path, int(sizes.max())
        c = float(path.renormaliser.value[path.place(self.shrinkage)])
        law = self.margins, levels, self.sample.zeros, self.shrinkage, c
        found = sampled_size_index(*law, self.sample.sample_size, largest, cells=CELLS_OF_OTHERS, rng=rng)
        return np.asarray(found[sizes - 1])

    @cached_property
    def path(self) -> ModelPath:
        return self.shrinkage_path.as_model_path(self.shrinkage, given=not self.automatic)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return diagnose(self)


def unsampled_law(sample: Sample, probability: Vector) -> MultinomialUnsampled:
    r"""N - n unsampled people over cells with these probabilities.

    With weights a person of a cell is left out of the sample with probability 1 - 1/w, so that an unsampled person
    is in the cell with probability proportional to p (1 - 1/w). Over the population 1 - 1/w has mean (N - n)/N:

    .. math:: p' = p\,(1 - 1/w)\, N / (N - n).
    """
    trials = sample.unsampled_size
    if sample.table.weights is not None and trials:
        probability = probability * (1.0 - inclusion(sample)) * (sample.population_size / trials)
    return MultinomialUnsampled(np.minimum(probability, 1.0), trials)


def _tau(sample: Sample, probability: Vector) -> tuple[float, float]:
    law = unsampled_law(sample, probability)
    return float(law.prob_none().sum()), float(law.mean_match().sum())


def _read_shrinkage(given: str | float) -> float | None:
    """lambda as a number, None for the automatic choice."""
    if given == AUTOMATIC:
        return None
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = float("nan")
    if not 0.0 <= value <= 1.0:
        raise UnknownModel(f"The option shrinkage must be auto or a number from 0 to 1, found {given!r}.")
    return value
