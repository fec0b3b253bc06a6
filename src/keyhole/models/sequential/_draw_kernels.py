"""Compiled loops over the contexts of a conditional too large for its Hessian: products with it, and draws.

Shapes are those of ``_kernels``; vectors and draws are (S, R, L).
"""

import numpy as np
from numba import njit

from keyhole.models.sequential._kernels import softmax


@njit(nogil=True, cache=True, error_model="numpy")
def information_times(feature, allowed, mask, records, theta, vectors, product):
    """Adds the Fisher information times each of S vectors (S, R, L) to ``product``, all in level space."""
    C, B = feature.shape
    S, _, L = vectors.shape
    p = np.empty(L)
    eta = np.empty(L)
    for i in range(C):
        softmax(feature, i, theta, mask[allowed[i]], p)
        for s in range(S):
            mean = 0.0
            for c in range(L):
                eta[c] = 0.0
                for b in range(B):
                    eta[c] += vectors[s, feature[i, b], c]
                mean += p[c] * eta[c]
            for c in range(L):
                change = records[i] * p[c] * (eta[c] - mean)
                for b in range(B):
                    product[s, feature[i, b], c] += change


@njit(nogil=True, cache=True, error_model="numpy")
def score_noise(feature, allowed, mask, records, theta, rng, noise):
    """Adds draws of a Gaussian score, whose variance is the Fisher information, to ``noise`` (S, R, L).

    With z standard normal, sqrt(p) z - p sum(sqrt(p) z) has the variance diag p - p p'.
    """
    C, B = feature.shape
    S, _, L = noise.shape
    p = np.empty(L)
    e = np.empty(L)
    for i in range(C):
        softmax(feature, i, theta, mask[allowed[i]], p)
        for s in range(S):
            total = 0.0
            for c in range(L):
                e[c] = np.sqrt(records[i] * p[c]) * rng.normal()
                total += e[c]
            for c in range(L):
                for b in range(B):
                    noise[s, feature[i, b], c] += e[c] - p[c] * total


@njit(nogil=True, cache=True, error_model="numpy")
def diagonal_information(feature, allowed, mask, records, theta, diagonal):
    """Adds the diagonal blocks of the Fisher information in level space to ``diagonal`` (R, L, L)."""
    C, B = feature.shape
    L = theta.shape[1]
    p = np.empty(L)
    for i in range(C):
        softmax(feature, i, theta, mask[allowed[i]], p)
        for b in range(B):
            row = feature[i, b]
            for a in range(L):
                mass = records[i] * p[a]
                diagonal[row, a, a] += mass
                for d in range(L):
                    diagonal[row, a, d] -= mass * p[d]


@njit(nogil=True, cache=True, error_model="numpy")
def spread_of_draws(feature, context, p, draws, variance, with_mean):
    """Fill ``variance`` with diag S and ``with_mean`` with S p, S the draws' covariance; return tr(F S), p'S p."""
    B, L = feature.shape[1], p.shape[0]
    eta = np.empty(L)
    variance[:] = 0.0
    with_mean[:] = 0.0
    square = 0.0
    for s in range(draws.shape[0]):
        mean = 0.0
        for c in range(L):
            eta[c] = 0.0
            for b in range(B):
                eta[c] += draws[s, feature[context, b], c]
            mean += p[c] * eta[c]
        for c in range(L):
            variance[c] += eta[c] * eta[c]
            with_mean[c] += eta[c] * mean
        square += mean * mean
    trace = 0.0
    for c in range(L):
        variance[c] /= draws.shape[0]
        with_mean[c] /= draws.shape[0]
        trace += p[c] * variance[c]
    return trace, square / draws.shape[0]


@njit(nogil=True, cache=True, error_model="numpy")
def move_of_draws(feature, context, p, draws, seen, moves):
    """Fill ``moves`` with S g, S the draws' covariance of the linear predictors and g the slope of log p[seen]."""
    B, L = feature.shape[1], p.shape[0]
    eta = np.empty(L)
    moves[:] = 0.0
    for s in range(draws.shape[0]):
        mean = 0.0
        for c in range(L):
            eta[c] = 0.0
            for b in range(B):
                eta[c] += draws[s, feature[context, b], c]
            mean += p[c] * eta[c]
        for c in range(L):
            moves[c] += eta[c] * (eta[seen] - mean)
    for c in range(L):
        moves[c] /= draws.shape[0]


@njit(nogil=True, cache=True, error_model="numpy")
def spread_over(p, values):
    """The variance of values that the levels take with probabilities p."""
    mean = 0.0
    square = 0.0
    for c in range(p.shape[0]):
        mean += p[c] * values[c]
        square += p[c] * values[c] * values[c]
    return square - mean * mean


@njit(nogil=True, cache=True, error_model="numpy")
def bend_of_draws(feature, allowed, mask, records, theta, draws, slope):
    """As ``bend``, with the covariance of the draws (S, R, L)."""
    C, B = feature.shape
    L = theta.shape[1]
    p = np.empty(L)
    variance = np.empty(L)
    with_mean = np.empty(L)
    for i in range(C):
        softmax(feature, i, theta, mask[allowed[i]], p)
        trace, square = spread_of_draws(feature, i, p, draws, variance, with_mean)
        for c in range(L):
            g = records[i] * p[c] * (0.5 * (variance[c] - trace) - (with_mean[c] - square))
            for b in range(B):
                slope[feature[i, b], c] += g


@njit(nogil=True, cache=True, error_model="numpy")
def moments_of_draws(feature, allowed, mask, context, level, weight, theta, draws, shift):
    """As ``moments``, with the covariance of the draws.

    The last column is g'S g + g'S F S g + ... continued as a geometric series: exact for two levels.
    """
    E, B = context.shape[0], feature.shape[1]
    L = theta.shape[1]
    p = np.empty(L)
    moves = np.empty(L)
    variance = np.empty(L)
    with_mean = np.empty(L)
    out = np.empty((E, 4))
    for e in range(E):
        i = context[e]
        seen = level[e]
        softmax(feature, i, theta, mask[allowed[i]], p)
        trace, square = spread_of_draws(feature, i, p, draws, variance, with_mean)
        moved = 0.0
        for c in range(L):
            for b in range(B):
                moved += shift[feature[i, b], c] * ((1.0 if c == seen else 0.0) - p[c])
        v = variance[seen] - 2.0 * with_mean[seen] + square
        move_of_draws(feature, i, p, draws, seen, moves)
        w = min(weight[e], 1.0)
        share = w * spread_over(p, moves) / v if v > 0.0 else 0.0
        out[e, 0] = np.log(p[seen])
        out[e, 1] = moved - 0.5 * (trace - square)
        out[e, 2] = v
        out[e, 3] = w * v / (1.0 - min(share, 0.9))
    return out
