"""The kernels again, slowly: a dense design matrix, matrices of whole contexts, no loop over blocks."""

import numpy as np

from keyhole.arrays import Vector
from keyhole.models.sequential.conditional import Conditional


def design(data: Conditional) -> Vector:
    """(C, R): which rows each context uses."""
    X = np.zeros((len(data.contexts), data.rows))
    for i, rows in enumerate(data.feature):
        for row in rows:
            X[i, row] += 1
    return X


def probabilities(data: Conditional, theta: Vector) -> Vector:
    """(C, L): the law of the levels in each context."""
    odds = np.exp(design(data) @ theta) * data.mask[data.node]
    return odds / odds.sum(axis=1, keepdims=True)


def seen(data: Conditional) -> Vector:
    """(C, L): records of each context by level."""
    counts = np.zeros((len(data.contexts), data.levels))
    for i in range(len(data.contexts)):
        for e in range(data.start[i], data.start[i + 1]):
            counts[i, data.level[e]] += data.weight[e]
    return counts


def log_likelihood(data: Conditional, theta: Vector) -> float:
    counts = seen(data)
    logs = np.log(np.where(counts > 0, probabilities(data, theta), 1.0))
    return float((counts * logs).sum())


def gradient(data: Conditional, theta: Vector) -> Vector:
    counts = seen(data)
    residual = counts - counts.sum(axis=1, keepdims=True) * probabilities(data, theta)
    return design(data).T @ residual


def level_information(p: Vector) -> Vector:
    return np.diag(p) - np.outer(p, p)


def information(data: Conditional, theta: Vector) -> Vector:
    """(R L, R L) in level space, by a Kronecker product for each context."""
    size = data.rows * data.levels
    total = np.zeros((size, size))
    for x, p, n in zip(design(data), probabilities(data, theta), data.records, strict=True):
        total += n * np.kron(np.outer(x, x), level_information(p))
    return total


def to_contrasts(data: Conditional, matrix: Vector) -> Vector:
    """A matrix in level space, in contrasts."""
    T = np.kron(np.eye(data.rows), data.contrast)
    return T.T @ matrix @ T


def to_levels(data: Conditional, covariance: Vector) -> Vector:
    """A covariance of contrasts, in level space."""
    T = np.kron(np.eye(data.rows), data.contrast)
    return T @ covariance @ T.T


def predictor_covariances(data: Conditional, levels_covariance: Vector) -> Vector:
    """(C, L, L): the covariance of the linear predictors of each context."""
    found = []
    for x in design(data):
        P = np.kron(x[None, :], np.eye(data.levels))
        found.append(P @ levels_covariance @ P.T)
    return np.array(found)


def half_trace(data: Conditional, theta: Vector, spread: Vector) -> float:
    """sum_i n_i tr(F_i S_i) / 2, whose gradient is the bend."""
    return sum(
        0.5 * n * float(np.trace(level_information(p) @ S))
        for p, n, S in zip(probabilities(data, theta), data.records, spread, strict=True)
    )


def bend(data: Conditional, theta: Vector, spread: Vector, step: float = 1e-5) -> Vector:
    """By central differences."""
    slope = np.zeros_like(theta)
    for place in np.ndindex(theta.shape):
        move = np.zeros_like(theta)
        move[place] = step
        slope[place] = (half_trace(data, theta + move, spread) - half_trace(data, theta - move, spread)) / (
            2 * step
        )
    return slope


def moments(data: Conditional, theta: Vector, levels_covariance: Vector, shift: Vector) -> Vector:
    """The four columns, the last by the inverse of the whole Hessian without one record."""
    p = probabilities(data, theta)
    spread = predictor_covariances(data, levels_covariance)
    X = design(data)
    T = np.kron(np.eye(data.rows), data.contrast)
    hessian = np.linalg.inv(T.T @ levels_covariance @ T)
    out = []
    for i, c in zip(data.context, data.level, strict=True):
        F = level_information(p[i])
        g = np.eye(data.levels)[c] - p[i]
        whole = T.T @ np.kron(X[i], g)
        without = hessian - T.T @ np.kron(np.outer(X[i], X[i]), F) @ T
        bias = float(g @ (X[i] @ shift)) - 0.5 * float(np.trace(F @ spread[i]))
        out.append([np.log(p[i, c]), bias, g @ spread[i] @ g, whole @ np.linalg.solve(without, whole)])
    return np.array(out)


def directions(data: Conditional, theta: Vector, vectors: Vector) -> Vector:
    """(E, S)."""
    p, X = probabilities(data, theta), design(data)
    g = np.eye(data.levels)[data.level] - p[data.context]
    eta = np.einsum("cr,srl->scl", X, vectors)
    return np.asarray(np.einsum("el,sel->es", g, eta[:, data.context]))


def residuals_by_code(data: Conditional, theta: Vector, code: Vector, codes: int) -> tuple[Vector, Vector]:
    p, counts = probabilities(data, theta), seen(data)
    n = counts.sum(axis=1, keepdims=True)
    S, V = np.zeros((2, codes, data.levels))
    np.add.at(S, code, counts - n * p)
    np.add.at(V, code, n * p * (1 - p))
    return S, V
