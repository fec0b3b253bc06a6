"""The fitted means of the sample uniques, by the way that suits the model: closed form, junction tree or cells."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.inference.formula import Generators
from keyhole.inference.other_samples import poisson_cells
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.closed_form import fit_closed_form
from keyhole.models.loglinear.estimation_error import estimation_error
from keyhole.models.loglinear.existence import Existence, existence
from keyhole.models.loglinear.graph import decomposition
from keyhole.models.loglinear.ipf import Fitted, fit_margins
from keyhole.models.loglinear.junction_tree import TreeFit, fit_tree, tree_entries
from keyhole.models.loglinear.other_samples import decomposable_cells, tree_cells
from keyhole.population.perturbed_poisson import PerturbedPoissonUnsampled
from keyhole.population.poisson import PoissonUnsampled
from keyhole.population.sample import Sample
from keyhole.population.weights import inclusion, pseudo_counts, weights_differ
from keyhole.progress import Progress, silent
from keyhole.table.structural_zeros import StructuralZeros

FEWEST_TREE_CELLS, MOST_TREE_ENTRIES = 1_000_000, 2_000_000
"""Cells of the table from which a junction tree is walked, and numbers in its cliques up to which it is; else the
active cells are visited, which also tell the estimation error."""

FEW = 5
"""Records of a margin entry below which a fitted mean follows them rather than the population."""

EMPTY_AT_ONCE = 1 << 10
"""Empty entries of a margin that the structural zeros are asked about together."""

FEWEST_DRAWS, DRAWN_ERRORS = 60, 20_000_000
"""Draws of the estimation error are fewer when uniques are very many, never fewer than the first; 8 bytes each."""

LARGEST_COUNT = 60
"""Records of a cell up to which its expected numbers are worked out."""

MARGINS, RISKS = 1e-4, 1e-5
"""Relative differences of margins, and of tau over a pass, at which proportional fitting stops."""

Way = Literal["closed form", "junction tree", "active cells"]


@dataclass(frozen=True, eq=False)
class Means:
    """What a hierarchical model says of the sample uniques.

    Attributes
    ----------
    sample
        The sample.
    generators
        The model.
    way
        How it was fitted.
    fitted
        The mean of each unique's cell, on the scale of the effective sample.
    noise
        Draws of the error of its logarithm, one row per draw; None where it was not worked out.
    passes, discrepancy, converged
        Of proportional fitting: its passes, the largest relative error of a margin, and whether that is small.
    visited
        Cells that were visited; None where none had to be.
    parameters
        Effects that the sample determines; None where they were not counted.
    empty
        Entries of the sufficient margins that nobody has, though somebody could: cells there are fitted as zero.
    existence
        Whether the maximum of the likelihood is reached; not if entries are empty.
    expected
        Cells with 1, 2, ... records that another sample would have; None where cells were not visited.
    walked
        The fit on the junction tree, if there is one.
    """

    sample: Sample
    generators: Generators
    way: Way
    fitted: Vector = field(repr=False)
    noise: Vector | None = field(repr=False)
    passes: int
    discrepancy: float
    converged: bool
    visited: int | None
    parameters: int | None
    empty: int
    existence: Existence
    expected: Vector | None = field(default=None, repr=False)
    walked: TreeFit | None = field(default=None, repr=False)

    def expected_cells(self, sizes: IntVector, rng: Generator) -> Vector | None:
        """Cells with so many records each in another sample; None with weights."""
        if weights_differ(self.sample):
            return None
        if self.expected is not None:
            return np.asarray(self.expected[sizes - 1])
        if self.walked is not None:
            return tree_cells(self.sample, self.walked, sizes, rng)
        tree = decomposition(self.generators) if self.way == "closed form" else None
        return None if tree is None else decomposable_cells(self.sample, tree, sizes, rng)

    @cached_property
    def thin(self) -> float:
        """Share of tau1 from uniques in an entry of a sufficient margin that has hardly any records."""
        table = self.sample.table
        codes, _ = table.dense()
        alone = np.zeros(table.occupied, dtype=bool)
        for generator in self.generators:
            place = np.unique(codes[:, list(generator)], axis=0, return_inverse=True)[1].ravel()
            alone |= np.bincount(place, table.counts)[place] < FEW
        r1 = self.unsampled().prob_none()
        return float(r1 @ alone[table.uniques] / r1.sum()) if r1.any() else 0.0

    def unsampled(self) -> PoissonUnsampled | PerturbedPoissonUnsampled:
        r"""The law of the unsampled counts: means on the scale of the population.

        .. math:: \mu_k = \hat m_k \frac{N}{n_e} (1 - \pi_k)

        with n_e the effective sample size and :math:`\pi_k` the chance that a person of the cell was drawn.
        """
        mean = self.fitted * multiplier(self.sample)
        return PoissonUnsampled(mean) if self.noise is None else PerturbedPoissonUnsampled(mean, self.noise)


def multiplier(sample: Sample) -> Vector:
    """What turns a fitted mean of the effective sample into the mean of the unsampled count, for each unique."""
    people, worth = sample.population_size, float(pseudo_counts(sample).sum())
    return np.asarray((1.0 - inclusion(sample)) * (people / worth))


def fit_means(
    sample: Sample, generators: Generators, *, draws: int, rng: Generator, progress: Progress = silent
) -> Means:
    """Fit a hierarchical model by extended maximum likelihood."""
    codes, levels = sample.table.dense()
    sizes = tuple(map(len, levels))
    empty = empty_entries(sample, generators)
    if sample.zeros is None:
        if (tree := decomposition(generators)) is not None:
            closed = fit_closed_form(tree, codes, pseudo_counts(sample), sizes)
            at = codes[sample.table.uniques]
            noise = closed.log_fitted_noise(at, draws_for(sample, draws), given_total=True, rng=rng)
            fitted = np.exp(closed.log_fitted(at))
            return Means(
                sample, generators, "closed form", fitted, noise, 0, 0.0, True, None, closed.parameters, empty,
                "does not exist" if empty else "exists",
            )  # fmt: skip
        entries, size = tree_entries(generators, sizes), prod(sizes)
        if entries <= MOST_TREE_ENTRIES and entries < size and size >= FEWEST_TREE_CELLS:
            walked = fit_tree(generators, codes, pseudo_counts(sample), sizes, tolerance=1e-6)
            fitted = np.exp(walked.log_fitted(codes[sample.table.uniques]))
            return Means(
                sample,
                generators,
                "junction tree",
                fitted,
                None,
                walked.iterations,
                walked.margin_error,
                walked.converged,
                None,
                None,
                empty,
                "does not exist" if empty else "not known",
                walked=walked,
            )
    cells = Cells.of(sample, generators, progress=progress)
    found = fit_margins(
        cells,
        pseudo_counts(sample),
        generators,
        uniques=sample.table.uniques,
        multiplier=multiplier(sample),
        tolerance=MARGINS,
        risk_tolerance=RISKS,
        progress=progress,
    )
    return means_of(sample, found, empty, draws=draws, rng=rng)


def means_of(sample: Sample, found: Fitted, empty: int, *, draws: int, rng: Generator) -> Means:
    """The means of a fit on visited cells, with the estimation error that the information matrix implies."""
    places = found.cells.occupied[sample.table.uniques]
    error = estimation_error(
        found.cells, found.generators, found.fitted, places, draws=draws_for(sample, draws), rng=rng
    )
    return Means(
        sample,
        found.generators,
        "active cells",
        found.fitted[places],
        None if error is None else error.noise,
        found.passes,
        found.discrepancy,
        found.converged,
        len(found.cells),
        None if error is None else error.parameters,
        empty,
        "does not exist" if empty else existence(found.cells, found.generators),
        poisson_cells(found.fitted, LARGEST_COUNT),
    )


def draws_for(sample: Sample, wanted: int) -> int:
    """How many draws of the estimation error the number of uniques allows."""
    most = max(FEWEST_DRAWS, DRAWN_ERRORS // max(sample.uniques, 1))
    return min(wanted, most)


def empty_entries(sample: Sample, generators: Generators) -> int:
    """Entries of the generators' margins, over the levels that occur, that nobody has and no rule excludes."""
    codes, levels = sample.table.dense()
    empty = 0
    for generator in generators:
        part, shape = codes[:, list(generator)], tuple(len(levels[key]) for key in generator)
        if sample.zeros is None:
            # In whole numbers of Python: a term of many keys has more entries than 64 bits can count.
            empty += prod(shape) - len(np.unique(part, axis=0))
        else:
            missing = np.setdiff1d(np.arange(prod(shape)), np.ravel_multi_index(tuple(part.T), shape))
            empty += _possible(sample.zeros, generator, np.unravel_index(missing, shape), levels)
    return empty


def _possible(
    zeros: StructuralZeros, generator: tuple[int, ...], codes: Sequence[IntVector], levels: Sequence[IntVector]
) -> int:
    """How many entries of a margin, given by dense codes, some admissible cell of the levels that occur has."""
    diagram, possible = zeros.small_diagram, 0
    sizes = {layer.key: len(layer.group) for layer in diagram.layers}
    for begin in range(0, len(codes[0]), EMPTY_AT_ONCE):
        part = [code[begin : begin + EMPTY_AT_ONCE] for code in codes]
        marginals = []
        for key, found in enumerate(levels):
            allowed = np.zeros((len(part[0]), sizes[key]))
            if key in generator:
                allowed[np.arange(len(allowed)), found[part[generator.index(key)]]] = 1.0
            else:
                allowed[:, found] = 1.0
            marginals.append(allowed)
        possible += int(np.count_nonzero(diagram.mass(marginals)))
    return possible
