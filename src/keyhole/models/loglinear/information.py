r"""The information matrix of a log-linear model, and the estimation error it implies.

With x the indicators of the entries of the sufficient margins that a cell is counted in, one per generator,
:math:`\log m_c = x_c'\theta` and the information of Poisson counts is

.. math:: I = X' \mathrm{diag}(m) X.

The indicators are redundant: a margin contains those of its subsets, and entries that nobody has are left out. A
Cholesky factorisation with pivots takes them one at a time and skips those that the ones before imply, which is a
coding of full rank; linear functions :math:`x_c'\delta` of observed cells do not depend on the choice.

**Poisson and multinomial.** Let :math:`Xa = 1`, so that :math:`Ia = X'm`. Given the sample size the score
loses its part along the total, its variance is :math:`I - X'm m'X/n`, and

.. math:: \mathrm{var}(\hat\theta) = I^{-1} - a a'/n, \qquad
          \mathrm{cov}(\log\hat m_c, \log\hat m_d) = x_c' I^{-1} x_d - 1/n:

the two laws differ by one common shift of variance 1/n. The sizes of sample and population are known, so the
multinomial one is right for risk. A draw :math:`\delta \sim N(0, I^{-1})` less :math:`m'X\delta/n`, its mean
over the fitted law, has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from numpy.random import Generator
from scipy.linalg import lapack, solve_triangular

from keyhole.arrays import IntVector, Vector
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.formula import Generators

MOST_PARAMETERS = 5000
"""Indicators beyond which the matrix is not factorised."""

MOST_SUMMED = 2_000_000
"""Cells beyond which the matrix is estimated from a part of them."""

CELLS_DRAWN = 400_000
"""Points of the systematic sample of the fitted law that the estimate is made from."""

IMPLIED = 1e-9
"""Share of an indicator's information that the others leave, below which it counts as implied by them."""


@dataclass(frozen=True, eq=False, slots=True)
class Margin:
    """One sufficient margin, laid out in the order in which the layers of the tree read its keys.

    Attributes
    ----------
    generator
        Its keys, in the order of the table.
    depth
        The layer of the last of them to be read.
    rows, strides
        The layers of the others, and what a step of each adds to the place of an entry.
    shape, entries
        The number of levels of each key, in the order in which they are read, and their product.
    """

    generator: tuple[int, ...]
    depth: int
    rows: IntVector
    strides: IntVector
    shape: tuple[int, ...]
    entries: int

    @classmethod
    def of(cls, generator: tuple[int, ...], cells: Cells) -> "Margin":
        layers = sorted(cells.order.index(key) for key in generator)
        shape = tuple(cells.sizes[cells.order[d]] for d in layers)
        strides = np.array([prod(shape[i + 1 :]) for i in range(len(shape) - 1)], dtype=np.int64)
        return cls(generator, layers[-1], np.array(layers[:-1], dtype=np.int64), strides, shape, prod(shape))

    def in_table_order(self, values: Vector, order: Sequence[int]) -> Vector:
        """The entries with one axis per key of the generator, in the order of the table."""
        read = [key for key in order if key in self.generator]
        return np.ascontiguousarray(values.reshape(self.shape).transpose(np.argsort(read)))


@dataclass(frozen=True, eq=False)
class Design:
    """The indicators of all sufficient margins, one margin after the other, those of the deepest layer first."""

    cells: Cells
    generators: Generators

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        found = [Margin.of(generator, self.cells) for generator in self.generators]
        return tuple(sorted(found, key=lambda margin: -margin.depth))

    @cached_property
    def begins(self) -> IntVector:
        """Where each margin begins, and the number of indicators."""
        return np.cumsum([0, *(margin.entries for margin in self.margins)])

    @property
    def parameters(self) -> int:
        return int(self.begins[-1])

    @cached_property
    def by_layer(self) -> tuple[range, ...]:
        """The margins that end in each layer."""
        depth = [margin.depth for margin in self.margins]
        return tuple(
            range(sum(other > d for other in depth), sum(other >= d for other in depth))
            for d in range(len(self.cells.layers))
        )

    @cached_property
    def flat(self) -> tuple[IntVector, IntVector, IntVector, IntVector]:
        """Where the rows of each margin begin, the rows, their strides, and the layer where each margin ends."""
        none = np.empty(0, np.int64)
        return (
            np.cumsum([0, *(len(margin.rows) for margin in self.margins)]),
            np.concatenate([none, *(margin.rows for margin in self.margins)]),
            np.concatenate([none, *(margin.strides for margin in self.margins)]),
            np.array([margin.depth for margin in self.margins], dtype=np.int64),
        )

    def entries_of(self, places: IntVector) -> IntVector:
        """The indicators of some cells, one row per cell and one column per margin."""
        codes = self.cells.codes_at(places)[:, list(self.cells.order)].astype(np.int64)
        found = np.empty((len(places), len(self.margins)), dtype=np.int64)
        for k, margin in enumerate(self.margins):
            found[:, k] = self.begins[k] + codes[:, margin.rows] @ margin.strides + codes[:, margin.depth]
        return found

    def margins_of(self, fitted: Vector) -> Vector:
        """X'm: the margins of fitted means."""
        found = np.empty(self.parameters)
        value = fitted
        for d in reversed(range(len(self.cells.layers))):
            layer = self.cells.layers[d]
            for k in self.by_layer[d]:
                sums = np.zeros((2, self.margins[k].entries))
                nodes = layer.prefix, layer.branch, layer.own, value
                kernels.sum_margin(*nodes, self.margins[k].rows, self.margins[k].strides, sums)
                found[self.begins[k] : self.begins[k + 1]] = sums.sum(axis=0)
            above = np.empty(len(layer.branch))
            kernels.lift(layer.branch, value, above)
            value = above
        return found

    def information(self, fitted: Vector) -> Vector:
        """X' diag(m) X; its diagonal holds the fitted margins."""
        H = np.zeros((self.parameters, self.parameters))
        value = fitted
        for d in reversed(range(len(self.cells.layers))):
            layer, here = self.cells.layers[d], self.by_layer[d]
            if here:
                nodes = layer.prefix, layer.branch, layer.own, value
                kernels.add_information(*nodes, here.start, here.stop, *self.flat, self.begins[:-1], H)
            above = np.empty(len(layer.branch))
            kernels.lift(layer.branch, value, above)
            value = above
        return np.asarray(np.triu(H) + np.triu(H, 1).T)


