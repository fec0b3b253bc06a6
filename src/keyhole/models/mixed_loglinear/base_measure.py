r"""What the effect of a single cell is like before anything is seen: the law of :math:`\omega = e^\phi`.

All three laws of the literature have, at t = log omega, a log density
:math:`A t - B e^t - C e^{-t} - D (t - \mu)^2`, and a Poisson count f with mean :math:`x\omega` adds f to A and
x to B. One exact sampler and one quadrature rule serve them all.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.errors import UnknownModel
from keyhole.models.mixed_loglinear import _kernels as kernels

Base: TypeAlias = Literal["log-gamma", "normal", "inverse-gaussian"]
BASES = get_args(Base)

DEFAULTS: dict[str, tuple[float, float]] = {
    "log-gamma": (1.0, 0.1),
    "normal": (1.725, 1.645),
    "inverse-gaussian": (10.0, 10.0),
}
"""Those of the paper for the log-gamma law; the others have its mean and variance, of log omega and of omega."""


@dataclass(frozen=True)
class BaseMeasure:
    """A law of effects.

    Attributes
    ----------
    first, second
        Shape and rate of a gamma law of omega; mean and variance of a normal law of log omega; mean and shape of
        an inverse Gaussian law of omega.
    """

    kind: Base = "log-gamma"
    first: float = 1.0
    second: float = 0.1

    def __post_init__(self) -> None:
        if self.kind not in BASES:
            raise UnknownModel(f"The option base must be one of {', '.join(BASES)}, found {self.kind!r}.")
        if not self.second > 0 or (self.kind != "normal" and not self.first > 0):
            raise UnknownModel(f"The base {self.kind} needs positive parameters.")

    @cached_property
    def coefficients(self) -> tuple[float, float, float, float, float]:
        """A, B, C, D and mu."""
        a, b = self.first, self.second
        if self.kind == "log-gamma":
            return a, b, 0.0, 0.0, 0.0
        if self.kind == "normal":
            return 0.0, 0.0, 0.0, 0.5 / b, a
        return -0.5, 0.5 * b / a**2, 0.5 * b, 0.0, 0.0

    @cached_property
    def log_constant(self) -> float:
        """What the log density at t = log omega is less than its terms in A, B, C and D."""
        return float(kernels.moments(self.coefficients, 0.0, 0.0, np.zeros(0, dtype=np.int64))[0])

    def at(self, effect: Vector) -> Vector:
        """The log density of each t = log omega, its slope and minus its curvature (3, effects)."""
        A, B, C, D, centre = self.coefficients
        up, down = B * np.exp(effect), C * np.exp(-effect) if C else np.zeros(len(effect))
        away = effect - centre
        height = A * effect - up - down - D * away**2 - self.log_constant
        return np.array([height, A - up + down - 2.0 * D * away, up + down + 2.0 * D])

    def draw(self, size: int, rng: Generator) -> Vector:
        """log omega from the base."""
        return self.given(np.zeros(size, dtype=np.int64), np.zeros(size), rng)

    def given(self, counts: IntVector, exposures: Vector, rng: Generator) -> Vector:
        """log omega of cells or clusters with these counts and sums of x."""
        drawn = np.empty(len(counts))
        kernels.draw_effects(self.coefficients, counts.astype(np.float64), exposures, drawn, rng)
        return drawn
