r"""How far a log-linear fit is from giving the right risk: the bias criteria of Skinner and Shlomo.

With :math:`m_k` the fitted mean of cell k in the SAMPLE, :math:`f_k` its count, :math:`\pi` the sampling fraction
and :math:`c = (1 - \pi)/\pi`, the estimates are sums over the sample uniques,

.. math:: \hat\tau = \sum_{f_k = 1} h(m_k), \qquad h_1(m) = e^{-cm}, \qquad h_2(m) = \frac{1 - e^{-cm}}{cm}.

If the true means are :math:`m^0_k`, cell k is a sample unique with probability :math:`a(m^0_k)`, :math:`a(m) = m
e^{-m}`, and the bias of the estimate is

.. math:: B = \sum_k a(m^0_k) \, [h(m_k) - h(m^0_k)].

Strong underfitting makes B positive and strong overfitting makes it negative. Where either is mild B can have the
other sign, because misfits of cells cancel in the sum: the sign alone does not tell which it is.

**Estimates of B.** Whatever the true means are, :math:`f - m` and :math:`(f - m)^2 - f` have the expectations
:math:`\delta = m^0 - m` and :math:`\delta^2`. Every expansion of B to second order in :math:`\delta` is thus
estimated by a sum

.. math:: \hat B = \sum_k A_k (f_k - m_k) + C_k [(f_k - m_k)^2 - f_k].

*published*: h is expanded about the truth, :math:`h(m) - h(m^0) = -h'(m^0) \delta + h''(m^0) \delta^2 / 2`, and
then a, h' and h'' are read at the fit,

.. math:: A = -a h', \qquad C = a h''/2.

For :math:`h_1`, with :math:`\lambda = m/\pi`, this is :math:`\lambda e^{-\lambda} (1 - \pi) \{(f - \pi\lambda) +
(1 - \pi) [(f - \pi\lambda)^2 - f]/(2\pi)\}`.

*second-order*: reading a h' at the fit instead of at the truth is itself an error of order :math:`\delta`.
Expanding everything about the fit keeps all terms of second order,

.. math:: A = -a h', \qquad C = -(a' h' + a h''/2), \qquad a' = (1 - m) e^{-m}.

The two agree where :math:`a' h' + a h'' \approx 0`, and have terms of opposite sign where m is small: there
:math:`a' h' \approx h' < 0` outweighs :math:`a h''`.

In simulated samples the complete form was nearer to B where the misfit was mild, with too few terms or too many;
with far too many terms it had the wrong sign and the published form was nearer; with far too few terms both were
many times too large. As an estimate of B neither is good throughout. The published form is positive even where
misfits cancel, so a search that follows it goes on to add terms, and its searches ended with smaller errors of
tau: it is the default.

**Variance if the model is right.** :math:`f - m` and :math:`(f - m)^2 - f = f^2 - (1 + 2m) f + m^2` are the first
two Charlier polynomials. Under Poisson(m) they have mean 0, variances m and

.. math:: E[(f - m)^2 - f]^2 = (m + 3m^2) - 2(m + m^2) + (m + m^2) = 2 m^2

(from :math:`E(f-m)^4 = m + 3m^2`, :math:`E[(f-m)^2 f] = m + m^2`, :math:`E f^2 = m + m^2`), and covariance
:math:`E(f-m)^3 - E[(f-m) f] = m - m = 0`. Cells are independent, so

.. math:: v = \sum_k A_k^2 m_k + 2 C_k^2 m_k^2.

**Weights.** Where the chance to be drawn is not the same in all cells, :math:`\pi_k` takes the place of
:math:`\pi` in each: :math:`m_k = \pi_k \lambda_k`, :math:`c_k = (1 - \pi_k)/\pi_k`, and f stays the plain count.

References
----------
Skinner & Shlomo (2008), Assessing identification risk in survey microdata using log-linear models, Journal of the
American Statistical Association 103, 989-1001, https://doi.org/10.1198/016214507000001328
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.models.loglinear import _criteria_kernels as kernels

Expansion = Literal["published", "second-order"]
"""About the truth, read at the fit, as in the paper; or about the fit, complete to second order."""

NEAR_ZERO = 0.01
"""Where the closed forms of the derivatives of (1 - exp(-x))/x lose digits; four terms of a series have ten."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """The risk that a fit gives and what is estimated of its bias.

    Attributes
    ----------
    tau1, tau2
        The estimates.
    bias1, bias2
        Their estimated biases; positive where the model has too few terms.
    variance1, variance2
        The variances of these if the model is right.
    """

    tau1: float
    tau2: float
    bias1: float
    bias2: float
    variance1: float
    variance2: float

    @property
    def b1(self) -> float:
        """The bias of tau1 in standard deviations."""
        return standardised(self.bias1, self.variance1)

    @property
    def b2(self) -> float:
        """The bias of tau2 in standard deviations."""
        return standardised(self.bias2, self.variance2)


def criteria(
    fitted: Vector,
    occupied: IntVector,
    counts: IntVector,
    sampling_fraction: float | Vector,
    *,
    expansion: Expansion = "published",
) -> Criteria:
    r"""The criteria of a fit.

    The sums run over all cells. Those that are not given have mean zero and count zero, and nothing to add. With
    A and C at the means, empty cells and occupied cells take their parts from

    .. math:: \hat B = \sum_k (-A_k m_k + C_k m_k^2) + \sum_{f_k > 0} f_k [A_k + C_k (f_k - 1 - 2 m_k)].

    Parameters
    ----------
    fitted
        The fitted mean of each cell, on the scale of the sample.
    occupied, counts
        The places of the occupied cells among them, and their counts.
    sampling_fraction
        One for all cells, or that of each.
    """
    fraction = np.atleast_1d(sampling_fraction)
    of_occupied = fraction[occupied] if len(fraction) > 1 else fraction
    return criteria_of(fitted, None, fraction, fitted[occupied], counts, of_occupied, expansion=expansion)


def criteria_of(
    means: Vector,
    weights: Vector | None,
    fractions: Vector,
    means_of_occupied: Vector,
    counts: IntVector,
    fractions_of_occupied: Vector,
    *,
    expansion: Expansion = "published",
) -> Criteria:
    """As `criteria`, with the sum over all cells from a sample of them.

    Parameters
    ----------
    means, weights
        The fitted means of the cells of the sample, and how many cells each stands for; None if all are there.
    fractions
        The chance to be drawn in each of them, or one for all.
    means_of_occupied, fractions_of_occupied
        Those of the occupied cells, whose part is always summed in full.
    """
    bias, variance = np.zeros(2), np.zeros(2)
    w = np.ones(1) if weights is None else weights
    kernels.sum_criteria(means, w, odds_against(fractions), expansion == "second-order", bias, variance)
    here, f = means_of_occupied, counts.astype(np.float64)
    c = odds_against(fractions_of_occupied)
    for k, (A, C) in enumerate(coefficients(here, c, expansion)):
        bias[k] += f @ (A + C * (f - 1.0 - 2.0 * here))
    unique = (c * here)[counts == 1]
    tau1, tau2 = float(np.exp(-unique).sum()), float(special.exprel(-unique).sum())
    return Criteria(tau1, tau2, float(bias[0]), float(bias[1]), float(variance[0]), float(variance[1]))


def odds_against(fractions: Vector) -> Vector:
    """c, the odds against being drawn."""
    return np.asarray((1.0 - fractions) / fractions)


def coefficients(
    m: Vector, c: Vector, expansion: Expansion
) -> tuple[tuple[Vector, Vector], tuple[Vector, Vector]]:
    """A and C of cells with these means, for tau1 and for tau2."""
    gone = np.exp(-c * m)
    first, second = match_derivatives(c * m, gone)
    first *= c
    second *= c * c
    e = np.exp(-m)
    a = m * e
    e -= a
    pair = []
    for slope, bend in ((-c * gone, (c * c) * gone), (first, second)):
        bend *= a
        bend *= 0.5
        if expansion == "second-order":
            bend += e * slope
            np.negative(bend, out=bend)
        slope *= a
        pair.append((np.negative(slope, out=slope), bend))
    return pair[0], pair[1]


def match_derivatives(x: Vector, gone: Vector) -> tuple[Vector, Vector]:
    r"""The first two derivatives of :math:`g(x) = (1 - e^{-x})/x`, given :math:`e^{-x}`.

    From :math:`(x g)' = e^{-x}`: :math:`g' = (e^{-x} - g)/x` and :math:`g'' = -(e^{-x} + 2 g')/x`; near zero from
    :math:`g = \sum_n (-x)^n / (n+1)!`.

    Examples
    --------
    >>> [round(float(values[0]), 6) for values in match_derivatives(np.array([0.0]), np.array([1.0]))]
    [-0.5, 0.333333]
    """
    inverse = 1.0 / np.maximum(x, NEAR_ZERO)
    first = (gone - (1.0 - gone) * inverse) * inverse
    second = -(gone + 2.0 * first) * inverse
    near = x < NEAR_ZERO
    if near.any():
        first = np.where(near, -1 / 2 + x * (1 / 3 - x * (1 / 8 - x / 30)), first)
        second = np.where(near, 1 / 3 - x * (1 / 4 - x * (1 / 10 - x / 36)), second)
    return first, second


def standardised(bias: float, variance: float) -> float:
    """A bias in standard deviations, 0 where neither can be: a census has no risk to estimate."""
    return bias / variance**0.5 if variance > 0 else 0.0
