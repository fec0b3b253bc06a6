r"""Exact draws of concentrations of Chinese restaurants.

With M tables and customers in restaurants of their own, :math:`L_c` of them with more than c customers, a
concentration with a Gamma(a, b) prior has the density

.. math:: p(\alpha \mid M, L) \propto \alpha^{a - 1 + M} e^{-b\alpha} \prod_{c \ge 0} (\alpha + c)^{-L_c},

and with all customers in one restaurant
:math:`\alpha^{a - 1 + M} e^{-b\alpha}\, \Gamma(\alpha)/\Gamma(\alpha + C)`. Both are log-concave in
:math:`\log\alpha`: of the first the slope there is
:math:`a + M - b\alpha - \sum_c L_c\,\alpha/(\alpha + c)`, which falls; the second is the case L = 1 for c < C.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector
from keyhole.numerics._log_concave_kernels import draw_of

_NOBODY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class GammaPrior:
    """Gamma with a shape and a rate."""

    shape: float = 2.0
    rate: float = 1.0

    def draw(self, rng: Generator) -> float:
        return float(rng.gamma(self.shape, 1.0 / self.rate))


def draw_common(prior: GammaPrior, tables: int, longer: IntVector, rng: Generator) -> float:
    """One concentration of many restaurants; ``longer`` is L_c for c = 0, 1, ..."""
    return float(draw_of((prior.shape + tables, prior.rate, 0.0, 0.0, 0.0, longer, 0), rng))


def draw_above(prior: GammaPrior, tables: int, customers: int, rng: Generator) -> float:
    """The concentration of one restaurant."""
    return float(draw_of((prior.shape + tables, prior.rate, 0.0, 0.0, 0.0, _NOBODY, customers), rng))
