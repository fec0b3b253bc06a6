"""Does a fitted model reproduce the sample's own frequencies of frequencies?"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.inference.fit import ExpectsSizeIndex, Fit, ForetellsCells
from keyhole.population.weights import weights_differ

SIZES = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 9), (10, 19), (20, 49))
"""Sizes compared; beyond the last, cells are few and large and say nothing about uniqueness."""

RARE = 1.0
"""Neighbouring sizes are joined until a model expects at least this many cells."""


TOLERANCE = 0.03
"""By how much of itself what a model of the keys expects may be off, besides by chance: no law of people is quite
true, and in a large sample every one would be found out. On real samples of 10,000 records and more the sequential
logit expects a few per cent too many unique cells, and its risk is right."""


@dataclass(frozen=True, slots=True)
class SizeIndexCheck:
    """How a fit compares with the sample's size index.

    Attributes
    ----------
    misfit
        Chi-squared per degree of freedom: at most about 1 for a model whose law could have produced the sample.
    criterion
        Minus twice the log-likelihood of the size index, plus a charge for each parameter; the smaller the
        better, comparable between models of one sample only. None for models of the keys, whose parameters were
        not fitted to the size index.
    uniques
        Unique cells in the sample over those that a model of the keys expects in another sample like it.
    """

    misfit: float
    criterion: float | None
    uniques: float | None = None


def check_size_index(fit: Fit, *, rng: Generator) -> SizeIndexCheck | None:
    """Compare a fit with the sample's own numbers of cells with one record, two records, ...

    A model of the size index is compared with it given their total; a model of the keys with what other samples
    from it would show. None for models that say neither, for samples too small to tell, and for models of the keys
    where weights differ: other samples from the law of the population would not be drawn like this one.
    """
    if isinstance(fit, ExpectsSizeIndex):
        return _given_total(fit)
    if isinstance(fit, ForetellsCells) and not weights_differ(fit.sample):
        return _beside_others(fit, rng)
    return None


def _beside_others(fit: ForetellsCells, rng: Generator) -> SizeIndexCheck | None:
    r"""Chi-squared per group of sizes, with a tolerance of 3%.

    .. math:: B^{-1} \sum_b \frac{(f_b - e_b)^2}{e_b + (0.03\, e_b)^2}

    Nothing is given here: a law of the keys says how many cells a sample has.
    """
    sizes, observed = _observed(fit)
    expected = fit.expected_cells(sizes, rng)
    if expected is None or observed.sum() == 0:
        return None
    uniques = float(observed[0] / expected[0]) if expected[0] > 0 else None
    seen, due = _joined(observed, _grouped(expected))
    variance = due + (TOLERANCE * due) ** 2
    return SizeIndexCheck(float(((seen - due) ** 2 / variance).mean()), None, uniques)


def _given_total(fit: ExpectsSizeIndex) -> SizeIndexCheck | None:
    r"""Compare the numbers of small cells with what the fit expects, given how many small cells there are.

    With :math:`f_b` cells in the b-th of B groups of sizes and :math:`e_b` expected, scaled to the same total,
    and p parameters,

    .. math:: \text{misfit} = \frac{1}{B - p} \sum_b \frac{(f_b - e_b)^2}{e_b}, \qquad
              \text{criterion} = -2 \sum_b f_b \log\frac{e_b}{\sum_c e_c} + p \log \sum_b f_b

    The total is given because a model need not determine it: under Pitman's law the number of cells varies far
    more than a Poisson number.
    """
    sizes, observed = _observed(fit)
    expected = _grouped(fit.expected_size_index(sizes))
    if observed.sum() == 0 or not np.isfinite(expected).all() or expected.sum() <= 0:
        return None
    expected *= observed.sum() / expected.sum()
    parameters = fit.parameters_fitted
    # The criterion looks at the same groups for every model; the chi-squared joins those a model hardly expects.
    share = np.maximum(expected / expected.sum(), np.finfo(float).tiny)
    criterion = -2.0 * float(observed @ np.log(share)) + parameters * float(np.log(observed.sum()))
    observed, expected = _joined(observed, expected)
    free = max(len(expected) - parameters, 1)
    return SizeIndexCheck(float(((observed - expected) ** 2 / expected).sum()) / free, criterion)


def _observed(fit: ExpectsSizeIndex | ForetellsCells) -> tuple[IntVector, Vector]:
    """The sizes that are looked at, and the sample's numbers of cells by group of sizes."""
    sizes = np.arange(1, SIZES[-1][1] + 1)
    return sizes, _grouped(np.array([fit.sample.size_index.at(int(size)) for size in sizes], dtype=np.float64))


def _grouped(values: Vector) -> Vector:
    return np.array([values[low - 1 : high].sum() for low, high in SIZES])


def _joined(observed: Vector, expected: Vector) -> tuple[Vector, Vector]:
    """Join neighbours, from the largest sizes down, until each group expects enough cells."""
    groups: list[list[float]] = [[0.0, 0.0]]
    for seen, due in zip(observed[::-1], expected[::-1], strict=True):
        if groups[-1][1] >= RARE:
            groups.append([0.0, 0.0])
        groups[-1][0] += seen
        groups[-1][1] += due
    if groups[-1][1] < RARE and len(groups) > 1:
        last = groups.pop()
        groups[-1] = [groups[-1][0] + last[0], groups[-1][1] + last[1]]
    joined = np.array(groups)
    return joined[:, 0], np.maximum(joined[:, 1], np.finfo(float).tiny)
