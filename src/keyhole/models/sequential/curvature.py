r"""The Hessian of one conditional's log posterior, and everything that is read off it.

With H the Hessian at the mode, small conditionals hold :math:`H^{-1}` (`DenseCurvature`). A key with a hundred
levels after another has ten thousand coefficients and a dense inverse would take their cube; large ones
therefore draw vectors :math:`x \sim N(0, H^{-1})` by solving :math:`H x = y` for noise :math:`y \sim N(0, H)`
with conjugate gradients (`SampledCurvature`), and every variance is a mean of squares over those draws.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.random import Generator
from scipy.linalg import lapack

from keyhole.arrays import Vector
from keyhole.errors import FitFailed
from keyhole.models.sequential import _draw_kernels as draw_kernels
from keyhole.models.sequential import _kernels as kernels
from keyhole.models.sequential.conditional import Conditional

DENSE_PARAMETERS = 2500
"""Up to here the Hessian is inverted: 50 MB and half a second."""

SINGLE_PRECISION = 3e-6
"""The least ridge, as a share of the largest curvature, that single precision (its unit is 6e-8) keeps to 1%."""

PROBES, TRACE_PROBES = 96, 16
"""Draws behind the variances of a large conditional, a standard error of 15% of each, and behind its traces."""

TOLERANCE, DRAW_TOLERANCE, MOST_STEPS = 1e-4, 1e-2, 200
"""Relative residual of steps, of draws, and number of steps at which conjugate gradients stop."""


LARGEST_PRECONDITIONER = 40_000_000
"""Numbers in the blocks of the preconditioner, 320 MB; beyond, its diagonal alone is used."""


class Curvature(Protocol):
    """What fitting and risk ask of the Hessian; vectors are in level space, (R, L), rows summing to zero."""

    @property
    def solved(self) -> bool:
        """Whether every system of equations was solved as exactly as it should be."""

    def with_penalty(self, penalty: Vector) -> "Curvature":
        """The same information with another ridge."""

    def solve(self, slope: Vector) -> Vector:
        """H^-1 times a gradient."""

    def traces(self) -> Vector:
        """The trace of H^-1 over the rows of each block."""

    def mean_shift(self) -> Vector:
        """Posterior mean minus mode of the coefficients, to second order."""

    def moments(self, shift: Vector) -> Vector:
        """For each entry log p, its posterior bias, its variance, and what leaving one record out takes away."""

    def draws(self, size: int, rng: Generator) -> Vector:
        """Vectors (size, R, L) from N(0, H^-1)."""


def curvature_at(
    data: Conditional, theta: Vector, penalty: Vector, rng: Generator, *, last: bool = False
) -> Curvature:
    """The Hessian at coefficients ``theta`` with a ridge ``penalty`` for each row.

    The last one of a fit never gets another ridge, so its information need not be kept.
    """
    if data.parameters <= DENSE_PARAMETERS:
        return DenseCurvature(data, theta, penalty, last)
    return SampledCurvature(data, theta, penalty, int(rng.integers(2**63)))


@dataclass(frozen=True, eq=False)
class DenseCurvature:
    """The inverse Hessian in full, in contrasts of the levels."""

    data: Conditional
    theta: Vector
    penalty: Vector
    last: bool = False

    @cached_property
    def _information(self) -> Vector:
        """The lower triangle of the Fisher information."""
        data = self.data
        found = np.zeros((data.parameters, data.parameters))
        kernels.information(*data.layout, data.records, self.theta, data.contrast, found)
        return found

    @property
    def solved(self) -> bool:
        return True

    def with_penalty(self, penalty: Vector) -> "DenseCurvature":
        other = replace(self, penalty=penalty)
        other.__dict__["_information"] = self._information
        return other

    @cached_property
    def _factor(self) -> Vector:
        """U with H = U'U; in single precision while penalties are still looked for, where that keeps them."""
        if not self.last and self._single_is_enough:
            factor, failed = lapack.spotrf(self._hessian(np.float32), lower=0, overwrite_a=1)
            if not failed:
                return np.asarray(factor)
        factor, failed = lapack.dpotrf(self._hessian(np.float64), lower=0, overwrite_a=1)
        if failed:
            raise FitFailed(
                f"The curvature of the logit of key {self.data.key + 1} is not positive: it cannot be fitted."
            )
        return np.asarray(factor)

    @property
    def _single_is_enough(self) -> bool:
        """Whether the smallest ridge is well above what single precision rounds off the largest curvature."""
        return bool(self._information.diagonal().max() * SINGLE_PRECISION < self.penalty[1:].min(initial=np.inf))

    def _hessian(self, precision: type[np.floating]) -> Vector:
        """Its lower triangle by rows is its upper triangle by columns, as LAPACK counts."""
        information = self.__dict__.pop("_information", self._information) if self.last else self._information
        hessian = information.astype(precision, copy=not self.last)
        hessian[np.diag_indices_from(hessian)] += np.repeat(self.penalty, self.data.levels - 1)
        return hessian.T

    @cached_property
    def _inverse_factor(self) -> Vector:
        # LAPACK leaves the zeros below the diagonal of the factor where they are; likewise below.
        invert = lapack.strtri if self._factor.dtype == np.float32 else lapack.dtrtri
        return np.asarray(invert(self._factor, lower=0)[0])

    @cached_property
    def covariance(self) -> Vector:
        upper = np.asarray(lapack.dlauum(self._inverse_factor, lower=0)[0])
        whole = upper + upper.T
        whole[np.diag_indices_from(whole)] /= 2.0
        return np.ascontiguousarray(whole)

    def _to_levels(self, coordinates: Vector) -> Vector:
        data = self.data
        shaped = coordinates.reshape(*coordinates.shape[:-1], data.rows, data.levels - 1)
        return np.ascontiguousarray(shaped @ data.contrast.T)

    def solve(self, slope: Vector) -> Vector:
        solve = lapack.spotrs if self._factor.dtype == np.float32 else lapack.dpotrs
        coordinates, _ = solve(self._factor, (slope @ self.data.contrast).ravel(), lower=0)
        return self._to_levels(np.asarray(coordinates, dtype=np.float64))

    def traces(self) -> Vector:
        variance = (self._inverse_factor**2).sum(axis=1, dtype=np.float64)
        starts = self.data.offsets[:-1] * (self.data.levels - 1)
        return np.asarray(np.add.reduceat(variance, starts))

    def mean_shift(self) -> Vector:
        data = self.data
        slope = np.zeros_like(self.theta)
        kernels.bend(*data.layout, data.records, self.theta, data.contrast, self.covariance, slope)
        return -self.solve(slope)

    def moments(self, shift: Vector) -> Vector:
        data = self.data
        where = data.context, data.level, data.weight
        found: Vector = kernels.moments(*data.layout, *where, self.theta, data.contrast, self.covariance, shift)
        self.__dict__.pop("covariance", None)
        return found

    def draws(self, size: int, rng: Generator) -> Vector:
        # H = U'U, so U^-1 z has the variance H^-1.
        normal = rng.standard_normal((size, self.data.parameters))
        return self._to_levels(normal @ self._inverse_factor.T)


