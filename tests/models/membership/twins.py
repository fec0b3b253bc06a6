"""Slow, obvious versions of the kernels, and the model's exact posterior on a few records."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import integrate, special, stats

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.models.membership._kernels import BLOCK
from keyhole.models.membership.level_prior import Rows
from keyhole.numerics.concentration import GammaPrior


def quantile(law: int, u: float, knot: Vector, curve: Vector) -> float:
    i = int(np.searchsorted(curve[law, :, 0], u, side="right")) - 1
    f0, f1 = curve[law, i, 1], curve[law, i + 1, 1]
    d = (u - curve[law, i, 0]) / (curve[law, i + 1, 0] - curve[law, i, 0])
    return float(
        knot[i] + (knot[i + 1] - knot[i]) * d * (f0 + f1) / (f0 + np.sqrt(f0 * f0 * (1 - d) + f1 * f1 * d))
    )


def log_gamma(a: float, rng: Generator) -> float:
    if a >= 1:
        return float(np.log(rng.standard_gamma(a)))
    return float(np.log(rng.standard_gamma(a + 1)) + np.log(1 - rng.random()) / a)


def profile(mass: Vector, base: Vector, start: IntVector, rows: list[int], rng: Generator) -> Vector:
    """A profile given records in these rows."""
    drawn = []
    counts = np.bincount(rows, minlength=len(base))
    for j, (first, end) in enumerate(pairwise(start)):
        shape = mass[j] * base[first:end] + counts[first:end]
        logs = np.array([log_gamma(a, rng) for a in shape])
        weight = np.exp(logs - logs.max())
        drawn.append(weight / weight.sum())
    return np.concatenate(drawn)


def with_room(K: int, *held: Any) -> tuple[Any, ...]:
    """Twice the columns, where there are but K."""
    return tuple(np.concatenate([one, np.zeros_like(one)], axis=-1) if one.shape[-1] == K else one for one in held)


def move_with(weights: Callable[[Vector], Vector]) -> Callable[..., Any]:
    """The move of tables to profiles of the weights that are made of g0."""

    def move_tables(
        u: Vector, records: Codes, z: Codes, alpha: Vector, each: bool, K: int, left: float,
        theta: Vector, g0: Vector, alpha0: float, mass: Vector, base: Vector, start: IntVector, counts: IntVector,
        tables: IntVector, rng: Generator,
    ) -> tuple[Any, ...]:  # fmt: skip
        J = records.shape[1]
        for i, own in enumerate(u.T):
            key = int(own[J] * J)
            table, seated = [key], 1
            opens = (alpha[i] if each else alpha[0]) * g0[z[i, key]]
            for m in range(J):
                if m != key and z[i, m] == z[i, key]:
                    x, there, whole = own[m] * (opens + seated), len(table), opens + seated
                    if x < there:
                        table.append(m)
                    own[m] = x / there if x < there else (x - there) / (whole - there)
                    seated += 1
            rows = [int(start[m] + records[i, m]) for m in table]
            if each and len(table) > 1 and (z == z[i, key]).sum() == len(table):
                left, g0[z[i, key]] = left + g0[z[i, key]], 0.0
            weight = np.append(weights(g0[:K]) * theta[rows, :K].prod(axis=0), left * base[rows].prod())
            edges = np.append(0.0, np.cumsum(weight))
            x = own[key] * edges[-1]
            k = int(np.searchsorted(edges[1:], x, side="right"))
            if len(table) == 1 or k > K:
                continue
            own[key] = (x - edges[k]) / weight[k]
            if k == K:
                theta, g0, counts, tables = with_room(K, theta, g0, counts, tables)
                theta[:, K] = profile(mass, base, start, rows, rng)
                g0[K] = -left * np.expm1(np.log1p(-rng.random()) / alpha0)
                left, K = left - g0[K], K + 1
            z[i, table] = k
        return K, left, theta, g0, counts, tables

    return move_tables


move_tables = move_with(lambda g0: g0)
heedless = move_with(np.ones_like)
"""Tables that go to frequent and to rare profiles alike."""


def split_or_merge(
    records: Codes, z: Codes, alpha: Vector, each: bool, K: int, theta: Vector, g0: Vector, alpha0: float,
    mass: Vector, base: Vector, start: IntVector, rng: Generator, *, labels: bool = True, choice: bool = True,
) -> int:  # fmt: skip
    """Without ``labels`` it forgets how many a split has to choose from; without ``choice``, the second key."""
    n, J = records.shape
    size = np.bincount(z.ravel(), minlength=K)
    empty = np.flatnonzero(size == 0)
    i, j = int(rng.integers(0, n)), int(rng.integers(0, J))
    home, splits = int(z[i, j]), rng.random() < 0.5
    others = [(a, b) for a, b in np.argwhere((z == home) == splits).tolist() if (a, b) != (i, j)]
    if not others or (splits and not each and not len(empty)):
        return K
    second = others[int(rng.integers(0, len(others)))]
    rival = int(z[second])
    if splits:
        rival = K if each else int(empty[int(rng.integers(0, len(empty)))])
    tables: list[tuple[int, list[int], int]] = []
    for a, (side, k) in product(range(n), enumerate((home, rival))):
        own: list[tuple[int, list[int], int]] = []
        for b in np.flatnonzero(z[a] == k).tolist():
            edges = np.cumsum([0, *(len(keys) for _, keys, _ in own)])
            x = rng.random() * ((alpha[a] if each else alpha[0]) * g0[k] + edges[-1])
            if x < edges[-1]:
                own[int(np.searchsorted(edges, x, side="right")) - 1][1].append(b)
            else:
                own.append((a, [b], side))
        tables += own
    seeds = [next(t for t, (a, keys, _) in enumerate(tables) if a == r and k in keys) for r, k in ((i, j), second)]
    if seeds[0] == seeds[1]:
        return K
    order = seeds + [t for t in range(len(tables)) if t not in seeds]
    for turn in range(len(order) - 1, 2, -1):
        swap = 2 + int(rng.random() * (turn - 1))
        order[turn], order[swap] = order[swap], order[turn]
    sides: list[list[int]] = [[], []]
    number, log_dealt, moved = np.zeros(2), 0.0, []

    def log_chance(rows: list[int], held: list[int]) -> float:
        """log p(rows | held), one level of each key."""
        total = 0.0
        for r in rows:
            key = int(np.searchsorted(start, r, side="right")) - 1
            alike = sum(start[key] <= one < start[key + 1] for one in held)
            total += np.log((held.count(r) + mass[key] * base[r]) / (alike + mass[key]))
        return total

    for turn, t in enumerate(order):
        a, keys, side = tables[t]
        rows = [int(start[b] + records[a, b]) for b in keys]
        if turn < 2:
            side = turn
        else:
            odds = np.log(number[1] / number[0]) + log_chance(rows, sides[1]) - log_chance(rows, sides[0])
            side = int(rng.random() < special.expit(odds)) if splits else side
            log_dealt += special.log_expit(odds if side else -odds)
        sides[side] += rows
        number[side] += 1
        moved += [(a, b) for b in keys] if side else []
    both = sides[0] + sides[1]
    gain = sum(log_chance([r], held[:at]) for held in sides for at, r in enumerate(held)) - log_dealt
    gain -= sum(log_chance([r], both[:at]) for at, r in enumerate(both))
    prior = 0 if each else 1
    gain += special.gammaln(prior + number).sum() - special.gammaln(prior + number.sum())
    gain += np.log(alpha0) if each else labels * np.log(len(empty) + (not splits))
    gain += choice * np.log((len(both) - 1) / (n * J - len(sides[0])))
    if not np.log1p(-rng.random()) < (gain if splits else -gain):
        return K
    for a, b in moved:
        z[a, b] = rival if splits else home
    if not splits:
        sides, number = [both, []], np.array([number.sum(), 0])
    whole = g0[home] + (0 if each and splits else g0[rival])
    weights = [rng.standard_gamma(prior + m) if prior + m > 0 else 0.0 for m in number]
    g0[[home, rival]] = whole * np.array(weights) / sum(weights)
    theta[:, home] = profile(mass, base, start, sides[0], rng)
    theta[:, rival] = profile(mass, base, start, sides[1], rng)
    return K + 1 if each and splits else K


def allocate_with(concentration: Callable[[float, float], float]) -> Callable[..., Any]:
    """The allocation with tables of the concentration that is given by alpha_i and alpha_0, times g0."""

    def allocate(
        alone: bool, records: Codes, z: Codes, alpha: Vector, each: bool, K: int, left: float, theta: Vector,
        g0: Vector, alpha0: float, mass: Vector, base: Vector, start: IntVector, whole: Vector, keep: Vector,
        other: Codes, u: Vector, v: Vector, knot: Vector, curve: Vector, guide: IntVector, counts: IntVector,
        tables: IntVector, rng: Generator,
    ) -> tuple[Any, ...]:  # fmt: skip
        (n, J), old = records.shape, K
        seat = np.zeros((n, J))
        for first in range(0, n, BLOCK):
            block = range(first, min(first + BLOCK, n))
            for j, i in product(range(J), block):
                if not alone:
                    seat[i, j] = u[j, i]
                    continue
                r, a = start[j] + records[i, j], alpha[i] if each else alpha[0]
                dead = each and (z == z[i, j]).sum() == 1
                if dead:
                    left, g0[z[i, j]] = left + g0[z[i, j]], 0.0
                entries = [(theta[r, z[i, m]], int(z[i, m])) for m in range(J) if m != j]
                rest = sum(g0[k] * theta[r, k] for k in range(old, K)) + left * base[r]
                bucket = sum(weight for weight, _ in entries)
                x = u[j, i] * (bucket + a * (whole[r] + rest))
                column, y = divmod(max(x - bucket, 0.0) / a / whole[r] * old, 1.0)
                if not dead and bucket <= x < bucket + a * whole[r]:
                    dead = g0[int(column) if y < keep[r, int(column)] else other[r, int(column)]] == 0
                if dead:  # weigh all that are alive, and one that does not exist
                    shared = np.bincount([k for _, k in entries], minlength=K)[:K]
                    weights = np.append((a * g0[:K] + shared) * theta[r, :K], a * left * base[r])
                    z[i, j] = k = int(
                        np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right")
                    )
                    seat[i, j] = rng.random()
                    if k == K:
                        theta, g0, counts, tables = with_room(K, theta, g0, counts, tables)
                        theta[:, K] = profile(mass, base, start, [int(r)], rng)
                        g0[K] = -left * np.expm1(np.log1p(-rng.random()) / alpha0)
                        left, K = left - g0[K], K + 1
                    continue
                if x < bucket:
                    edges = np.cumsum([0.0, *(weight for weight, _ in entries)])
                    m = int(np.searchsorted(edges, x, side="right")) - 1
                    z[i, j], seat[i, j] = entries[m][1], (x - edges[m]) / (edges[m + 1] - edges[m])
                    continue
                x = (x - bucket) / a
                if x < whole[r] or rest == 0:
                    column, y = divmod(x / whole[r] * old, 1.0)
                    k, limit = int(column), keep[r, int(column)]
                    z[i, j] = k if y < limit else other[r, k]
                    seat[i, j] = y / limit if y < limit else (y - limit) / (1 - limit)
                    continue
                x -= whole[r]
                for k in range(old, K):
                    if x < g0[k] * theta[r, k]:
                        z[i, j], seat[i, j] = k, x / (g0[k] * theta[r, k])
                        break
                    x -= g0[k] * theta[r, k]
                else:
                    z[i, j], seat[i, j] = K, rng.random()
                    theta, g0, counts, tables = with_room(K, theta, g0, counts, tables)
                    theta[:, K] = profile(mass, base, start, [int(r)], rng)
                    g0[K] = -left * np.expm1(np.log1p(-rng.random()) / alpha0)
                    left, K = left - g0[K], K + 1
        for i in range(n):
            a, opened = alpha[i] if each else alpha[0], 0
            for j in range(J):
                k = z[i, j]
                counts[start[j] + records[i, j], k] += 1
                c, weight = int((z[i, :j] == k).sum()), concentration(a, alpha0) * g0[k]
                if c == 0 or seat[i, j] * (weight + c) < weight:
                    tables[k] += 1
                    opened += 1
            if each:
                alpha[i] = quantile(opened, v[i], knot, curve)
        return K, left, theta, g0, counts, tables

    return allocate


allocate = allocate_with(lambda alpha, alpha0: alpha)
slipped = allocate_with(lambda alpha, alpha0: alpha0)
"""The tables as printed in the paper on the hierarchical model."""


def log_marginal(records: Codes, z: Codes, rows: Rows, profiles: int) -> float:
    """log p(x | z) with flat profiles integrated out."""
    total = 0.0
    for j, k in product(range(rows.keys), range(profiles)):
        found = np.bincount(records[z[:, j] == k, j], minlength=rows.levels[j])
        total += special.gammaln(rows.levels[j]) - special.gammaln(rows.levels[j] + found.sum())
        total += special.gammaln(1 + found).sum()
    return float(total)


def graded_posterior(records: Codes, levels: tuple[int, ...], profiles: int) -> dict[tuple[int, ...], float]:
    """P(z | x) with flat priors: a sum over all tables, alpha by quadrature."""
    n, J = records.shape

    @cache
    def mean(power: int) -> float:
        def density(alpha: float) -> float:
            return float(alpha**power / np.prod(alpha + np.arange(J)) ** n * stats.gamma.pdf(alpha, 2))

        return float(integrate.quad(density, 0, 80, limit=200)[0])

    found = {}
    for labels in product(range(profiles), repeat=n * J):
        z = np.array(labels).reshape(n, J)
        total = 0.0
        for weight, by_profile in _tables(z, profiles):
            m = int(by_profile.sum())
            total += weight * mean(m) * special.factorial(by_profile).prod() / special.poch(profiles, m)
        found[labels] = total * np.exp(log_marginal(records, z, Rows(levels), profiles))
    whole = sum(found.values())
    return {labels: value / whole for labels, value in found.items()}


def _tables(z: Codes, profiles: int) -> Iterator[tuple[float, IntVector]]:
    """In how many ways keys can sit so that profiles have so many tables."""
    places = [(k, int((own == k).sum())) for own in z for k in range(profiles) if (own == k).any()]
    for tables in product(*[range(1, size + 1) for _, size in places]):
        by_profile = np.zeros(profiles, dtype=np.int64)
        np.add.at(by_profile, [k for k, _ in places], tables)
        yield float(np.prod([STIRLING[size, m] for (_, size), m in zip(places, tables, strict=True)])), by_profile


def partitions(size: int) -> Iterator[tuple[int, ...]]:
    """Labels of all set partitions, numbered as they appear."""
    for labels in product(range(size), repeat=size):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield labels


STIRLING = {(1, 1): 1, (2, 1): 1, (2, 2): 1, (3, 1): 2, (3, 2): 3, (3, 3): 1}


def hierarchical_posterior(
    records: Codes, levels: tuple[int, ...], above: GammaPrior
) -> dict[tuple[int, ...], float]:
    """P(partition of all keys of all records into profiles | x), flat profiles; a sum over all tables."""
    n, J = records.shape

    @cache
    def mean(power: int, customers: int, prior: GammaPrior) -> float:
        def density(alpha: float) -> float:
            chance = alpha**power / np.prod(alpha + np.arange(customers))
            return float(chance * stats.gamma.pdf(alpha, prior.shape, scale=1 / prior.rate))

        return float(integrate.quad(density, 0, 80, limit=200)[0])

    own = {m: mean(m, J, GammaPrior()) for m in range(1, J + 1)}
    found = {}
    for labels in partitions(n * J):
        z = np.array(labels).reshape(n, J)
        K = max(labels) + 1
        places = [(i, k, int((z[i] == k).sum())) for i, k in product(range(n), range(K)) if (z[i] == k).any()]
        total = 0.0
        for tables in product(*[range(1, size + 1) for _, _, size in places]):
            weight, by_record, by_profile = 1.0, np.zeros(n, dtype=int), np.zeros(K, dtype=int)
            for (i, k, size), m in zip(places, tables, strict=True):
                weight *= STIRLING[size, m]
                by_record[i] += m
                by_profile[k] += m
            weight *= np.prod([own[int(m)] for m in by_record]) * np.prod(special.factorial(by_profile - 1))
            total += weight * mean(K, int(by_profile.sum()), above)
        found[labels] = total * np.exp(log_marginal(records, z, Rows(levels), K))
    whole = sum(found.values())
    return {labels: value / whole for labels, value in found.items()}


def canonical(z: Codes) -> tuple[int, ...]:
    """Labels numbered as they appear."""
    number: dict[int, int] = {}
    return tuple(number.setdefault(int(label), len(number)) for label in z.ravel())


def exact_probability(theta: Vector, weight: Vector, rows: IntVector, alpha_moments: Vector) -> float:
    r"""E of the product over keys of sum_k g_k theta[r_j, k], g from Dirichlet(alpha weight), by sets of keys.

    With B(S) = (|S|-1)! sum_k weight_k prod_(j in S) theta[r_j, k], the sum over all partitions of the keys into
    tables of the product of their B, by number of tables m, times E[alpha^m Gamma(alpha)/Gamma(alpha + J)].
    """
    J = len(rows)
    B = np.zeros(1 << J)
    for S in range(1, 1 << J):
        members = [j for j in range(J) if S >> j & 1]
        B[S] = special.factorial(len(members) - 1) * float(weight @ np.prod(theta[rows[members]], axis=0))
    F = np.zeros((1 << J, J + 1))
    F[0, 0] = 1.0
    for S in range(1, 1 << J):
        lowest = S & -S
        rest = T = S ^ lowest
        while True:
            F[S, 1:] += B[T | lowest] * F[rest ^ T, :-1]
            if T == 0:
                break
            T = (T - 1) & rest
    return float(F[-1] @ alpha_moments)
