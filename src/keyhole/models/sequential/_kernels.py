"""Compiled loops over the contexts of one conditional.

Shapes, the same in every kernel: C contexts, B blocks, R parameter rows, L levels, E entries.

    feature   (C, B) int32   the parameter row of each block in each context; block 0 is the intercept
    allowed   (C,) int32     row of ``mask`` (M, L) bool that tells which levels the context admits
    records   (C,) float64   number of records of a context
    start     (C + 1,) int64 entries of context i are start[i]:start[i + 1]
    level     (E,) int32     level of an entry
    weight    (E,) float64   number of records of an entry
    theta     (R, L) float64 the rows of the parameters in level space
    contrast  (L, L - 1)     orthonormal columns that sum to zero
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def softmax(feature, context, theta, admitted, p):
    """Fill p with the probabilities of the levels in one context; return the log of the normaliser."""
    B, L = feature.shape[1], theta.shape[1]
    top = -np.inf
    for c in range(L):
        eta = -np.inf
        if admitted[c]:
            eta = 0.0
            for b in range(B):
                eta += theta[feature[context, b], c]
            if eta > top:
                top = eta
        p[c] = eta
    total = 0.0
    for c in range(L):
        p[c] = np.exp(p[c] - top) if admitted[c] else 0.0
        total += p[c]
    for c in range(L):
        p[c] /= total
    return top + np.log(total)


@njit(nogil=True, cache=True, error_model="numpy")
def gradient(feature, allowed, mask, start, level, weight, theta, slope):
    """Log likelihood of the entries; adds its gradient in level space to ``slope`` (R, L)."""
    C, B, L = feature.shape[0], feature.shape[1], theta.shape[1]
    p = np.empty(L)
    r = np.empty(L)
    value = 0.0
    for i in range(C):
        softmax(feature, i, theta, mask[allowed[i]], p)
        n = 0.0
        for e in range(start[i], start[i + 1]):
            n += weight[e]
        for c in range(L):
            r[c] = -n * p[c]
        for e in range(start[i], start[i + 1]):
            r[level[e]] += weight[e]
            value += weight[e] * np.log(p[level[e]])
        for b in range(B):
            row = feature[i, b]
            for c in range(L):
                slope[row, c] += r[c]
    return value


@njit(nogil=True, cache=True, error_model="numpy")
def log_likelihood(feature, allowed, mask, start, level, weight, theta):
    """Log likelihood of the entries."""
    p = np.empty(theta.shape[1])
    value = 0.0
    for i in range(feature.shape[0]):
        softmax(feature, i, theta, mask[allowed[i]], p)
        for e in range(start[i], start[i + 1]):
            value += weight[e] * np.log(p[level[e]])
    return value


@njit(nogil=True, cache=True, error_model="numpy")
def curvature_of(p, contrast, scale, M):
    """Fill M (L-1, L-1) with scale * contrast' (diag p - p p') contrast."""
    L, K = contrast.shape
    m = np.zeros(K)
    for a in range(K):
        for c in range(L):
            m[a] += contrast[c, a] * p[c]
    for a in range(K):
        for d in range(a + 1):
            s = 0.0
            for c in range(L):
                s += contrast[c, a] * contrast[c, d] * p[c]
            M[a, d] = scale * (s - m[a] * m[d])
            M[d, a] = M[a, d]


@njit(nogil=True, cache=True, error_model="numpy")
def information(feature, allowed, mask, records, theta, contrast, H):
    """Adds the lower triangle of the Fisher information to H (R K, R K), K = L - 1."""
    C, B = feature.shape
    L, K = contrast.shape
    p = np.empty(L)
    M = np.empty((K, K))
    for i in range(C):
        softmax(feature, i, theta, mask[allowed[i]], p)
        curvature_of(p, contrast, records[i], M)
        # Rows of later blocks come later, so d <= b is the lower triangle.
        for b in range(B):
            x = feature[i, b] * K
            for d in range(b + 1):
                y = feature[i, d] * K
                for a in range(K):
                    for e in range(K):
                        H[x + a, y + e] += M[a, e]


@njit(nogil=True, cache=True, error_model="numpy")
def predictor_covariance(feature, context, covariance, contrast, A, S):
    """Fill A (K, K) and S (L, L) with the covariance of a context's linear predictors, in contrasts and levels."""
    B, K = feature.shape[1], contrast.shape[1]
    A[:] = 0.0
    for b in range(B):
        x = feature[context, b] * K
        for d in range(B):
            y = feature[context, d] * K
            for a in range(K):
                for e in range(K):
                    A[a, e] += covariance[x + a, y + e]
    S[:] = contrast @ A @ contrast.T


