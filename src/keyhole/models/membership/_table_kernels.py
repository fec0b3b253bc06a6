"""Compiled moves of whole tables. Letters as in ``_kernels``."""

import numpy as np
from numba import njit

from keyhole.models.membership._kernels import broken_off, doubled, draw_profile, holders


@njit(nogil=True, cache=True, error_model="numpy")
def move_tables(u, records, z, alpha, each, K, left, theta, g0, alpha0, mass, base, start, counts, tables, rng):
    """Gives one table of each record a new profile: the table of a random key.

    It changes in ``z`` (n, J); profiles that are born join theta and g0. Counts and tables are not touched but get
    room for the newborn. ``u`` (J + 1, n) is uniform; where a number fell within the interval that it chose takes
    its place, so that its first J rows are uniform again afterwards, whatever was chosen. A profile that no other
    key has gives its weight back before the table moves, as in ``allocate``.
    """
    n, J = records.shape
    row = np.empty(J, dtype=np.int64)
    table = np.empty(J + 1, dtype=np.int64)
    seen = np.zeros(theta.shape[0])
    held = holders(z, theta.shape[1] if each else 0)
    i = -1
    while True:
        weight = np.empty(K)
        i, there, left = move_until_birth(
            i + 1, u, records, z, alpha, each, K, left, theta, g0, base, start, held, row, table, weight
        )
        if i == n:
            return K, left, theta, g0, counts, tables
        if theta.shape[1] == K:
            theta, g0, counts, tables = doubled(theta, g0, counts, tables)
            held = np.concatenate((held, np.zeros_like(held)))
        held[K] = there
        for t in range(there):
            seen[row[t]] = 1.0
            z[i, table[t]] = K
        draw_profile(theta, K, mass, base, start, seen, rng)
        seen[:] = 0.0
        g0[K] = broken_off(left, alpha0, rng)
        left -= g0[K]
        K += 1


@njit(nogil=True, cache=True, error_model="numpy")
def move_until_birth(first, u, records, z, alpha, each, K, left, theta, g0, base, start, held, row, table, weight):
    """Moves tables of records from the first on until one asks for a new profile.

    In a Chinese restaurant the order of arrival does not matter, so a random key of the record sits down first.
    The others of its profile k follow: each joins its table with odds of the keys that are there, or another with
    odds of the keys at others, or opens one with odds alpha g0[k]. Then the table's keys move together. A key
    alone at its table stays, ``allocate`` moves it.

    Gives the record that asks, n if none does, the number of keys at its table, which are in ``table`` and their
    rows in ``row``, and what is left.
    """
    n, J = records.shape
    for i in range(first, n):
        key = np.uintp(u[J, i] * J)
        now = z[i, key]
        opens = (alpha[i] if each else alpha[0]) * g0[now]
        table[0] = key
        there = seated = 1
        for m in range(J):
            # Written without a branch: which keys share the table cannot be foreseen.
            alike = (z[i, m] == now) & (m != key)
            x = u[m, i] * (opens + seated)
            joins = alike & (x < there)
            low = 0.0 if joins else there
            high = there if joins else opens + seated
            u[m, i] = (x - low) / (high - low) if alike else u[m, i]
            table[there] = m
            there += joins
            seated += alike
        if there == 1:
            continue
        if each:
            held[now] -= there
            if held[now] == 0:
                left += g0[now]
                g0[now] = 0.0
        newborn = left
        for k in range(K):
            weight[k] = g0[k]
        for t in range(there):
            r = start[table[t]] + records[i, table[t]]
            row[t] = r
            newborn *= base[r]
            for k in range(K):
                weight[k] *= theta[r, k]
        total = 0.0
        for k in range(K):
            total += weight[k]
            weight[k] = total
        # The key itself needs no number to sit down: its own is left for the choice.
        x = u[key, i] * (total + newborn)
        chosen = 0
        for k in range(K):
            chosen += weight[k] <= x
        low = weight[chosen - 1] if chosen > 0 else 0.0
        high = weight[chosen] if chosen < K else total + newborn
        if high > low:
            u[key, i] = (x - low) / (high - low)
        if chosen == K and newborn > 0.0:
            return i, there, left
        if chosen == K:
            chosen = now  # rounding, or a table so unlikely everywhere that it cannot be told where it belongs
        for t in range(there):
            z[i, table[t]] = chosen
        if each:
            held[chosen] += there
    return n, 0, left
