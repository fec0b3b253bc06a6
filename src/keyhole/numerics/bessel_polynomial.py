"""Logarithms of reverse Bessel polynomials of any order, the polynomials inside Poisson-inverse-Gaussian laws."""

from functools import cache

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike

from keyhole.arrays import Vector

_SWITCH = 60
"""From this order on the expansion for large orders has converged to the last digit."""

_TERMS = 9


def log_bessel_polynomial(order: ArrayLike, z: ArrayLike) -> Vector:
    r"""Logarithm of the reverse Bessel polynomial.

    .. math::

        \theta_0 = 1, \quad \theta_1 = 1 + z, \quad \theta_n = (2n - 1)\,\theta_{n-1} + z^2\,\theta_{n-2},
        \qquad \theta_n(z) = \sqrt{2/\pi}\; z^{n + 1/2} e^z K_{n + 1/2}(z)

    The recursion has only positive terms and is used up to order 60; beyond it the uniform expansion of
    the Bessel function for large orders (Olver's) takes over, which also serves between the integers.

    Examples
    --------
    >>> round(float(np.exp(log_bessel_polynomial(2, 1.0))), 9)
    7.0
    """
    order, z = np.broadcast_arrays(np.asarray(order, dtype=float), np.asarray(z, dtype=float))
    value = np.zeros(order.shape)
    small = order < _SWITCH
    if small.any():
        value[small] = _by_recursion(order[small], z[small])
    if not small.all():
        value[~small] = _by_expansion(order[~small], z[~small])
    return value


def _by_recursion(order: Vector, z: Vector) -> Vector:
    """Ratios of successive polynomials, so that nothing overflows."""
    points, place = np.unique(z, return_inverse=True)
    total, table = np.zeros_like(points), [np.zeros_like(points)]
    ratio = 1.0 + points
    for n in range(1, int(order.max(initial=0)) + 1):
        if n > 1:
            ratio = (2 * n - 1) + points * (points / ratio)
        total = total + np.log(ratio)
        table.append(total)
    return np.asarray(np.stack(table)[order.astype(int), place])


def _by_expansion(order: Vector, z: Vector) -> Vector:
    nu = order + 0.5
    root = np.hypot(nu, z)
    p = nu / root
    series = sum(term(p) / (-nu) ** k for k, term in enumerate(_terms()))
    return np.asarray(nu * np.log(nu + root) - nu * nu / (z + root) - 0.5 * np.log(root) + np.log(series))


@cache
def _terms() -> tuple[Polynomial, ...]:
    r"""The polynomials :math:`u_k` of the expansion, from their recursion."""
    p = Polynomial([0.0, 1.0])
    terms = [Polynomial([1.0])]
    for _ in range(_TERMS):
        last = terms[-1]
        terms.append(0.5 * p**2 * (1 - p**2) * last.deriv() + ((1 - 5 * p**2) * last).integ() / 8)
    return tuple(terms)
