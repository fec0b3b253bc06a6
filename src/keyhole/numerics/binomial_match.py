"""The mean of 1 / (f + U) for a binomial or a Poisson U."""

from collections.abc import Callable

import numpy as np

from keyhole.arrays import IntVector, Vector

_NODES, _WEIGHTS = np.polynomial.laguerre.laggauss(32)


def binomial_match(added: IntVector, trials: int, probability: Vector) -> Vector:
    r"""E[1 / (f + U)] for U binomial.

    With :math:`1/(f+u) = \int_0^\infty e^{-(f+u)s}\,ds` it is
    :math:`\int_0^\infty e^{-fs}(1 - p(1 - e^{-s}))^m\,ds`, which falls like :math:`e^{-(f+mp)s}` at first:
    Gauss-Laguerre nodes on that scale.

    Parameters
    ----------
    added
        f of each cell, at least 1.
    trials
        m.

    Examples
    --------
    >>> binomial_match(np.array([1, 2]), 1, np.array([0.5, 0.5])).round(9).tolist()
    [0.75, 0.416666667]
    """
    return _match(
        added + trials * probability,
        lambda step: trials * (np.log1p(probability * np.expm1(-step)) + probability * step),
    )


def poisson_match(added: IntVector, mean: Vector) -> Vector:
    """E[1 / (f + U)] for U Poisson: the limit of many trials.

    Examples
    --------
    >>> poisson_match(np.array([1, 2]), np.array([1.0, 1.0])).round(9).tolist()
    [0.632120559, 0.367879441]
    """
    return _match(added + mean, lambda step: mean * (np.expm1(-step) + step))


def _match(rate: Vector, log_left: Callable[[Vector], Vector]) -> Vector:
    """The integral over s of exp(-rate s + log_left(s))."""
    total = np.zeros(len(rate))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += np.exp(np.log(weight) + log_left(node / rate))
    return np.asarray(total / rate)