@dataclass(frozen=True, eq=False)
class Coding:
    """A coding of full rank and the Cholesky factor of its information.

    Attributes
    ----------
    chosen
        The indicators that it keeps, in the order of the pivots.
    scale
        The square root of each one's information.
    factor
        Lower triangular, of the information of the scaled indicators.
    """

    chosen: IntVector
    scale: Vector
    factor: Vector = field(repr=False)

    @classmethod
    def of(cls, information: Vector) -> "Coding":
        """The coding that pivots choose; indicators of no information are on the boundary and left out."""
        diagonal = np.diagonal(information)
        inner = np.flatnonzero(diagonal > 0)
        scale = np.sqrt(diagonal[inner])
        scaled = information[np.ix_(inner, inner)] / np.outer(scale, scale)
        factor, pivots, rank, _ = lapack.dpstrf(scaled, tol=IMPLIED, lower=1)
        kept = pivots[:rank] - 1
        return cls(inner[kept], scale[kept], np.tril(factor[:rank, :rank]))

    @property
    def rank(self) -> int:
        return len(self.chosen)

    def solve(self, score: Vector) -> Vector:
        """The Newton step of the effects for a score, zero for the indicators that are implied."""
        half = solve_triangular(self.factor, score[self.chosen] / self.scale, lower=True)
        step = np.zeros(len(score))
        step[self.chosen] = solve_triangular(self.factor, half, lower=True, trans="T") / self.scale
        return step

    def draw(self, draws: int, parameters: int, rng: Generator) -> Vector:
        """Errors of the effects, one row per draw, with the inverse of the information as their variance."""
        noise = np.zeros((draws, parameters))
        normal = rng.standard_normal((self.rank, draws))
        noise[:, self.chosen] = solve_triangular(self.factor, normal, lower=True, trans="T").T / self.scale
        return noise


@dataclass(frozen=True, eq=False)
class EstimationError:
    """Draws of the error of the logarithm of fitted means.

    Attributes
    ----------
    noise
        One row per draw, one column per cell asked for.
    parameters
        The number of effects that the data determine.
    cells_drawn
        Size of the sample of the fitted law that the information was estimated from; None if all cells were
        summed.
    """

    noise: Vector = field(repr=False)
    parameters: int
    cells_drawn: int | None


def estimation_error(
    cells: Cells,
    generators: Generators,
    fitted: Vector,
    places: IntVector,
    *,
    draws: int = 400,
    effective_size: float | None = None,
    most_summed: int = MOST_SUMMED,
    rng: Generator,
) -> EstimationError | None:
    """Draws of the estimation error of log fitted means at some cells; None with too many effects to factorise.

    Parameters
    ----------
    places
        The cells, as places among all that the fit visits.
    effective_size
        The sample size that the counts are worth; by default their sum. Weights that differ are worth less.
    most_summed
        Cells beyond which the information is estimated, without bias, from a systematic sample of the fitted law.
    """
    design = Design(cells, generators)
    if design.parameters > MOST_PARAMETERS:
        return None
    total = float(fitted.sum())
    drawn = CELLS_DRAWN if len(cells) > most_summed else None
    coding = Coding.of(design.information(fitted if drawn is None else thinned(fitted, drawn, rng.random())))
    delta = coding.draw(draws, design.parameters, rng)
    entries = design.entries_of(places)
    noise = np.zeros((draws, len(places)))
    for k in range(entries.shape[1]):
        noise += delta[:, entries[:, k]]
    # The mean over the fitted law, from its margins: each is a set of indicators that sum to one in every cell.
    noise -= (delta @ design.margins_of(fitted) / total)[:, None]
    if effective_size is not None:
        noise *= np.sqrt(total / effective_size)
    return EstimationError(noise, coding.rank, drawn)


def thinned(fitted: Vector, points: int, share: float = 0.5) -> Vector:
    """A systematic sample of the fitted law, from this share of the first step on.

    Each point carries an equal part of the total. Over a uniform share the mean of the sample is the law.
    """
    kept = np.empty(len(fitted))
    step = float(fitted.sum()) / points
    kernels.thin(fitted, step, share * step, kept)
    return kept
