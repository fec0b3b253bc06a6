r"""Whether the maximum of the likelihood is reached, where no sufficient margin is empty.

The maximum likelihood estimate exists unless some direction :math:`\delta` of the effects leaves the means of all
occupied cells as they are and lowers those of others,

.. math:: x_c'\delta = 0 \text{ where } f_c > 0, \qquad x_c'\delta \le 0 \text{ everywhere, not always } 0:

the likelihood then rises for ever along it, and the cells it lowers are fitted as zero in the limit (Haberman
1974; Fienberg & Rinaldo 2012). There is none where the indicators of the occupied cells have the rank of those of
all cells. Where they have less, the directions that the occupied cells do not see are few, and a linear programme
over them decides.
"""

from typing import Literal

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linprog

from keyhole.arrays import Vector
from keyhole.inference.formula import Generators
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.information import Coding, Design

Existence = Literal["exists", "does not exist", "not known"]

MOST_INDICATORS = 2000
"""Indicators beyond which ranks are not compared: it would take longer than the fit."""

MOST_NUMBERS = 20_000_000
"""Numbers in the constraints of the linear programme beyond which it is not solved."""

UNSEEN = 1e-9
"""Share of an indicator's own size, below which occupied cells do not see a direction."""


def existence(cells: Cells, generators: Generators) -> Existence:
    """Whether the maximum is reached on the active cells, which have no empty margins."""
    design = Design(cells, generators)
    if design.parameters > MOST_INDICATORS:
        return "not known"
    everywhere = np.ones(len(cells))
    occupied = np.zeros(len(cells))
    occupied[cells.occupied] = 1.0
    chosen = np.sort(Coding.of(design.information(everywhere)).chosen)
    seen = design.information(occupied)[np.ix_(chosen, chosen)]
    hidden = _hidden_directions(seen)
    if not hidden.shape[1]:
        return "exists"
    if len(cells) * hidden.shape[1] > MOST_NUMBERS:
        return "not known"
    directions = np.zeros((design.parameters, hidden.shape[1]))
    directions[chosen] = hidden
    slopes = np.zeros((len(cells), hidden.shape[1]))
    for column in design.entries_of(np.arange(len(cells))).T:
        slopes += directions[column]
    return "does not exist" if _recedes(slopes) else "exists"


def _hidden_directions(seen: Vector) -> Vector:
    """Directions, one per column, that change no occupied cell."""
    scale = np.sqrt(np.maximum(np.diagonal(seen), 1.0))
    values, vectors = eigh(seen / np.outer(scale, scale))
    return np.asarray(vectors[:, values < UNSEEN] / scale[:, None])


def _recedes(slopes: Vector) -> bool:
    """Whether some combination of the columns is nowhere positive and somewhere negative."""
    slopes = slopes[np.abs(slopes).max(axis=1) > 1e-7]
    if not len(slopes):
        return False
    free = [(None, None)] * slopes.shape[1]
    constraints = np.vstack([slopes, -slopes])
    limits = np.concatenate([np.zeros(len(slopes)), np.ones(len(slopes))])
    found = linprog(slopes.sum(axis=0), constraints, limits, bounds=free, method="highs")
    return bool(found.status == 0 and found.fun is not None and found.fun < -1e-6)
