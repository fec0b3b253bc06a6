"""Where a likelihood of one or two parameters peaks, and draws of the parameters around the peak.

The peak is the maximum of the likelihood inside a box. Draws are importance-resampled from the likelihood
times a prior density on the working scale, so skewness and the edges of the box are respected.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import optimize

from keyhole.arrays import Vector

Points: TypeAlias = NDArray[np.float64]
"""One row per point, one column per working parameter."""

LogLikelihood: TypeAlias = Callable[[Points], Vector]
"""The log-likelihood, or a log-density, at each row of points."""

_TAIL = 5
"""Degrees of freedom of the Student proposal: heavier tails than any likelihood met here."""

_WIDEST = 4.0
"""A direction in which the likelihood is flatter than this is explored no further per round."""


@dataclass(frozen=True)
class Peak:
    """The maximum of a likelihood and its shape.

    Attributes
    ----------
    working
        The maximising point on the working scale.
    value
        The log-likelihood there.
    information
        Minus the second derivatives: the observed information on the working scale.
    at_lower, at_upper
        Whether each parameter ended at an edge of the box, so that no inner maximum was found.
    """

    working: Vector
    value: float
    information: Points
    at_lower: tuple[bool, ...]
    at_upper: tuple[bool, ...]

    @property
    def curved(self) -> bool:
        """Whether the likelihood falls in every direction, so that standard errors exist."""
        return bool(np.linalg.eigvalsh(self.information)[0] > 1e-6)


@dataclass(frozen=True)
class Drawn:
    """Draws of the working parameters and how good the proposal behind them was, from 0 to 1."""

    working: Points
    efficiency: float
    proposals: int


def find_peak(log_likelihood: LogLikelihood, lower: Vector, upper: Vector) -> Peak | None:
    """The maximum inside the box: the best points of a coarse grid, polished; None if nowhere finite."""
    grid = _grid(lower, upper)
    values = log_likelihood(grid)
    if not np.isfinite(values).any():
        return None
    values = np.where(np.isfinite(values), values, -np.inf)
    best = grid[np.argmax(values)]

    # Values are taken relative to the start: the optimiser's tolerance would else be a share of a huge number.
    offset = float(values.max())

    def objective(point: Vector) -> tuple[float, Vector]:
        value, slope = _value_and_slope(log_likelihood, point, lower, upper)
        return (offset - value, -slope) if np.isfinite(value) else (1e100, np.zeros_like(slope))

    point, value = best, offset
    for _ in range(2):  # from where the first search stopped, in case its line search gave up early
        found = optimize.minimize(
            objective, point, method="L-BFGS-B", jac=True, bounds=optimize.Bounds(lower, upper)
        )
        if offset - float(found.fun) >= value:
            point, value = np.clip(np.asarray(found.x, dtype=np.float64), lower, upper), offset - float(found.fun)
    margin = 1e-3 * (upper - lower)
    return Peak(
        point,
        value,
        observed_information(log_likelihood, point, lower, upper),
        tuple(bool(edge) for edge in point <= lower + margin),
        tuple(bool(edge) for edge in point >= upper - margin),
    )


def observed_information(log_likelihood: LogLikelihood, point: Vector, lower: Vector, upper: Vector) -> Points:
    """Minus the second derivatives by central differences over about a third of a standard error."""
    step = np.full(len(point), 1e-3)
    for _ in range(2):
        information = _second_differences(log_likelihood, _inside(point, step, lower, upper), step)
        diagonal = np.maximum(np.diag(information), 1e-4)
        step = np.minimum(0.3 / np.sqrt(diagonal), 0.05 * (upper - lower))
    return _second_differences(log_likelihood, _inside(point, step, lower, upper), step)


def draw_parameters(
    log_posterior: LogLikelihood, peak: Peak, lower: Vector, upper: Vector, draws: int, rng: Generator
) -> Drawn:
    """Draws from the likelihood times a prior on the box.

    Student proposals at the peak are weighted by that product; where that serves badly (an edge, strong
    skewness) the proposal is moved to the weighted mean and spread of its own draws and tried again.
    """
    centre, spread = peak.working, _spread(peak.information)
    proposals = 8 * draws
    for _ in range(4):
        root = np.linalg.cholesky(spread)
        normal = rng.standard_normal((proposals, len(centre)))
        scale = np.sqrt(_TAIL / rng.chisquare(_TAIL, (proposals, 1)))
        offset = normal * scale
        points = centre + offset @ root.T
        inside = np.all((points >= lower) & (points <= upper), axis=1)
        logs = np.full(proposals, -np.inf)
        logs[inside] = log_posterior(points[inside])
        logs += 0.5 * (_TAIL + len(centre)) * np.log1p((offset**2).sum(axis=1) / _TAIL)
        logs = np.where(np.isfinite(logs), logs, -np.inf)
        weight = np.exp(logs - logs.max())
        weight /= weight.sum()
        efficiency = 1.0 / (proposals * float(weight @ weight))
        if efficiency > 0.4:
            break
        centre = weight @ points
        deviation = points - centre
        spread = 1.1 * (deviation * weight[:, None]).T @ deviation + 1e-14 * np.eye(len(centre))
    # Systematic resampling: each point is kept as often as its weight says, give or take one.
    place = (rng.random() + np.arange(draws)) / draws
    kept = np.minimum(np.searchsorted(np.cumsum(weight), place), proposals - 1)
    return Drawn(rng.permutation(points[kept]), efficiency, proposals)


def _grid(lower: Vector, upper: Vector) -> Points:
    points = 101 if len(lower) == 1 else 25
    axes = [np.linspace(low, high, points) for low, high in zip(lower, upper, strict=True)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def _value_and_slope(
    log_likelihood: LogLikelihood, point: Vector, lower: Vector, upper: Vector
) -> tuple[float, Vector]:
    """The log-likelihood and its gradient by central differences, one-sided at the edges, in one call."""
    step = 1e-4 * np.eye(len(point))
    ahead, behind = np.minimum(point + step, upper), np.maximum(point - step, lower)
    values = log_likelihood(np.vstack([point[None, :], ahead, behind]))
    rise = values[1 : len(point) + 1] - values[len(point) + 1 :]
    return float(values[0]), np.nan_to_num(rise / (np.diag(ahead) - np.diag(behind)))


def _inside(point: Vector, step: Vector, lower: Vector, upper: Vector) -> Vector:
    return np.clip(point, lower + step, upper - step)


def _second_differences(log_likelihood: LogLikelihood, point: Vector, step: Vector) -> Points:
    size = len(point)
    moves = [(i, j, a, b) for i in range(size) for j in range(size) for a in (1, -1) for b in (1, -1)]
    unit = np.diag(step)
    stencil = np.array([point + 0.5 * (a * unit[i] + b * unit[j]) for i, j, a, b in moves])
    values = log_likelihood(stencil)
    information = np.zeros((size, size))
    for (i, j, a, b), value in zip(moves, values, strict=True):
        information[i, j] -= a * b * value / (step[i] * step[j])
    return information


def _spread(information: Points) -> Points:
    """The inverse information, with flat or rising directions given a wide but finite spread."""
    values, vectors = np.linalg.eigh(information)
    return np.asarray((vectors / np.maximum(values, _WIDEST**-2)) @ vectors.T)


def flat_in_spread(log_dispersion: Vector) -> Vector:
    r"""Log-density of a log-dispersion that makes near-equality one point, not an endless half-line.

    .. math:: \tfrac12 \log\frac{b}{1 + b}

    Near b = 0 the likelihood of a mixture tends to that of equal rates, a positive constant: a density flat in
    log b would have infinite mass there. This one is flat in :math:`\sqrt b`, the spread of the rates, as is
    usual for the standard deviation of a random effect, and flat in log b where b is large.
    """
    return np.asarray(0.5 * (log_dispersion - np.logaddexp(0.0, log_dispersion)))
