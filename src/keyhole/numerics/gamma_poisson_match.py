"""The mean of 1 / (f + U) for a Poisson U whose own mean is a gamma variable."""

import numpy as np

from keyhole.arrays import IntVector, Vector

_PANELS, _NODES = 64, np.polynomial.legendre.leggauss(8)
_HEAD, _TAIL = 1e-4, 45.0
"""Where the panels begin, in units of the first scale, and end, in units of the last."""


def gamma_poisson_match(added: IntVector, shape: Vector, mean: Vector) -> Vector:
    r"""E[1 / (f + U)] for U negative binomial with the given shape and mean.

    With :math:`1/(f+u) = \int_0^\infty e^{-(f+u)s}\,ds` it is

    .. math:: \int_0^\infty e^{-fs}\Bigl(1 + \frac{\mu}{\alpha}(1 - e^{-s})\Bigr)^{-\alpha} ds,

    which falls like :math:`e^{-(f+\mu)s}` at first and like :math:`e^{-fs}` in the end: Gauss-Legendre panels on a
    logarithmic scale between the two, and the beginning as a parabola.

    Parameters
    ----------
    added
        f of each cell, at least 1.

    Examples
    --------
    >>> geometric = gamma_poisson_match(np.array([1, 1]), np.array([1.0, 1.0]), np.array([1.0, 0.0]))
    >>> geometric.round(9).tolist()  # log 2, and nobody else
    [0.693147181, 1.0]
    """
    first = _HEAD / (added + mean)
    low, high = np.log(first), np.log(_TAIL / added)
    half = (high - low) / (2 * _PANELS)
    total = first * (1.0 - first * (added + mean) / 2)
    for panel in range(_PANELS):
        middle = low + (2 * panel + 1) * half
        for node, weight in zip(*_NODES, strict=True):
            s = np.exp(middle + half * node)
            fallen = added * s + shape * np.log1p(-mean / shape * np.expm1(-s))
            total += weight * half * s * np.exp(-fallen)
    return np.asarray(total)
