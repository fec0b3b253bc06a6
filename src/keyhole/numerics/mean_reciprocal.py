"""The mean of 1 / (f + U) for a count U that may reach a thousand million.

The first terms are summed one by one; the rest of the sum is an integral of a smooth function, done by
Gauss-Legendre panels on a logarithmic scale.
"""

from collections.abc import Callable

import numpy as np
from scipy import optimize

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
        far, span = _panels(log_pmf, _EXACT - 0.5, largest + 0.5)
        points = np.concatenate([points, np.minimum(far, float(largest))])
        width = np.concatenate([width, span])
    logs = log_pmf(points)
    mass = width * np.exp(logs - logs.max())
    return float((mass / (added + points)).sum() / mass.sum())


def _panels(log_pmf: Callable[[Vector], Vector], start: float, end: float) -> tuple[Vector, Vector]:
    """Nodes and weights on a logarithmic scale; panels are as narrow as the peak of the probabilities."""
    low, high = float(np.log(start)), float(np.log(end))
    mode, spread = _peak(lambda x: float(log_pmf(np.exp(np.array([x])))[0]) + x, low, high)
    coarse = np.linspace(low, high, int(np.ceil((high - low) / 0.5)) + 1)
    fine = mode + spread * np.arange(-12.0, 13.0)
    edges = np.unique(np.concatenate([coarse, fine[(fine > low) & (fine < high)]]))
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    points = np.exp(middle[:, None] + half[:, None] * _NODES)
    return points.ravel(), (points * half[:, None] * _WEIGHTS).ravel()


def _peak(log_density: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """The mode of a one-peaked density and how far from it the density has fallen by a factor of about e."""
    found = optimize.minimize_scalar(
        lambda x: -log_density(x), bounds=(low, high), method="bounded", options={"xatol": 1e-9}
    )
    mode, top = float(found.x), -float(found.fun)
    spread = 0.5
    while spread > 1e-9 and _fallen(log_density, mode, top, spread, low, high) > 1:
        spread /= 2
    return mode, spread


def _fallen(
    log_density: Callable[[float], float], mode: float, top: float, step: float, low: float, high: float
) -> float:
    """How far the log-density has fallen a step away from the mode, on the flatter side inside the range."""
    sides = [x for x in (mode - step, mode + step) if low <= x <= high]
    return min((top - log_density(x) for x in sides), default=0.0)
