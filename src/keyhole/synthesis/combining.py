"""What m synthetic files together say of a number.

Each file gives an estimate and, treated like a collected file, a variance. The estimates are averaged; how their
variances combine depends on how the files were made.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from keyhole.arrays import Mask, Vector, read_only
from keyhole.errors import InputError

FEWEST_DEGREES = 0.1
"""Below this the quantiles of t pass 10^12 standard errors: the interval is called unbounded."""


@dataclass(frozen=True, slots=True)
class Combined:
    """What several synthetic files say of one number, or of several numbers side by side.

    All but ``level`` are arrays with one entry for each number, of no dimension for a single one.

    Attributes
    ----------
    estimate
        Mean of the estimates of the files.
    variance, standard_error
        Its variance about the number in the population, and the root of it.
    degrees_of_freedom
        Those of the t law that the interval is taken from.
    low, high
        The interval; unbounded where the degrees of freedom are below 0.1.
    level
        The coverage that the interval claims.
    mended
        Whether the rule gave a variance of 0 or less, and another one stands in its place.
    """

    estimate: Vector
    variance: Vector
    standard_error: Vector
    degrees_of_freedom: Vector
    low: Vector
    high: Vector
    level: float
    mended: Mask


class _Summary(NamedTuple):
    """Number of files, mean of the estimates, their variance between files, mean of the variances within."""

    files: int
    mean: Vector
    between: Vector
    within: Vector


def combine_fully_synthetic(
    estimates: ArrayLike,
    variances: ArrayLike,
    *,
    level: float = 0.95,
    synthetic_size: float | None = None,
    original_size: float | None = None,
) -> Combined:
    r"""Combine the estimates of files that are drawn as a whole from the posterior predictive law.

    With :math:`\bar q_m` the mean and :math:`b_m` the variance of the estimates :math:`q_i`, and
    :math:`\bar u_m` the mean of their variances :math:`u_i`,

    .. math::

        T = (1 + 1/m)\, b_m - \bar u_m, \qquad
        \nu = (m - 1)\left(1 - \frac{\bar u_m}{(1 + 1/m)\, b_m}\right)^2 .

    The files differ by the draw of their parameters and by the draw of their records: :math:`b_m` holds both,
    and :math:`\bar u_m`, the second, is taken away. What is left can be negative. Then the variance is
    :math:`(n_{syn}/n)\,\bar u_m`, that of an estimate from as many records as the original has, and it is marked
    as mended.

    Parameters
    ----------
    estimates, variances
        One row per file: of shape ``(m,)`` for one number, ``(m, p)`` for p of them.
    level
        Coverage that the interval is to have.
    synthetic_size, original_size
        Records of one synthetic file and of the original; needed only if they differ.

    Raises
    ------
    InputError
        Fewer than two files, shapes that differ, or numbers that are not finite.

    Notes
    -----
    The mended variance goes with :math:`m - 1` degrees of freedom, which is ours: :math:`\nu` is near 0 where T
    is near 0 on either side. In simulations of a normal mean (m from 5 to 50, files from a fifth of the original
    to five times its size) mended intervals of 95% cover 93% to 98%; with normal quantiles they cover 81% to 95%.

    With few small files T is a difference of two uncertain numbers and the intervals are far wider than they need
    be: with five files of the size of the original the middle one is three times as wide as it should be. For
    files of just that size `combine_partially_synthetic` has the same expectation and a much steadier variance.

    References
    ----------
    Raghunathan, Reiter & Rubin (2003), Journal of Official Statistics 19, 1-16; the mended variance: Reiter
    (2002), Journal of Official Statistics 18, 531-544.

    Examples
    --------
    >>> found = combine_fully_synthetic([1.0, 2.0, 3.0], [0.5, 0.5, 0.5])
    >>> float(found.estimate), round(float(found.variance), 4), round(float(found.degrees_of_freedom), 4)
    (2.0, 0.8333, 0.7812)
    """
    files, mean, between, within = _summarise(estimates, variances, level)
    size_ratio = _size_ratio(synthetic_size, original_size)
    total = (1 + 1 / files) * between
    raw = total - within
    mended = (raw <= 0) & (within > 0)
    share = np.divide(within, total, out=np.zeros_like(within), where=raw > 0)
    degrees = np.where(raw > 0, (files - 1) * (1 - share) ** 2, files - 1)
    return _combined(mean, np.where(raw > 0, raw, size_ratio * within), degrees, level, mended)


def combine_partially_synthetic(estimates: ArrayLike, variances: ArrayLike, *, level: float = 0.95) -> Combined:
    r"""Combine the estimates of files in which some values of the original's own records were replaced.

    .. math::

        T = \bar u_m + b_m/m, \qquad \nu = (m - 1)\left(1 + \frac{\bar u_m}{b_m/m}\right)^2 .

    The letters are those of `combine_fully_synthetic`. T is never negative, so nothing is mended.

    Parameters
    ----------
    estimates, variances
        One row per file: of shape ``(m,)`` for one number, ``(m, p)`` for p of them.
    level
        Coverage that the interval is to have.

    Raises
    ------
    InputError
        Fewer than two files, shapes that differ, or numbers that are not finite.

    References
    ----------
    Reiter (2003), Survey Methodology 29, 181-189.

    Examples
    --------
    >>> found = combine_partially_synthetic([1.0, 2.0, 3.0], [0.5, 0.5, 0.5])
    >>> float(found.estimate), round(float(found.variance), 4), round(float(found.degrees_of_freedom), 4)
    (2.0, 0.8333, 12.5)
    """
    files, mean, between, within = _summarise(estimates, variances, level)
    extra = between / files
    share = np.divide(within, extra, out=np.full_like(within, np.inf), where=extra > 0)
    degrees = (files - 1) * (1 + share) ** 2
    return _combined(mean, within + extra, degrees, level, np.zeros(mean.shape, dtype=np.bool_))


def _summarise(estimates: ArrayLike, variances: ArrayLike, level: float) -> _Summary:
    q = np.asarray(estimates, dtype=np.float64)
    u = np.asarray(variances, dtype=np.float64)
    if not 0 < level < 1:
        raise InputError(f"The level of an interval is between 0 and 1; found {level}.")
    if q.ndim not in (1, 2) or q.shape != u.shape:
        raise InputError(
            f"Estimates of shape {q.shape} and variances of shape {u.shape} do not go together: give one row per "
            "synthetic file and one column per number to both."
        )
    if len(q) < 2:
        raise InputError(f"Combining needs two synthetic files or more, found {len(q)}: draw more copies.")
    if not (np.isfinite(q).all() and np.isfinite(u).all() and (u >= 0).all()):
        raise InputError("Estimates must be finite, and variances finite and not negative.")
    mean, between, within = (
        np.asarray(values) for values in (q.mean(axis=0), q.var(axis=0, ddof=1), u.mean(axis=0))
    )
    return _Summary(len(q), mean, between, within)


def _size_ratio(synthetic_size: float | None, original_size: float | None) -> float:
    if synthetic_size is None and original_size is None:
        return 1.0
    if synthetic_size is None or original_size is None or not (synthetic_size > 0 and original_size > 0):
        raise InputError(
            f"Give the records of a synthetic file and of the original, both or neither, and both above 0; "
            f"found {synthetic_size} and {original_size}."
        )
    return synthetic_size / original_size


def _combined(mean: Vector, variance: Vector, degrees: Vector, level: float, mended: Mask) -> Combined:
    error = np.sqrt(variance)
    quantile = stats.t.ppf((1 + level) / 2, np.maximum(degrees, FEWEST_DEGREES))
    half = np.where((degrees < FEWEST_DEGREES) & (error > 0), np.inf, quantile * error)
    arrays = (mean, variance, error, degrees, mean - half, mean + half)
    estimate, variance, error, degrees, low, high = (read_only(np.asarray(values)) for values in arrays)
    return Combined(estimate, variance, error, degrees, low, high, level, read_only(np.asarray(mended)))
