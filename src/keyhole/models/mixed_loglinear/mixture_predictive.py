r"""The law of a count whose cell is in one of some clusters, summed over which one it is.

.. math:: q(f \mid x) \propto x^f \sum_c w_c\,\omega_c^f e^{-x\omega_c}

Fixed effects that move with this law take the clusters along: given who is where they could hardly move.
For the smallest counts, which nearly all cells have, the sums come from a table in log x.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import IntVector, Vector
from keyhole.models.mixed_loglinear import _mixture_kernels as kernels

LOWEST, HIGHEST = -25.0, 12.0
"""Of the table at most; beyond it sums are worked out for each cell."""


@dataclass(frozen=True, eq=False)
class MixturePredictive:
    """The law under given clusters.

    Attributes
    ----------
    effect, weight
        Of the clusters that are summed over.
    between
        The values of log x that the table is made for; they must not depend on where a chain is.
    """

    effect: Vector
    weight: Vector
    between: tuple[float, float]

    def at(self, counts: IntVector, log_x: Vector, z: NDArray[np.int32], own: Vector, level: float) -> Vector:
        """Log likelihood, slope and minus curvature in log x by cell (3, K).

        A cell with one of the first clusters is summed over those; others have ``own`` of their cluster z, and no
        part in the level that log_x has for all.
        """
        found = np.empty((3, len(log_x)))
        kernels.law_of_cells(
            counts, log_x, z, own, level, self.effect, self._log_weight, self._lowest, self._table, found
        )
        return found

    @cached_property
    def _log_weight(self) -> Vector:
        return np.asarray(np.log(self.weight))

    @property
    def _lowest(self) -> float:
        return max(self.between[0], LOWEST)

    @cached_property
    def _table(self) -> Vector:
        places = max(int((min(self.between[1], HIGHEST) - self._lowest) / kernels.SPACING) + 2, 2)
        table = np.zeros((kernels.TABLED + 1, places, 3))
        if len(self.effect):
            kernels.fill_table(self._lowest, self.effect, self._log_weight, table)
        return table
