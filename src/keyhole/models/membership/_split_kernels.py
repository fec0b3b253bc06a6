"""Compiled splits and merges of profiles, table by table. Letters as in ``_kernels``."""

import math

import numpy as np
from numba import njit

from keyhole.models.membership._kernels import draw_profile

MOST_KEYS = 62
"""The keys at a table are the bits of one number."""

TINY, HUGE = 1e-100, 1e100
LOG_TINY, LOG_HUGE = math.log(TINY), math.log(HUGE)


@njit(nogil=True, cache=True, error_model="numpy")
def split_or_merge(records, z, alpha, each, K, theta, g0, alpha0, mass, base, start, rng):
    """Proposes to split the profile of a random key, or to merge it with another.

    A second key is drawn, for a split from the same profile and for a merge from the others. A split deals the
    tables of the profile to those of the two keys, one after the other, in random order, with the odds
    that the tables dealt so far give (Dahl 2005, with tables for records). Profiles and weights are integrated
    out; if the proposal is accepted those of the two are drawn.

    Where profiles have no end a split makes column K; where their number is fixed it takes one that nobody has.
    Gives the number of profiles.
    """
    n, J = records.shape
    size = np.zeros(K, dtype=np.int64)
    for i in range(n):
        for j in range(J):
            size[z[i, j]] += 1
    empty = 0
    for k in range(K):
        empty += size[k] == 0
    i, j = rng.integers(0, n), rng.integers(0, J)
    home = z[i, j]
    splits = rng.random() < 0.5
    choices = size[home] - 1 if splits else n * J - size[home]
    if choices == 0 or (splits and not each and empty == 0):
        return K
    i2, j2 = second_key(i, j, splits, rng.integers(0, choices), z)
    rival = z[i2, j2]
    if splits:
        rival = K if each else which_empty(rng.integers(0, empty), size)
    record, keys, guest = tables_at(home, rival, z, alpha, each, g0, rng)
    seed, seed2 = find(record, keys, i, j), find(record, keys, i2, j2)
    if seed == seed2:
        return K
    number, tally, people, log_dealt = deal(
        seed, seed2, splits, records, record, keys, guest, mass, base, start, rng
    )
    gain = log_marginals(tally, people, mass, base, start) - log_dealt
    if each:
        gain += math.log(alpha0) + math.lgamma(number[0]) + math.lgamma(number[1])
        gain -= math.lgamma(number[0] + number[1])
    else:
        gain += math.lgamma(1.0 + number[0]) + math.lgamma(1.0 + number[1]) - math.lgamma(1.0 + number.sum())
        gain += math.log(empty if splits else empty + 1.0)
    gain += math.log((people.sum() - 1.0) / (n * J - people[0].sum()))  # the choice of the second key
    if not math.log1p(-rng.random()) < (gain if splits else -gain):
        return K
    for t in range(record.size):
        if guest[t]:
            for key in range(J):
                if keys[t] >> key & 1:
                    z[record[t], key] = rival if splits else home
    if not splits:
        tally[0] += tally[1]
        tally[1] = 0.0
        number[0] += number[1]
        number[1] = 0.0
    prior = 0.0 if each else 1.0
    whole = g0[home] + (0.0 if each and splits else g0[rival])
    one = rng.standard_gamma(prior + number[0])
    other = rng.standard_gamma(prior + number[1]) if prior + number[1] > 0.0 else 0.0
    g0[home], g0[rival] = whole * one / (one + other), whole * other / (one + other)
    draw_profile(theta, home, mass, base, start, tally[0], rng)
    draw_profile(theta, rival, mass, base, start, tally[1], rng)
    return K + 1 if each and splits else K


@njit(nogil=True, cache=True, error_model="numpy")
def second_key(i, j, same, which, z):
    """The which-th key, other than j of record i, of the same profile or of any other."""
    n, J = z.shape
    home = z[i, j]
    for a in range(n):
        for b in range(J):
            if (z[a, b] == home) == same and not (a == i and b == j):
                if which == 0:
                    return a, b
                which -= 1
    return i, j


@njit(nogil=True, cache=True, error_model="numpy")
def which_empty(which, size):
    """The which-th profile that nobody has."""
    for k in range(size.size):
        if size[k] == 0:
            if which == 0:
                return k
            which -= 1
    return -1


