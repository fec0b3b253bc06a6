r"""The law of a count whose cell has an effect of its own, with the effect integrated out.

.. math:: q(f \mid x) = \int \frac{(x\omega)^f e^{-x\omega}}{f!}\,dG_0(\omega), \qquad
    \frac{d \log q}{d \log x} = f - x\,E(\omega \mid f), \qquad
    -\frac{d^2 \log q}{d (\log x)^2} = x\,E(\omega \mid f) - x^2\,V(\omega \mid f)

Closed for a gamma base. For the others quadrature: one sum for each occupied cell, and for the empty ones, which
are many but have one variable only, a spline through sums on a grid.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline

from keyhole.arrays import IntVector, Vector
from keyhole.models.mixed_loglinear import _kernels as kernels
from keyhole.models.mixed_loglinear.base_measure import BaseMeasure

LOWEST, HIGHEST, SPACING = -40.0, 25.0, 0.05
"""Of the grid of log x; below, an empty cell says nothing, and above there is none."""


@dataclass(frozen=True, eq=False)
class Predictive:
    """The law under one base."""

    base: BaseMeasure

    def at(self, counts: IntVector, log_x: Vector) -> tuple[Vector, Vector, Vector]:
        """log q but for what depends on the count alone, its slope and minus its curvature in log x, by cell."""
        log_q, slope, curvature = found = np.empty((3, len(log_x)))
        if self.base.kind == "log-gamma":
            kernels.gamma_law(self.base.first, self.base.second, counts, log_x, HIGHEST, found)
            return log_q, slope, curvature
        x = np.exp(np.minimum(log_x, HIGHEST))
        empty, full = np.flatnonzero(counts == 0), np.flatnonzero(counts)
        place = np.clip(log_x[empty], LOWEST, HIGHEST)
        for order, values in enumerate((log_q, slope, curvature)):
            values[empty] = self._of_empty(place, order)
        curvature[empty] *= -1.0
        found = np.empty((3, len(full)))
        f = counts[full].astype(np.float64)
        kernels.all_moments(self.base.coefficients, f, x[full], found)
        log_q[full] = found[0] + f * log_x[full]
        slope[full] = f - x[full] * found[1]
        curvature[full] = x[full] * found[1] - x[full] ** 2 * found[2]
        return log_q, slope, curvature

    @cached_property
    def _of_empty(self) -> CubicSpline:
        grid = np.arange(LOWEST, HIGHEST + SPACING, SPACING)
        found = np.empty((3, len(grid)))
        kernels.all_moments(self.base.coefficients, np.zeros(len(grid)), np.exp(grid), found)
        return CubicSpline(grid, found[0])
