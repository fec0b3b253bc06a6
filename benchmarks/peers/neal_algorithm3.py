"""Neal's (2000) algorithm 3 for Poisson counts with a gamma base, which Carota et al. use: cells one by one.

Kept as the reference for speed. Totals of clusters are carried from cell to cell, so a cell costs as much as there
are clusters: ``reseat`` in NumPy, ``reseat_compiled`` the same loop compiled.
"""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.random import Generator
from scipy.special import gammaln

from keyhole.arrays import IntVector, Vector


@dataclass
class Seats:
    """The cluster of each cell, and of each cluster its cells, its people and what is expected of it."""

    z: IntVector
    cells: Vector
    held: Vector
    exposed: Vector

    @classmethod
    def of(cls, z: IntVector, counts: IntVector, x: Vector, room: int) -> "Seats":
        return cls(z.copy(), *(np.bincount(z, by, room) for by in (np.ones(len(z)), counts, x)))


def reseat(
    seats: Seats, counts: IntVector, x: Vector, base: tuple[float, float], mass: float, rng: Generator
) -> None:
    """Give the first ``len(x)`` cells a cluster each, given all the others."""
    for k in range(len(x)):
        f, own = counts[k], seats.z[k]
        _add(seats, own, -1.0, f, x[k])
        used = np.flatnonzero(seats.cells)
        shape = base[0] + np.append(seats.held[used], 0.0)
        rate = base[1] + np.append(seats.exposed[used], 0.0)
        log = gammaln(shape + f) - gammaln(shape) + shape * np.log(rate) - (shape + f) * np.log(rate + x[k])
        log += np.log(np.append(seats.cells[used], mass))
        weight = np.exp(log - log.max()).cumsum()
        chosen = int(np.searchsorted(weight, rng.random() * weight[-1], side="right"))
        seats.z[k] = used[chosen] if chosen < len(used) else int(np.argmin(seats.cells))
        _add(seats, seats.z[k], 1.0, f, x[k])


def _add(seats: Seats, cluster: int, sign: float, f: int, x: float) -> None:
    seats.cells[cluster] += sign
    seats.held[cluster] += sign * f
    seats.exposed[cluster] += sign * x


@njit(nogil=True, cache=True, error_model="numpy")
def reseat_compiled(z, cells, held, exposed, counts, x, base, mass, rng):  # type: ignore[no-untyped-def]
    """As ``reseat``, for all cells."""
    weight = np.empty(cells.size + 1)
    for k in range(x.size):
        f, own = counts[k], z[k]
        cells[own] -= 1
        held[own] -= f
        exposed[own] -= x[k]
        top, free = -math.inf, -1
        for c in range(cells.size + 1):
            at = c < cells.size
            if at and cells[c] == 0:
                free, weight[c] = c, -math.inf
                continue
            shape = base[0] + (held[c] if at else 0.0)
            rate = base[1] + (exposed[c] if at else 0.0)
            weight[c] = math.log(cells[c] if at else mass) + shape * math.log(rate)
            weight[c] -= (shape + f) * math.log(rate + x[k])
            if f > 0:
                weight[c] += math.lgamma(shape + f) - math.lgamma(shape)
            top = max(top, weight[c])
        total = 0.0
        for c in range(weight.size):
            weight[c] = math.exp(weight[c] - top)
            total += weight[c]
        y, c = rng.random() * total, 0
        while c < cells.size and y >= weight[c]:
            y -= weight[c]
            c += 1
        c = free if c == cells.size else c
        z[k] = c
        cells[c] += 1
        held[c] += f
        exposed[c] += x[k]
