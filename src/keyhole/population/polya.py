"""Unsampled counts from an urn: cells that attract people in proportion to those they hold.

The law of the Ewens, Pitman and symmetric Dirichlet-multinomial superpopulations.
"""

from dataclasses import dataclass
from math import exp, expm1

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector, alike
from keyhole.numerics.log_gamma import log_rising_ratio_at


@dataclass(frozen=True, slots=True)
class PolyaUnsampled:
    r"""Dirichlet-multinomial counts of exchangeable cells, with everything else as one remainder.

    The next person joins each of the cells with probability own / total; every arrival in a cell adds 1 to
    its own mass and to the total. Marginally U is beta-binomial with m trials, a = own and b = total - own:

    .. math::

        r_1 = \frac{(b)_m}{(a + b)_m}, \qquad
        r_2 = \frac{1}{m + 1}\left[1 + b\,\frac{1 - (b + 1)_m / (a + b)_m}{a - 1}\right]

    Attributes
    ----------
    cells
        The number of sample-unique cells.
    own
        The mass of each of them: 1 - sigma for Pitman's urn.
    total
        The mass of everything, these cells included: theta + n for Pitman's urn.
    trials
        N - n, the number of unsampled people.
    """

    cells: int
    own: float
    total: float
    trials: int

    def prob_none(self) -> Vector:
        rest = self.total - self.own
        return alike(self.cells, exp(log_rising_ratio_at(rest, self.own, self.trials)))

    def mean_match(self) -> Vector:
        rest, excess = self.total - self.own, self.own - 1.0
        # The quotient is a derivative in disguise; a step this small gives its limit at own = 1 (Ewens).
        excess = excess if abs(excess) > 1e-12 else 1e-12
        quotient = -expm1(log_rising_ratio_at(rest + 1.0, excess, self.trials)) / excess
        return alike(self.cells, (1.0 + rest * quotient) / (self.trials + 1.0))

    def draw(self, rng: Generator) -> IntVector:
        if self.cells == 0 or self.trials == 0:
            return np.zeros(self.cells, dtype=np.int64)
        mass = rng.standard_gamma(self.own, self.cells)
        remainder = rng.standard_gamma(max(self.total - self.own * self.cells, 0.0))
        whole = float(mass.sum() + remainder)
        if whole == 0.0:  # every mass so small that its gamma variable vanished: one of them takes everybody
            return self._winner(rng)
        return rng.multinomial(self.trials, np.append(mass, remainder) / whole)[:-1]

    def _winner(self, rng: Generator) -> IntVector:
        counts = np.zeros(self.cells, dtype=np.int64)
        place = int(rng.random() * self.total / self.own)
        if place < self.cells:
            counts[place] = self.trials
        return counts
