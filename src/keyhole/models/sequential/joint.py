"""The joint law of the keys in one order: all conditionals fitted, and what they say of cells."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.models.sequential import _kernels as kernels
from keyhole.models.sequential.admission import Admission
from keyhole.models.sequential.conditional import conditionals
from keyhole.models.sequential.fitting import FittedConditional, fit_conditional, unhindered
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import Order
from keyhole.models.sequential.screening import MOST_PAIRS, Pair, choose_pairs
from keyhole.table.structural_zeros import StructuralZeros

SUREST = 1e-7
"""A conditional's variance below which its log probability is normal to every digit."""


class Moment(IntEnum):
    """What is known of log p in a cell, column by column; all are sums over the conditionals.

    ``CURVED`` is the variance by the curvature at the mode, ``LOSS`` what leaving one record out takes from log p.
    ``VARIANCE`` and ``SKEW`` are the second and, without its minus sign, the third cumulant.
    """

    LOG_P, BIAS, CURVED, LOSS, VARIANCE, SKEW = range(6)


@dataclass(frozen=True, eq=False)
class JointLaw:
    """The fitted factors in the order of the keys.

    Attributes
    ----------
    order
        The keys, in the order in which they are explained.
    factors
        One fitted conditional for each.
    pairs
        For each conditional the three-way terms that were added, with their score.
    """

    observed: Observed
    order: Order
    admission: Admission
    factors: tuple[FittedConditional, ...]
    pairs: tuple[dict[Pair, float], ...]

    def log_probability(self, cells: IntVector) -> Vector:
        """log p of cells, given in dense codes; minus infinity for cells that are not admissible."""
        total = np.zeros(len(cells))
        node = np.full(len(cells), self.admission.root, dtype=np.int64)
        for fit, child in zip(self.factors, self.admission.children, strict=True):
            data = fit.data
            level = cells[:, data.key]
            features, theta = data.features_of(cells), _padded(fit.coefficients)
            total += kernels.log_level(features, node.astype(np.int32), data.mask, level, theta)
            node = child[node, level]
        return total

    @cached_property
    def moments(self) -> Vector:
        """The moments of each occupied cell (D, 6), as `Moment` names them."""
        total = np.zeros((len(self.observed.cells), len(Moment)))
        for fit in self.factors:
            found = fit.curvature.moments(fit.mean_shift)
            shape = 1.0 / np.maximum(found[:, Moment.CURVED], SUREST)
            cumulants = special.polygamma(1, shape), -special.polygamma(2, shape)
            total += np.column_stack([found, *cumulants])[fit.data.entry]
        return total

    def directions(self, cells: IntVector, size: int, rng: Generator) -> tuple[Vector, Vector]:
        """Draws (cells, size) of log p minus its mode, to first order, at occupied cells, and their variance."""
        total = np.zeros((len(cells), size))
        for fit in self.factors:
            data = fit.data
            entry = data.entry[cells]
            vectors = fit.curvature.draws(size, rng)
            where = data.context[entry], data.level[entry]
            kernels.directions(*data.layout, *where, fit.coefficients, vectors, total)
        return total, self.moments[cells, Moment.CURVED]

    def drawn(self, rng: Generator) -> "JointLaw":
        """The law with coefficients drawn from their posterior."""
        return replace(self, factors=tuple(fit.drawn(rng) for fit in self.factors))

    def simulate(self, size: int, rng: Generator) -> IntVector:
        """Records drawn from the law, as dense codes; keys with one level have code 0."""
        cells = np.zeros((size, len(self.observed.sizes)), dtype=np.int64)
        node = np.full(size, self.admission.root, dtype=np.int64)
        for fit, child in zip(self.factors, self.admission.children, strict=True):
            data = fit.data
            drawn = np.empty(size, dtype=np.int64)
            features, theta = data.features_of(cells), _padded(fit.coefficients)
            kernels.draw_levels(features, node.astype(np.int32), data.mask, theta, rng.random(size), drawn)
            cells[:, data.key] = drawn
            node = child[node, drawn]
        return cells


def fit_joint(
    observed: Observed,
    order: Order,
    zeros: StructuralZeros | None,
    *,
    most_pairs: int = MOST_PAIRS,
    ridge: bool = True,
    rng: Generator,
    proceed: Callable[[], None] = unhindered,
) -> JointLaw:
    """Fit every conditional in this order: two-way terms first, then the three-way terms they lack."""
    admission = Admission.of(zeros, order, observed.levels)
    fits, pairs = [], []
    for fit, added in fitted_conditionals(
        observed, order, admission, most_pairs=most_pairs, ridge=ridge, rng=rng, proceed=proceed
    ):
        fits.append(fit)
        pairs.append(added)
    return JointLaw(observed, order, admission, tuple(fits), tuple(pairs))


def fitted_conditionals(
    observed: Observed,
    order: Order,
    admission: Admission,
    *,
    most_pairs: int,
    ridge: bool,
    rng: Generator,
    proceed: Callable[[], None],
) -> Iterator[tuple[FittedConditional, dict[Pair, float]]]:
    """Each conditional's fit and its three-way terms, as they are ready."""
    for data in conditionals(observed, order, admission):
        if len(data.earlier) < 2 or not most_pairs:
            yield fit_conditional(data, ridge=ridge, rng=rng, proceed=proceed), {}
            continue
        draft = fit_conditional(data, ridge=ridge, draft=True, rng=rng, proceed=proceed)
        chosen = choose_pairs(draft, observed.sizes, most_pairs)
        whole = data.with_pairs(list(chosen), observed.sizes)
        yield fit_conditional(whole, draft, ridge=ridge, rng=rng, proceed=proceed), chosen


def _padded(theta: Vector) -> Vector:
    """The coefficients with a row of zeros behind them, for combinations that nobody in the sample has."""
    return np.concatenate([theta, np.zeros((1, theta.shape[1]))])