@njit(nogil=True, cache=True, error_model="numpy")
def tables_at(home, rival, z, alpha, each, g0, rng):
    """The tables of two profiles: the record and the keys of each, and whether it is a guest, one of the rival.

    The keys of a profile k in a record sit down one after the other: each joins a table with odds of the keys that
    are there, or opens one with odds alpha g0[k].
    """
    n, J = z.shape
    record = np.empty(64, dtype=np.int64)
    keys = np.empty(64, dtype=np.int64)
    guest = np.empty(64, dtype=np.bool_)
    seats = np.empty(J, dtype=np.int64)
    found = 0
    for i in range(n):
        of_two = False
        for j in range(J):
            of_two |= (z[i, j] == home) | (z[i, j] == rival)
        if not of_two:
            continue
        a = alpha[i] if each else alpha[0]
        for turn in range(2):
            k = rival if turn else home
            first, seated = found, 0
            for j in range(J):
                if z[i, j] != k:
                    continue
                t = found
                x = rng.random() * (a * g0[k] + seated)
                if x < seated:
                    t = first
                    while x >= seats[t - first]:
                        x -= seats[t - first]
                        t += 1
                if t == found:
                    if found == record.size:
                        record = np.concatenate((record, record))
                        keys = np.concatenate((keys, keys))
                        guest = np.concatenate((guest, guest))
                    record[t], keys[t], guest[t] = i, 0, turn == 1
                    seats[t - first] = 0
                    found += 1
                keys[t] |= 1 << j
                seats[t - first] += 1
                seated += 1
    return record[:found], keys[:found], guest[:found]


@njit(nogil=True, cache=True, error_model="numpy")
def find(record, keys, i, j):
    """The table at which key j of record i sits."""
    for t in range(record.size):
        if record[t] == i and keys[t] >> j & 1:
            return t
    return -1


@njit(nogil=True, cache=True, error_model="numpy")
def deal(seed, seed2, splits, records, record, keys, guest, mass, base, start, rng):
    """Deals tables to two sides, which begin with one each; if nothing ``splits``, as they are dealt already.

    Fills ``guest``. Gives the tables of each side, its records by row and by key, and the log chance of the deal.
    """
    T, J = record.size, records.shape[1]
    order = np.empty(T, dtype=np.int64)
    order[0], order[1] = seed, seed2
    at = 2
    for t in range(T):
        if t != seed and t != seed2:
            order[at] = t
            at += 1
    for turn in range(T - 1, 2, -1):
        swap = 2 + int(rng.random() * (turn - 1))
        order[turn], order[swap] = order[swap], order[turn]
    if splits:
        guest[seed], guest[seed2] = False, True
    tally = np.zeros((2, base.size))
    people = np.zeros((2, J))
    number = np.zeros(2)
    log_dealt, dealt = 0.0, 1.0
    for turn in range(T):
        t = order[turn]
        if turn > 1:
            odds, log_odds = number[1] / number[0], 0.0
            for key in range(J):
                if keys[t] >> key & 1:
                    r = start[key] + records[record[t], key]
                    prior = mass[key] * base[r]
                    odds *= ((tally[1, r] + prior) * (people[0, key] + mass[key])) / (
                        (tally[0, r] + prior) * (people[1, key] + mass[key])
                    )
                    # Logarithms cost more than all the rest: they are taken only where products would overflow.
                    if not TINY < odds < HUGE:
                        log_odds += math.log(odds)
                        odds = 1.0
            if log_odds != 0.0:
                odds = math.exp(min(max(log_odds + math.log(odds), LOG_TINY), LOG_HUGE))
            if splits:
                guest[t] = rng.random() * (1.0 + odds) < odds
            dealt *= (odds if guest[t] else 1.0) / (1.0 + odds)
            if dealt < TINY:
                log_dealt += math.log(dealt)
                dealt = 1.0
        side = 1 if guest[t] else 0
        number[side] += 1.0
        for key in range(J):
            if keys[t] >> key & 1:
                tally[side, start[key] + records[record[t], key]] += 1.0
                people[side, key] += 1.0
    return number, tally, people, log_dealt + math.log(dealt)


@njit(nogil=True, cache=True, error_model="numpy")
def log_marginals(tally, people, mass, base, start):
    """Log marginal likelihood of two profiles less that of one with the records of both."""
    gain = 0.0
    for j in range(mass.size):
        gain += math.lgamma(mass[j] + people[0, j] + people[1, j]) + math.lgamma(mass[j])
        gain -= math.lgamma(mass[j] + people[0, j]) + math.lgamma(mass[j] + people[1, j])
        for r in range(start[j], start[j + 1]):
            prior = mass[j] * base[r]
            gain += math.lgamma(prior + tally[0, r]) + math.lgamma(prior + tally[1, r])
            gain -= math.lgamma(prior + tally[0, r] + tally[1, r]) + math.lgamma(prior)
    return gain