@dataclass(frozen=True, eq=False)
class SampledCurvature:
    """The Hessian as a product with vectors, and draws from the Gaussian it stands for."""

    data: Conditional
    theta: Vector
    penalty: Vector
    seed: int
    _residuals: list[float] = field(default_factory=list, repr=False)

    @property
    def solved(self) -> bool:
        return max(self._residuals, default=0.0) <= 1.0

    def with_penalty(self, penalty: Vector) -> "SampledCurvature":
        return replace(self, penalty=penalty)

    @cached_property
    def _preconditioner(self) -> Vector:
        data = self.data
        by_level = np.zeros((data.rows, data.levels, data.levels))
        draw_kernels.diagonal_information(*data.layout, data.records, self.theta, by_level)
        blocks = data.contrast.T @ by_level @ data.contrast
        blocks += self.penalty[:, None, None] * np.eye(data.levels - 1)
        return np.asarray(data.contrast @ np.linalg.inv(blocks) @ data.contrast.T)

    @cached_property
    def _counts(self) -> Vector:
        """Records by parameter row and level: nearly the diagonal of the information."""
        data = self.data
        counts = np.zeros((data.rows, data.levels))
        for rows in data.feature[data.context].T:
            np.add.at(counts, (rows, data.level), data.weight)
        return counts

    def _preconditioned(self, vectors: Vector) -> Vector:
        data = self.data
        if data.rows * data.levels**2 > LARGEST_PRECONDITIONER:
            scaled = vectors / (self._counts + self.penalty[:, None] + 1.0 / data.levels)
            return np.asarray(scaled - scaled.mean(axis=2, keepdims=True))
        # Row by row a product of matrices, which BLAS does; the blocks are symmetric.
        by_row = np.ascontiguousarray(vectors.transpose(1, 0, 2)) @ self._preconditioner
        return np.ascontiguousarray(by_row.transpose(1, 0, 2))

    def _times(self, vectors: Vector) -> Vector:
        data = self.data
        product = self.penalty[:, None] * vectors
        draw_kernels.information_times(*data.layout, data.records, self.theta, vectors, product)
        return product

    def _solve_all(self, right: Vector, tolerance: float) -> Vector:
        """Conjugate gradients for several right-hand sides (S, R, L) at once."""
        solution = np.zeros_like(right)
        residual = right.copy()
        goal = tolerance**2 * np.einsum("src,src->s", right, right)
        ahead = self._preconditioned(residual)
        direction = ahead.copy()
        energy = np.einsum("src,src->s", residual, ahead)
        for _ in range(MOST_STEPS):
            product = self._times(direction)
            step = energy / np.maximum(np.einsum("src,src->s", direction, product), 1e-300)
            solution += step[:, None, None] * direction
            residual -= step[:, None, None] * product
            left = np.einsum("src,src->s", residual, residual)
            if (left <= goal).all():
                break
            ahead = self._preconditioned(residual)
            energy, before = np.einsum("src,src->s", residual, ahead), energy
            direction = ahead + (energy / np.maximum(before, 1e-300))[:, None, None] * direction
        self._residuals.append(float(np.sqrt((left / np.maximum(goal, 1e-300)).max())))
        return solution

    def solve(self, slope: Vector) -> Vector:
        return np.asarray(self._solve_all(slope[None], TOLERANCE)[0])

    @cached_property
    def _probes(self) -> Vector:
        return self.draws(PROBES, np.random.default_rng((self.seed, 0)))

    def traces(self) -> Vector:
        variance = (self.draws(TRACE_PROBES, np.random.default_rng((self.seed, 1))) ** 2).mean(axis=0).sum(axis=1)
        return np.asarray(np.add.reduceat(variance, self.data.offsets[:-1]))

    def mean_shift(self) -> Vector:
        data = self.data
        slope = np.zeros_like(self.theta)
        draw_kernels.bend_of_draws(*data.layout, data.records, self.theta, self._probes, slope)
        return -self.solve(slope)

    def moments(self, shift: Vector) -> Vector:
        data = self.data
        where = data.context, data.level, data.weight
        found: Vector = draw_kernels.moments_of_draws(*data.layout, *where, self.theta, self._probes, shift)
        return found

    def draws(self, size: int, rng: Generator) -> Vector:
        data = self.data
        noise = rng.standard_normal((size, data.rows, data.levels - 1)) @ data.contrast.T
        noise *= np.sqrt(self.penalty)[:, None]
        draw_kernels.score_noise(*data.layout, data.records, self.theta, rng, noise)
        return self._solve_all(noise, DRAW_TOLERANCE)