@njit(nogil=True, cache=True, error_model="numpy")
def bend(feature, allowed, mask, records, theta, contrast, covariance, slope):
    """Adds the gradient in level space of sum_i n_i tr(F_i S) / 2 to ``slope``, the covariance held fixed."""
    C, B = feature.shape
    L, K = contrast.shape
    p = np.empty(L)
    A = np.empty((K, K))
    S = np.empty((L, L))
    for i in range(C):
        softmax(feature, i, theta, mask[allowed[i]], p)
        predictor_covariance(feature, i, covariance, contrast, A, S)
        Sp = S @ p
        trace = 0.0
        square = 0.0
        for c in range(L):
            trace += p[c] * S[c, c]
            square += p[c] * Sp[c]
        for c in range(L):
            g = records[i] * p[c] * (0.5 * (S[c, c] - trace) - (Sp[c] - square))
            for b in range(B):
                slope[feature[i, b], c] += g


@njit(nogil=True, cache=True, error_model="numpy")
def without_record(A, M, w):
    """(A^-1 - w M)^-1 = A (I - w M A)^-1: the covariance of a context's predictors without w of a record."""
    return A @ np.linalg.inv(np.eye(A.shape[0]) - w * (M @ A))


@njit(nogil=True, cache=True, error_model="numpy")
def moments(feature, allowed, mask, context, level, weight, theta, contrast, covariance, shift):
    """Log probability of entries, its posterior bias and variance, and what leaving one record out takes away.

    Returns (E, 4): log p; E log p - log p = g'shift - tr(F S)/2; v = g'H^-1 g; and w g'(H - w F_i)^-1 g, where a
    record weighs w = 1, or all there is in its entry if that is less.
    """
    E, B = context.shape[0], feature.shape[1]
    L, K = contrast.shape
    p = np.empty(L)
    A = np.empty((K, K))
    S = np.empty((L, L))
    out = np.empty((E, 4))
    last = -1
    for e in range(E):
        i, seen = context[e], level[e]
        if i != last:
            # Entries are sorted by context, so what is cubic in the levels is done once for each.
            last = i
            softmax(feature, i, theta, mask[allowed[i]], p)
            predictor_covariance(feature, i, covariance, contrast, A, S)
            Sp = S @ p
            square = p @ Sp
            trace = p @ np.diag(S)
            centre = p @ contrast
            M = contrast.T @ (p.reshape(L, 1) * contrast) - np.outer(centre, centre)
            without = without_record(A, M, 1.0)
        moved = 0.0
        for b in range(B):
            row = feature[i, b]
            moved += shift[row, seen]
            for c in range(L):
                moved -= shift[row, c] * p[c]
        g = contrast[seen] - centre
        w = min(weight[e], 1.0)
        out[e, 0] = np.log(p[seen])
        out[e, 1] = moved - 0.5 * (trace - square)
        out[e, 2] = S[seen, seen] - 2.0 * Sp[seen] + square
        out[e, 3] = w * (g @ (without if w == 1.0 else without_record(A, M, w)) @ g)
    return out


@njit(nogil=True, cache=True, error_model="numpy")
def directions(feature, allowed, mask, context, level, theta, vectors, total):
    """Adds the derivative of log p of each entry along each of S vectors (S, R, L) to ``total`` (E, S)."""
    E, B = context.shape[0], feature.shape[1]
    S, _, L = vectors.shape
    p = np.empty(L)
    for e in range(E):
        i = context[e]
        softmax(feature, i, theta, mask[allowed[i]], p)
        for s in range(S):
            change = 0.0
            for b in range(B):
                row = feature[i, b]
                change += vectors[s, row, level[e]]
                for c in range(L):
                    change -= p[c] * vectors[s, row, c]
            total[e, s] += change


@njit(nogil=True, cache=True, error_model="numpy")
def residuals_by_pair(feature, allowed, mask, start, level, weight, theta, code, S, V):
    """Sum residuals and their variances by (code of a pair of earlier levels, level) into S, V (codes, L)."""
    C, L = feature.shape[0], theta.shape[1]
    p = np.empty(L)
    for i in range(C):
        softmax(feature, i, theta, mask[allowed[i]], p)
        n = 0.0
        for e in range(start[i], start[i + 1]):
            n += weight[e]
            S[code[i], level[e]] += weight[e]
        for c in range(L):
            S[code[i], c] -= n * p[c]
            V[code[i], c] += n * p[c] * (1.0 - p[c])


@njit(nogil=True, cache=True, error_model="numpy")
def draw_levels(feature, allowed, mask, theta, uniform, drawn):
    """Draw one level in each context by inversion of a uniform number."""
    L = theta.shape[1]
    p = np.empty(L)
    for i in range(feature.shape[0]):
        softmax(feature, i, theta, mask[allowed[i]], p)
        left = uniform[i]
        last = 0
        for c in range(L):
            if p[c] > 0.0:
                last = c
                left -= p[c]
                if left < 0.0:
                    break
        drawn[i] = last


@njit(nogil=True, cache=True, error_model="numpy")
def log_level(feature, allowed, mask, level, theta):
    """log p of one given level in each context."""
    p = np.empty(theta.shape[1])
    out = np.empty(feature.shape[0])
    for i in range(feature.shape[0]):
        if mask[allowed[i], level[i]]:
            softmax(feature, i, theta, mask[allowed[i]], p)
            out[i] = np.log(p[level[i]])
        else:
            out[i] = -np.inf
    return out
