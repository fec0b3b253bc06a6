r"""The renormaliser c(lambda): the sum of the additive law over admissible cells, negative ones set to zero.

.. math:: c(\lambda) = \sum_{\text{admissible},\; p > 0} p(\lambda), \qquad p(\lambda) = q\,(1 + \lambda S)

p is not positive where :math:`S \le -1/\lambda`, up to rounding. The sums of q and q S over classes of S between
neighbouring :math:`-1/\lambda` give c, and the independence mass of the cells left without probability, for a
whole grid of lambda in one pass over the cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.models.lancaster import _kernels as kernels
from keyhole.models.lancaster.margins import ROUNDING, Margins
from keyhole.models.lancaster.sampled import CELLS, sampled_sums
from keyhole.progress import Progress
from keyhole.table.decision_diagram import ADMISSIBLE
from keyhole.table.structural_zeros import StructuralZeros

TASK = "cells of the table"
"""What the progress of the pass is called."""

SMALL = 1_000_000
"""Tables up to this many cells are passed through in one go."""

PARTS = 100
"""Larger ones in about so many parts, between which progress is told and the user may interrupt."""

HOPELESS = 4
"""With more cells than this many times the budget the pass is not begun: pruning rarely saves as much."""


@dataclass(frozen=True, eq=False)
class Renormaliser:
    """c(lambda) and what belongs to it, for each lambda of a grid.

    Attributes
    ----------
    value
        c.
    negative
        The sum of the negative p over admissible cells, at most zero.
    hole
        The probability under independence of the admissible cells where p is not positive.
    error
        Standard error of ``value``; zero if all cells were summed.
    visited
        Cells and branches visited by the pass, or cells sampled.
    exact
        Whether all cells were summed.
    """

    value: Vector
    negative: Vector
    hole: Vector
    error: Vector
    visited: int
    exact: bool


def renormalise(
    margins: Margins,
    levels: Sequence[IntVector],
    zeros: StructuralZeros | None,
    grid: Vector,
    *,
    budget: int,
    rng: Generator,
    progress: Progress,
) -> Renormaliser:
    """c on the grid, exactly if no more than ``budget`` cells must be visited, else by sampling cells."""
    exact = exact_renormaliser(margins, levels, zeros, grid, budget=budget, progress=progress)
    return sampled_renormaliser(margins, levels, zeros, grid, rng=rng) if exact is None else exact


def exact_renormaliser(
    margins: Margins,
    levels: Sequence[IntVector],
    zeros: StructuralZeros | None,
    grid: Vector,
    *,
    budget: int,
    progress: Progress,
) -> Renormaliser | None:
    """c by the depth-first pass over all cells; None if more than ``budget`` would have to be visited.

    Parameters
    ----------
    levels
        For each key, the table's code of each level that occurs.
    grid
        Values of lambda, rising from 0 to 1.
    """
    # Few branches come first and the key with most levels last, in the innermost loop.
    order = sorted(range(len(levels)), key=lambda key: (len(levels[key]), key))
    sizes = [margins.sizes[key] for key in order]
    cells = margins.cells if zeros is None else min(margins.cells, zeros.admissible_cells)
    if cells > budget * HOPELESS:
        return None
    with np.errstate(divide="ignore"):
        threshold = (ROUNDING - 1.0) / grid
    tables = (*_tables(margins, order), *_admission(zeros, order, levels), threshold)
    total, without = np.zeros(2), np.zeros((len(grid), 2))
    prefixes = _prefixes(sizes)
    visited = done = 0
    for part in np.array_split(prefixes, min(PARTS, len(prefixes))):
        progress(TASK, done, len(prefixes))
        visited += kernels.walk_all(*(part, *tables, budget - visited, total, without))
        if visited > budget:
            return None
        done += len(part)
    progress(TASK, done, len(prefixes))
    if zeros is None:
        total = np.array([1.0, 0.0])  # what the pass finds too, up to rounding
    hole, moment = without.cumsum(axis=0).T
    below = np.minimum(hole + grid * moment, 0.0)
    value = total[0] + grid * total[1] - below
    return Renormaliser(value, below, hole, np.zeros(len(grid)), visited, exact=True)


def sampled_renormaliser(
    margins: Margins,
    levels: Sequence[IntVector],
    zeros: StructuralZeros | None,
    grid: Vector,
    *,
    rng: Generator,
) -> Renormaliser:
    """c estimated without bias from sampled cells, with its standard error.

    Without structural zeros p sums to one, so only the negative part is estimated: c = 1 - negative.
    """
    sums = sampled_sums(margins, levels, zeros, grid, cells=CELLS, rng=rng)
    if zeros is None:
        return Renormaliser(
            1.0 - sums.negative, sums.negative, sums.hole, sums.negative_error, sums.cells, exact=False
        )
    return Renormaliser(sums.positive, sums.negative, sums.hole, sums.positive_error, sums.cells, exact=False)


def _prefixes(sizes: Sequence[int]) -> IntVector:
    """The beginnings of cells that part the pass, one a row."""
    depth = 0
    if prod(sizes) > SMALL:
        while depth < len(sizes) - 1 and prod(sizes[:depth]) < PARTS:
            depth += 1
    return np.array(list(product(*map(range, sizes[:depth]))), dtype=np.int64)


def _tables(margins: Margins, order: Sequence[int]) -> tuple[Vector | IntVector, ...]:
    """The margins, interactions and bounds of pairs in the flat layout of the kernels, keys in this order."""
    keys = len(order)
    place = {key: position for position, key in enumerate(order)}
    sizes = np.array([margins.sizes[key] for key in order], dtype=np.int64)
    offset = np.concatenate([[0], np.cumsum(sizes)])
    margin = np.concatenate([margins.probability[key] for key in order])
    flat: dict[int, list[Vector]] = {2: [], 3: []}
    pair_at, triple_at = np.zeros((keys,) * 2, dtype=np.int64), np.zeros((keys,) * 3, dtype=np.int64)
    three_low, three_high = np.zeros((2, keys))
    used = {2: 0, 3: 0}
    for subset, values in margins.interaction_tables().items():
        width = len(subset)
        axes = sorted(range(width), key=lambda axis: place[subset[axis]])
        where = tuple(place[subset[axis]] for axis in axes)
        (pair_at if width == 2 else triple_at)[where] = used[width]
        flat[width].append(np.transpose(values, axes).ravel())
        used[width] += values.size
        if width == 3:
            three_low[: where[0] + 1] += values.min()
            three_high[: where[0] + 1] += values.max()
    pair, triple = (np.concatenate([*flat[width], np.empty(0)]) for width in (2, 3))
    # At third order every chosen key adds to the tables of pairs: one row of them for each key.
    rows = keys if len(triple) else 1
    pairs = np.empty((rows, len(pair)))
    low, high = np.zeros((2, rows, offset[-1]))
    pairs[0] = pair
    kernels.bound_pairs(sizes, offset, pair_at, 0, pairs[0], low[0], high[0])
    return sizes, offset, margin, pair_at, triple, triple_at, three_low, three_high, pairs, low, high


def _admission(
    zeros: StructuralZeros | None, order: Sequence[int], levels: Sequence[IntVector]
) -> tuple[IntVector, IntVector, int]:
    """The decision diagram in this order over the levels that occur: children, where they begin, the root."""
    if zeros is None:
        children = [np.full((2, len(levels[key])), ADMISSIBLE, dtype=np.int64) for key in order]
        root = ADMISSIBLE
    else:
        diagram = zeros.diagram_in(tuple(order))
        children = [layer.child[:, layer.group[levels[layer.key]]].astype(np.int64) for layer in diagram.layers]
        root = diagram.root
    begin = np.concatenate([[0], np.cumsum([child.size for child in children])[:-1]]).astype(np.int64)
    return np.concatenate([child.ravel() for child in children]), begin, root
