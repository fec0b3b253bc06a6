r"""One regression of one file: its coefficients, and which of them the file cannot tell.

A file may leave coefficients open. No record has a level; columns follow from each other; or records are predicted
without error, so that the likelihood grows for ever in some direction:

.. math:: x_i'\beta \ge 0 \text{ where only } y_i = 1,\quad x_i'\beta \le 0 \text{ where only } y_i = 0,\quad
          x_i'\beta = 0 \text{ where both occur}

(for counts: :math:`x_i'\beta = 0` where some count is positive, :math:`x_i'\beta \le 0` elsewhere) for a
:math:`\beta` that is not zero on all records. In the limit such records have no weight. They are set aside, and
what the others leave open has no finite estimate.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, optimize, sparse

from keyhole.arrays import IntVector, Mask, Vector
from keyhole.io.extras import need
from keyhole.synthesis.utility_design import Family

NO_RECORD = "no record has it"
DEPENDENT = "it cannot be told from other coefficients"
SEPARATED = "it has no finite estimate, for some records are predicted without error"
NO_FIT = "the regression did not converge"

TINY = 1e-9
"""Relative size below which numbers from sums over unit columns count as zero."""

FAR = 10.0
"""No record is predicted without error unless a linear predictor is beyond this: with the tolerance of the fit,
the predictor of such a record passes 17 before the deviance stops falling, even for a million records."""


class FileFit(NamedTuple):
    """Estimates and variances of the coefficients of one file; NaN where ``why_open`` has words."""

    estimate: Vector
    variance: Vector
    why_open: tuple[str, ...]


class _Fit(NamedTuple):
    """Estimates and variances (NaN where dependent), which coefficients are told, and the linear predictor."""

    estimate: Vector
    variance: Vector
    told: Mask
    predictor: Vector
    converged: bool


def fit_file(matrix: Vector, response: Vector, family: Family) -> FileFit:
    """Fit a logistic or Poisson regression by maximum likelihood, and say which coefficients stay open.

    Examples
    --------
    Two groups with 1 of 4 and 3 of 4: the log odds are -log 3 and log 3.

    >>> matrix = np.column_stack([np.ones(8), np.repeat([0.0, 1.0], 4)])
    >>> found = fit_file(matrix, np.array([1.0, 0, 0, 0, 1, 1, 1, 0]), "logistic")
    >>> found.estimate.round(4).tolist(), found.variance.round(4).tolist()
    ([-1.0986, 2.1972], [1.3333, 2.6667])
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    size = np.abs(matrix).max(axis=0)
    scale = np.where(size > 0, size, 1.0)
    # Records that are alike are fitted as one with a weight: few, where all columns are levels.
    rows, weight = np.unique(np.column_stack([matrix / scale, response]), axis=0, return_counts=True)
    scaled, response = rows[:, :-1], rows[:, -1]
    first = _fit(scaled, response, weight, family)
    found = first
    if not first.converged or _far(first.predictor, family):
        aside = sure_records(scaled, response, family)
        if aside.any():
            found = _fit(scaled[~aside], response[~aside], weight[~aside], family)
    words = []
    for place in range(matrix.shape[1]):
        if size[place] == 0:
            words.append(NO_RECORD)
        elif not first.told[place]:
            words.append(DEPENDENT)
        elif not found.told[place]:
            words.append(SEPARATED)
        else:
            words.append("" if found.converged else NO_FIT)
    known = np.array([not word for word in words])
    estimate = np.where(known, found.estimate, np.nan) / scale
    variance = np.where(known, found.variance, np.nan) / scale**2
    return FileFit(estimate, variance, tuple(words))


