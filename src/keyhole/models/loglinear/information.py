r"""The information matrix of a log-linear model, and its factorisation.

With x the indicators of the entries of the sufficient margins that a cell is counted in, one per generator,
:math:`\log m_c = x_c'\theta` and the information of Poisson counts is

.. math:: I = X' \mathrm{diag}(m) X.

The indicators are redundant: a margin contains those of its subsets, and entries that nobody has are left out. A
Cholesky factorisation with pivots takes them one at a time and skips those that the ones before imply, which is a
coding of full rank; linear functions :math:`x_c'\delta` of observed cells do not depend on the choice.

The element of two indicators is the sum of the cells that are in both: an entry of the joint margin of their
generators. Pairs of generators share joint margins, (0, 1) with (2, 3) that of (0, 2) with (1, 3), so these are
summed once each and then laid out.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from scipy.linalg import lapack, solve_triangular

from keyhole.arrays import IntVector, Vector
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear.layout import Layout, Margin

MOST_PARAMETERS = 5000
"""Indicators beyond which the matrix is not factorised."""

IMPLIED = 1e-9
"""Share of an indicator's information that the others leave, below which it counts as implied by them."""


@dataclass(frozen=True, eq=False)
class Design(Layout):
    """The indicators of all sufficient margins: x of a cell has ones at the entries that it is counted in."""

    @property
    def joint_sets(self) -> set[frozenset[int]]:
        """The keys of every pair of generators."""
        return {frozenset(g) | frozenset(h) for g in self.generators for h in self.generators}

    @property
    def joint_layout(self) -> Layout:
        """The largest joint margins; never more entries than the matrix has."""
        sets = self.joint_sets
        largest = sorted(tuple(sorted(keys)) for keys in sets if not any(keys < other for other in sets))
        return Layout(self.cells, tuple(largest))

    def information(self, fitted: Vector) -> Vector:
        """X' diag(m) X; its diagonal holds the fitted margins."""
        tables = self._joint_margins(fitted)
        H = np.zeros((self.parameters, self.parameters))
        for k, margin in enumerate(self.margins):
            for h, other in enumerate(self.margins[k:], k):
                keys = frozenset(margin.generator) | frozenset(other.generator)
                here = self.begins[k] + self._places(margin, keys)
                there = self.begins[h] + self._places(other, keys)
                H[here, there] = tables[keys]
                if h > k:
                    H[there, here] = tables[keys]
        return H

    def _joint_margins(self, fitted: Vector) -> dict[frozenset[int], Vector]:
        """The joint margin of every pair of generators, an axis per key in the order in which the tree reads them.

        The largest are summed over the cells, the others over the smallest that contains them.
        """
        largest = self.joint_layout
        found = largest.margins_of(fitted)
        tables = {
            frozenset(margin.generator): found[begin : begin + margin.entries].reshape(margin.shape)
            for begin, margin in zip(largest.begins, largest.margins, strict=False)
        }
        for keys in sorted(self.joint_sets - tables.keys(), key=lambda keys: (-len(keys), sorted(keys))):
            wider = min((other for other in tables if keys < other), key=lambda other: tables[other].size)
            read = [key for key in self.cells.order if key in wider]
            tables[keys] = tables[wider].sum(axis=tuple(axis for axis, key in enumerate(read) if key not in keys))
        return tables

    def _places(self, margin: Margin, keys: frozenset[int]) -> IntVector:
        """The entry of a margin that each entry of a joint margin is part of."""
        read = [key for key in self.cells.order if key in keys]
        shape = [self.cells.sizes[key] if key in margin.generator else 1 for key in read]
        return np.arange(margin.entries).reshape(shape)


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


def thinned(fitted: Vector, points: int, share: float = 0.5) -> Vector:
    """A systematic sample of the fitted law, from this share of the first step on.

    Each point carries an equal part of the total. Over a uniform share the mean of the sample is the law.
    """
    kept = np.empty(len(fitted))
    step = float(fitted.sum()) / points
    kernels.thin(fitted, step, share * step, kept)
    return kept


def thin_small(fitted: Vector, points: int) -> None:
    """Keep the large means and, of about this many points in all, a systematic sample of the small ones, in place.

    Half of the chance of a cell is alike for all: directions in which all means nearly vanish are still seen.
    """
    total = float(fitted.sum())
    step = 2.0 * total / points
    kernels.thin_small(fitted, total / len(fitted), step, 0.5 * step)
