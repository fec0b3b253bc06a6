r"""Effects and weights of clusters, moved with the cells summed over.

.. math:: \prod_k \sum_c w_c\,\omega_c^{f_k} e^{-x_k\omega_c}

Many laws of effects explain the same counts about as well. Given which cell is where, effects and weights take
steps of the size that so many cells allow, and would need thousands of them from one such law to the next. Cells
of the same count and x are alike, and the sum over cells of a count is that over a few hundred values of log x:
a step costs the same however many cells there are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import IntVector, Vector
from keyhole.models.mixed_loglinear import _pair_kernels as kernels
from keyhole.models.mixed_loglinear.base_measure import BaseMeasure

EVALUATIONS, PER_CELL = 50_000, 0.25
"""Of a group of cells, for all steps of a sweep: at least so many, and so many for each cell."""

FEWEST, MOST = 20, 1000
"""Steps of a sweep."""


@dataclass(frozen=True, eq=False)
class SummedCells:
    """Numbers of cells by count and x."""

    people: Vector
    x: Vector
    cells: Vector

    @classmethod
    def of(cls, counts: IntVector, x: Vector, z: NDArray[np.int32], common: int) -> "SummedCells":
        """The cells of the first clusters, of which there are ``common``."""
        exposed = x[x > 0.0]
        if not len(exposed):
            return cls(exposed, exposed, exposed)
        lowest, highest = np.log(exposed.min()), np.log(exposed.max())
        if highest == lowest:
            people, cells = np.unique(counts[(z < common) & (x > 0.0)], return_counts=True)
            return cls(people.astype(np.float64), np.full(len(people), exposed[0]), cells.astype(np.float64))
        lowest -= kernels.SPACING
        row = np.zeros((kernels.TABLED + 1, int((highest - lowest) / kernels.SPACING) + 4))
        others = np.empty(np.count_nonzero(counts > kernels.TABLED), dtype=np.int64)
        others = others[: kernels.share_out(counts, x, z, common, lowest, row, others)]
        people, place = np.nonzero(row)
        return cls(
            np.append(people, counts[others]).astype(np.float64),
            np.append(np.exp(lowest + kernels.SPACING * place), x[others]),
            np.append(row[people, place], np.ones(len(others))),
        )

    def moved(
        self, effect: Vector, weight: Vector, least: float, base: BaseMeasure, rng: Generator
    ) -> tuple[Vector, Vector]:
        """Effects and weights after some steps; all weight together stays, and none gets below ``least``."""
        effect, weight = effect.copy(), weight.copy()
        evaluations = max(EVALUATIONS, PER_CELL * self.cells.sum())
        tries = int(np.clip(evaluations / max(len(self.people), 1), FEWEST, MOST))
        kernels.move_pairs(
            tries,
            self.people,
            self.x,
            self.cells,
            effect,
            weight,
            least,
            base.coefficients,
            base.log_constant,
            rng,
        )
        return effect, weight
