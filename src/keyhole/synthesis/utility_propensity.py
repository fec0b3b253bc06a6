"""Can a record be told to be synthetic? The propensity score mean squared error of synthetic files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import expit

from keyhole.arrays import Codes, IntVector, Mask, Vector, read_only
from keyhole.synthesis.utility_files import check_files
from keyhole.table.packing import Packing, rank_rows

RIDGE = 1e-6
"""Half of this times the squared effects is taken from the log-likelihood: dependent levels then have effects too,
and those of levels that together tell the files apart, which would be infinite, stop near 15."""

MOST_STEPS = 60
"""Most fits take five steps; an infinite effect grows by about 1 a step until the ridge stops it."""

CLOSE = 1e-7
"""The fit ends with a step that should gain less than this log-likelihood; chance gains half of k - 1."""

DEPENDENT = 1e-10
"""Columns of the design, scaled to length 1, are taken for dependent where an eigenvalue is less than this."""


@dataclass(frozen=True, slots=True)
class PropensityUtility:
    r"""How well a logistic regression tells the records of each copy from those of the original.

    The N records of the original and of one copy, of which a share c is synthetic, are put into one file. A
    logistic regression with main effects of all keys gives each record a score :math:`\hat p_i`, the chance
    that it is synthetic. With k coefficients, the constant among them,

    .. math::

        \text{pMSE} = \frac1N \sum_i (\hat p_i - c)^2, \qquad
        \text{expected} = (k - 1)\,(1 - c)^2\,c / N, \qquad
        \text{ratio} = \text{pMSE} / \text{expected}.

    All arrays have one entry per copy.

    Attributes
    ----------
    pmse
        0 if the regression cannot tell the files apart, at most :math:`c(1 - c)`.
    expected
        Its expectation if the copy is drawn from a right law that was fitted to the original.
    ratio
        ``pmse`` over ``expected``; NaN if all records are alike. Main effects only see the one-way tables: a copy
        with good one-way and bad two-way tables still has a small ratio.
    sample_ratio
        ``pmse`` over its expectation :math:`(k - 1)\,c\,(1 - c)/N` if the copy is another sample from where the
        original came from.
    parameters
        k: the constant, and the levels but one of each key, as far as some record has them and they do not
        follow from others.
    converged
        Whether the fit has converged; if not, the other numbers are not to be trusted.

    Notes
    -----
    The two expectations differ by how much a good copy is allowed to vary. Copies from a law with its parameters
    held at their fitted values vary about the original, and ``ratio`` is 1 on average. Copies from the posterior
    predictive law vary about the original twice: by the parameters and by the records. For files of one size
    ``ratio`` is 2 and ``sample_ratio`` 1, as for two samples from the same law.

    References
    ----------
    Woo, Reiter, Oganian & Karr (2009), Journal of Privacy and Confidentiality 1, 111-124; the expectation: Snoke,
    Raab, Nowok, Dibben & Slavkovic (2018), Journal of the Royal Statistical Society A 181, 663-688.
    """

    pmse: Vector = field(repr=False)
    expected: Vector = field(repr=False)
    ratio: Vector
    sample_ratio: Vector
    parameters: IntVector = field(repr=False)
    converged: Mask

    def __post_init__(self) -> None:
        for name in ("pmse", "expected", "ratio", "sample_ratio", "parameters", "converged"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def doubt(self) -> str:
        """What is wrong with the fits, in words; empty if nothing is."""
        failed = np.flatnonzero(~self.converged) + 1
        if not len(failed):
            return ""
        copies = ", ".join(map(str, failed.tolist()))
        return f"The regression did not converge for {len(failed)} of {len(self.converged)} copies: {copies}."


class _Pool(NamedTuple):
    """The distinct records of both files: codes of levels that occur, and how many of them are synthetic."""

    codes: list[IntVector]
    sizes: list[int]
    records: Vector
    synthetic: Vector


def compare_propensity(original: Codes, copies: Sequence[Codes], sizes: Sequence[int]) -> PropensityUtility:
    """Measure how well a regression tells each synthetic copy from the original.

    Parameters
    ----------
    original, copies
        Level codes, one row a record, one column a key. Copies may have another number of records.
    sizes
        Number of levels of each key.

    Raises
    ------
    InvalidKeys
        Files that cannot be compared.

    Examples
    --------
    One key, 1 record of 4 against 3 of 4: scores of 1/4 and 3/4, and so (1/4)^2.

    >>> found = compare_propensity(np.array([[0], [0], [0], [1]]), [np.array([[0], [1], [1], [1]])], [2])
    >>> found.pmse.round(6).tolist(), found.expected.tolist()
    ([0.0625], [0.015625])
    """
    check_files(original, copies, sizes)
    found = [_compare(original, copy, sizes) for copy in copies]
    pmse, expected, sample_expected, parameters, converged = (
        np.array(values) for values in zip(*found, strict=True)
    )
    return PropensityUtility(
        pmse=pmse,
        expected=expected,
        ratio=_over(pmse, expected),
        sample_ratio=_over(pmse, sample_expected),
        parameters=parameters,
        converged=converged,
    )


def _compare(original: Codes, copy: Codes, sizes: Sequence[int]) -> tuple[float, float, float, int, bool]:
    """The pMSE of one copy, its two expectations, the parameters, and whether the fit converged."""
    pool = _pool(original, copy, sizes)
    records = len(original) + len(copy)
    share = len(copy) / records
    score, converged = _scores(pool)
    parameters = _rank(pool)
    pmse = float((pool.records * (score - share) ** 2).sum()) / records
    sample_expected = (parameters - 1) * share * (1 - share) / records
    return pmse, sample_expected * (1 - share), sample_expected, parameters, converged


def _pool(original: Codes, copy: Codes, sizes: Sequence[int]) -> _Pool:
    both = np.concatenate([original, copy])
    first, rank = rank_rows(Packing(tuple(sizes)).pack(both))
    records = np.bincount(rank)
    synthetic = np.bincount(rank[len(original) :], minlength=len(records))
    return _renumbered(list(both[first].T), records.astype(np.float64), synthetic.astype(np.float64))


def _renumbered(columns: Sequence[Codes], records: Vector, synthetic: Vector) -> _Pool:
    """A pool with codes for the levels that occur only."""
    codes, sizes = [], []
    for column in columns:
        occurring, code = np.unique(column, return_inverse=True)
        codes.append(code)
        sizes.append(len(occurring))
    return _Pool(codes, sizes, records, synthetic)


def _scores(pool: _Pool) -> tuple[Vector, bool]:
    """The score of each distinct record, and whether the fit converged.

    A level that only one of the files has gives its records away. Their score is 0 or 1, and the regression is
    that of the other records.
    """
    score = np.full(len(pool.records), np.nan)
    rest = np.arange(len(score))
    while len(rest):
        known = _given_away(pool)
        if not known.any():
            score[rest], converged = _fit(pool)
            return score, converged
        score[rest[known]] = pool.synthetic[known] / pool.records[known]
        left = ~known
        rest = rest[left]
        pool = _renumbered([code[left] for code in pool.codes], pool.records[left], pool.synthetic[left])
    return score, True


def _given_away(pool: _Pool) -> Mask:
    """The distinct records with a level that only one of the files has."""
    known = np.zeros(len(pool.records), dtype=np.bool_)
    for code, size in zip(pool.codes, pool.sizes, strict=True):
        synthetic = np.bincount(code, pool.synthetic, size)
        original = np.bincount(code, pool.records - pool.synthetic, size)
        known |= ((synthetic == 0) | (original == 0))[code]
    return known


def _fit(pool: _Pool) -> tuple[Vector, bool]:
    """The score of each distinct record by Newton's method, and whether it converged."""
    effects = np.zeros(1 + sum(pool.sizes) - len(pool.sizes))
    ridge = np.full(len(effects), RIDGE)
    ridge[0] = 0
    value = _penalised(pool, effects, ridge)
    for _ in range(MOST_STEPS):
        score = expit(_predictor(pool, effects))
        gradient = _moments(pool, pool.synthetic - pool.records * score) - ridge * effects
        curvature = _products(pool, pool.records * score * (1 - score)) + np.diag(ridge)
        step = linalg.cho_solve(linalg.cho_factor(curvature), gradient)
        if gradient @ step < 2 * CLOSE:
            return expit(_predictor(pool, effects + step)), True
        # The log-likelihood is concave: some part of the step always gains.
        while (tried := _penalised(pool, effects + step, ridge)) <= value and np.abs(step).max() > CLOSE:
            step = step / 2
        effects, value = effects + step, tried
    return score, False


