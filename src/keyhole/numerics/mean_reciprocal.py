"""The mean of 1 / (f + U) for a count U that may reach a thousand million.

The first terms are summed one by one; the rest of the sum is an integral of a smooth function, done by
Gauss-Legendre panels on a logarithmic scale.
"""

from collections.abc import Callable

import numpy as np

from keyhole.arrays import Vector

_EXACT = 1024
"""Terms summed one by one."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def mean_reciprocal(log_pmf: Callable[[Vector], Vector], added: int, largest: int) -> float:
    r"""E[1 / (f + U)] for U on 0, ..., ``largest`` with the given log-probabilities.

    .. math:: \sum_{u < u_0} \frac{p(u)}{f + u} + \int_{u_0 - 1/2}^{M + 1/2} \frac{p(u)}{f + u}\,du

    The probabilities are normalised by the same rule, so a common factor cancels.

    Parameters
    ----------
    log_pmf
        The log-probability at each given u, defined between the integers too.
    added
        f, at least 1.
    largest
        The largest possible U.
    """
    points = np.arange(min(_EXACT, largest + 1), dtype=float)
    width = np.ones_like(points)
    if largest >= _EXACT:
        far, span = _panels(_EXACT - 0.5, largest + 0.5, added)
        points = np.concatenate([points, np.minimum(far, float(largest))])
        width = np.concatenate([width, span])
    logs = log_pmf(points)
    mass = width * np.exp(logs - logs.max())
    return float((mass / (added + points)).sum() / mass.sum())


def _panels(start: float, end: float, added: int) -> tuple[Vector, Vector]:
    """Nodes and weights; panels are narrow against the spread of U, which is about U / sqrt(f)."""
    count = int(np.ceil(np.log(end / start) / min(0.5, 1.5 / np.sqrt(added))))
    edges = np.linspace(np.log(start), np.log(end), max(count, 1) + 1)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    points = np.exp(middle[:, None] + half[:, None] * _NODES)
    return points.ravel(), (points * half[:, None] * _WEIGHTS).ravel()
