"""Draws from the exact posterior of one conditional's coefficients, given its penalties: slow and obvious.

Elliptical slice sampling (Murray, Adams & MacKay 2010) around the Gaussian at the mode: proposals lie on an
ellipse through the present draw and one of that Gaussian, and the slice is of the posterior over the Gaussian.
"""

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.models.sequential.curvature import DenseCurvature
from keyhole.models.sequential.fitting import FittedConditional
from tests.models.sequential import twins


def log_p_draws(fit: FittedConditional, size: int, every: int, rng: Generator) -> Vector:
    """log p of every entry (size, entries), ``every`` steps apart."""
    data, curvature = fit.data, fit.curvature
    assert isinstance(curvature, DenseCurvature)
    X, counts = twins.design(data), twins.seen(data)
    ridge = np.repeat(fit.penalty, np.diff(data.offsets))[:, None]
    spread = curvature._inverse_factor.T

    def logs(z: Vector) -> tuple[float, Vector]:
        """log posterior over Gaussian, and log p by context and level, at standard coordinates around the mode."""
        theta = fit.coefficients + curvature._to_levels(z @ spread)
        eta = np.where(data.mask[data.node], X @ theta, -np.inf)
        log_p = eta - np.log(np.exp(eta).sum(axis=1, keepdims=True))
        likelihood = (counts * np.where(counts > 0, log_p, 0.0)).sum()
        return float(likelihood - 0.5 * (ridge * theta**2).sum() + 0.5 * z @ z), log_p

    z = np.zeros(data.parameters)
    height, log_p = logs(z)
    kept = []
    for step in range((size + size // 5) * every):
        other, floor = rng.standard_normal(data.parameters), height + np.log(rng.random())
        angle = rng.uniform(0.0, 2 * np.pi)
        low, high = angle - 2 * np.pi, angle
        while True:
            proposed = z * np.cos(angle) + other * np.sin(angle)
            height, log_p = logs(proposed)
            if height > floor:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
        z = proposed
        if step % every == 0:
            kept.append(log_p[data.context, data.level])
    return np.array(kept[-size:])