def _penalised(pool: _Pool, effects: Vector, ridge: Vector) -> float:
    """Log-likelihood less the ridge."""
    predictor = _predictor(pool, effects)
    likelihood = pool.synthetic @ predictor - pool.records @ np.logaddexp(0, predictor)
    return float(likelihood - (ridge * effects**2).sum() / 2)


def _predictor(pool: _Pool, effects: Vector) -> Vector:
    """The log-odds of each distinct record; the first level of each key has no effect."""
    predictor = np.full(len(pool.records), effects[0])
    start = 1
    for code, size in zip(pool.codes, pool.sizes, strict=True):
        predictor += np.concatenate([[0.0], effects[start : start + size - 1]])[code]
        start += size - 1
    return predictor


def _moments(pool: _Pool, weight: Vector) -> Vector:
    """Indicators of the levels, times the weights: a one-way table for each key, without its first level."""
    tables = [np.bincount(code, weight, size)[1:] for code, size in zip(pool.codes, pool.sizes, strict=True)]
    return np.concatenate([[weight.sum()], *tables])


def _products(pool: _Pool, weight: Vector) -> Vector:
    """Products of indicators, times the weights: a two-way table for each pair of keys, without first levels."""
    margins = _moments(pool, weight)
    products = np.diag(margins)
    products[0], products[:, 0] = margins, margins
    starts = np.cumsum([1, *(size - 1 for size in pool.sizes)])
    for first, second in combinations(range(len(pool.sizes)), 2):
        size = pool.sizes[second]
        table = np.bincount(
            pool.codes[first] * size + pool.codes[second], weight, pool.sizes[first] * size
        ).reshape(-1, size)[1:, 1:]
        rows, columns = slice(*starts[first : first + 2]), slice(*starts[second : second + 2])
        products[rows, columns], products[columns, rows] = table, table.T
    return products


def _rank(pool: _Pool) -> int:
    """How many columns of the design are independent."""
    products = _products(pool, pool.records)
    length = np.sqrt(np.diag(products))
    return int(np.count_nonzero(linalg.eigvalsh(products / np.outer(length, length)) > DEPENDENT))


def _over(found: Vector, expected: Vector) -> Vector:
    ratio: Vector = np.divide(found, expected, out=np.full(len(found), np.nan), where=expected > 0)
    return ratio