def sure_records(matrix: Vector, response: Vector, family: Family) -> Mask:
    """The records that some choice of coefficients predicts without error, at no cost to any other record."""
    rows, place = np.unique(matrix, axis=0, return_inverse=True)
    place = place.reshape(-1)
    high = np.bincount(place, response > 0, len(rows)) > 0
    low = np.bincount(place, response == 0, len(rows)) > 0
    settled = high if family == "poisson" else high & low
    sign = np.where(high, 1.0, -1.0)
    # Directions that leave the settled rows alone; the others may only gain.
    free = linalg.null_space(rows[settled], rcond=TINY) if settled.any() else np.eye(matrix.shape[1])
    gains = sign[:, None] * (rows @ free)
    gains[np.abs(gains) < TINY] = 0
    may = ~settled & gains.any(axis=1)
    sure = np.zeros(len(rows), dtype=np.bool_)
    sure[may] = _gaining(gains[may])
    return sure[place]


def _gaining(gains: Vector) -> Mask:
    """The rows that gain in some direction in which no row loses.

    Two such directions add up to one in which both their rows gain, and any can be made longer: the most rows,
    all with a gain of 1 or more, are found by maximising the sum of the gains cut off at 1.
    """
    rows, directions = gains.shape
    if not rows or not directions:
        return np.zeros(rows, dtype=np.bool_)
    cost = np.concatenate([np.zeros(directions), -np.ones(rows)])
    bound = sparse.hstack([sparse.csr_array(-gains), sparse.eye_array(rows)], format="csr")
    limits = [(None, None)] * directions + [(0, 1)] * rows
    found = optimize.linprog(cost, A_ub=bound, b_ub=np.zeros(rows), bounds=limits, method="highs")
    if found.x is None:
        return np.zeros(rows, dtype=np.bool_)
    return np.asarray(found.x[directions:] > 0.5)


def _fit(matrix: Vector, response: Vector, weight: IntVector, family: Family) -> _Fit:
    """Fit independent columns in place of all; coefficients that do not depend on the choice are told."""
    width = matrix.shape[1]
    estimate, variance = np.full(width, np.nan), np.full(width, np.nan)
    chosen, told = _independent(matrix)
    if not len(chosen):
        return _Fit(estimate, variance, told, np.zeros(len(matrix)), True)
    models = need("statsmodels.genmod.generalized_linear_model", "utility")
    families = need("statsmodels.genmod.families", "utility")
    law = families.Poisson() if family == "poisson" else families.Binomial()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = models.GLM(response, matrix[:, chosen], family=law, freq_weights=weight)
            # The deviance of many records is itself rounded.
            found: Any = model.fit(maxiter=100, tol=max(1e-10, 1e-14 * float(weight.sum())))
            estimate[chosen], variance[chosen] = found.params, np.diag(found.cov_params())
            converged = bool(found.converged)
    except (ValueError, ArithmeticError):
        return _Fit(estimate, variance, told, np.zeros(len(matrix)), False)
    finite = np.isfinite(estimate[chosen]).all() and np.isfinite(variance[chosen]).all()
    return _Fit(estimate, variance, told, matrix[:, chosen] @ estimate[chosen], converged and bool(finite))


def _independent(matrix: Vector) -> tuple[IntVector, Mask]:
    """Independent columns that span all of them, and the columns whose coefficient no dependence touches."""
    width = matrix.shape[1]
    told = np.zeros(width, dtype=np.bool_)
    if not len(matrix):
        return np.zeros(0, dtype=np.int64), told
    length = np.sqrt((matrix**2).sum(axis=0))
    triangle, order = linalg.qr(matrix / np.where(length > 0, length, 1), mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(diagonal > TINY * max(1.0, diagonal.max(initial=0))))
    chosen = np.asarray(order[:rank], dtype=np.int64)
    if not rank:
        return chosen, told
    # Each column left out is a sum of the chosen ones: those with a part in it are not told apart from it.
    parts = linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    told[chosen[(np.abs(parts) < 1e-6).all(axis=1)]] = True
    return np.sort(chosen), told


def _far(predictor: Vector, family: Family) -> bool:
    furthest = predictor.min() if family == "poisson" else -np.abs(predictor).max()
    return bool(furthest < -FAR)
