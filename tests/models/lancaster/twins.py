"""The additive law over every cell of a small table, slow and obvious, and samples to try it on."""

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import IntVector, Mask, Vector
from keyhole.models.lancaster.margins import Margins
from keyhole.population.sample import Sample
from tests.models.sequential.people import dependent_people, possible_people, sample_of_codes, zeros_of

CASES = [(order, zeros, weighted) for order in (2, 3) for zeros, weighted in product((False, True), (False, True))]
"""Order of the model, structural zeros or not, weights or not."""


def sample_for(zeros: bool = False, weighted: bool = False, size: int = 250, seed: int = 5) -> Sample:
    """People on keys of 9, 6, 5, 4, 3 and 2 levels, 6,480 cells."""
    rng = np.random.default_rng(seed)
    codes = possible_people(size, rng=rng) if zeros else dependent_people(size, rng=rng)
    # Records of one cell weigh alike, so that their weights are what the cell's people are drawn with.
    weights = 5.0 + 6.0 * codes[:, 0] + 11.0 * codes[:, 3] if weighted else None
    return sample_of_codes(codes, 9000, zeros=zeros_of() if zeros else None, weights=weights)


def independent_sample(levels: tuple[int, ...], size: int = 300, seed: int = 3) -> Sample:
    """People whose keys have nothing to do with each other, so many levels that most cells are empty."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, own, size) for own in levels], axis=1)
    return sample_of_codes(codes, 20 * size, levels)


def weight_of(sample: Sample) -> Vector:
    table = sample.table
    return table.counts.astype(np.float64) if table.weights is None else table.weights


def margins_of(sample: Sample, order: int = 2) -> tuple[Margins, tuple[IntVector, ...]]:
    cells, levels = sample.table.dense()
    return Margins.of(cells, weight_of(sample), tuple(map(len, levels)), order), levels


def relative_frequencies(sample: Sample) -> Vector:
    """The dense table of relative frequencies over the levels that occur."""
    cells, levels = sample.table.dense()
    table: Vector = np.zeros(tuple(map(len, levels)))
    table[tuple(cells.T)] = weight_of(sample)
    return np.asarray(table / table.sum())


def margin(table: Vector, kept: tuple[int, ...]) -> Vector:
    """The margin of some keys, with the others as axes of length one."""
    return np.asarray(table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in kept), keepdims=True))


def dense_law(table: Vector, order: int) -> tuple[Vector, Vector]:
    """q and S of every cell; three-way terms by Lancaster's symbolic product, which is another route."""
    keys = range(table.ndim)
    one = [margin(table, (key,)) for key in keys]
    q = np.ones(())
    for share in one:
        q = q * share
    S = np.zeros(table.shape)
    for i, j in combinations(keys, 2):
        S = S + margin(table, (i, j)) / (one[i] * one[j]) - 1.0
    if order == 3:
        for i, j, k in combinations(keys, 3):
            # (P_i - p_i)(P_j - p_j)(P_k - p_k) with P_i P_j read as p_ij, and so on
            term = (
                margin(table, (i, j, k))
                - margin(table, (i, j)) * one[k]
                - margin(table, (i, k)) * one[j]
                - margin(table, (j, k)) * one[i]
                + 2.0 * one[i] * one[j] * one[k]
            )
            S = S + term / (one[i] * one[j] * one[k])
    return q, S


def admissible(sample: Sample) -> NDArray[np.bool_]:
    """Which cells of the dense table are possible."""
    _, levels = sample.table.dense()
    shape = tuple(map(len, levels))
    if sample.zeros is None:
        return np.ones(shape, dtype=np.bool_)
    cells = np.array(list(product(*(own.tolist() for own in levels))))
    possible: Mask = ~sample.zeros.contains(cells)
    return possible.reshape(shape)


def renormaliser(sample: Sample, order: int, shrinkage: float) -> tuple[float, float, float]:
    """c, the sum of the negative p, and the independence mass of the cells where p is not positive."""
    q, S = dense_law(relative_frequencies(sample), order)
    possible = admissible(sample)
    ratio = 1.0 + shrinkage * S
    return (
        float((q * ratio)[possible & (ratio > 0)].sum()),
        float((q * ratio)[possible & (ratio < 0)].sum()),
        float(q[possible & (ratio <= 1e-10)].sum()),
    )
