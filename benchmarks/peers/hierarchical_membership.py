"""The sampler printed by Battiston & Rimella (section 3.2.1), memberships drawn, vectorised in NumPy.

Kept as the reference for speed and mixing. One thing is not as printed: tables are drawn with
concentration alpha_i g0_k, since with the printed alpha_0 g0_k the chain would have another posterior. There are
both ways of section 3.2.2 to tau1, taken after every sweep: Monte Carlo over memberships, and drawing all others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Vector

MEMBERSHIPS = 500
"""Of the paper's Monte Carlo: its public code takes five batches of a hundred."""

CELLS_AT_ONCE, PEOPLE_AT_ONCE = 64, 20_000
"""So that arrays stay in the processor's cache."""


@dataclass
class Uncollapsed:
    """Allocations (n, J), memberships (n, K + 1) with the weight of new profiles last, and the parameters."""

    z: IntVector
    g: Vector
    g0: Vector
    theta: list[Vector]
    alpha: Vector
    alpha0: float


class PublishedSampler:
    """Sweeps over records of keys with these levels."""

    def __init__(self, levels: tuple[int, ...], records: Codes) -> None:
        self.levels, self.records = levels, records

    def start(self, profiles: int, rng: Generator) -> Uncollapsed:
        n, J = self.records.shape
        z = rng.integers(0, profiles, (n, J))
        state = Uncollapsed(
            z, np.empty((n, 0)), np.full(profiles + 1, 1 / (profiles + 1)), [], np.full(n, 2.0), 2.0
        )
        self._draw_profiles(state, rng)
        self._draw_memberships(state, rng)
        return state

    def sweep(self, state: Uncollapsed, rng: Generator) -> None:
        """The six steps of the paper, one key of all records at a time."""
        for j, levels in enumerate(self.levels):
            weight = np.concatenate(
                [state.g[:, :-1] * state.theta[j][:, self.records[:, j]].T, state.g[:, -1:] / levels], axis=1
            )
            edges = np.cumsum(weight, axis=1)
            chosen = (edges < rng.random((len(edges), 1)) * edges[:, -1:]).sum(axis=1)
            state.z[:, j] = chosen
            before = len(state.g0) - 1
            for record in np.flatnonzero(chosen == before):
                self._leave(state, j, int(record), before, rng)
        self._drop_empty(state)
        tables, total = self._draw_tables(state, rng)
        state.g0 = np.maximum(rng.dirichlet(np.append(tables, state.alpha0)), 1e-12)
        self._draw_memberships(state, rng)
        self._draw_profiles(state, rng)
        state.alpha0 = float(_escobar_west(np.array([state.alpha0]), tables.sum(), len(tables), rng)[0])
        state.alpha = _escobar_west(state.alpha, len(self.levels), total, rng)

    def monte_carlo(self, state: Uncollapsed, cells: Codes, unsampled: int, rng: Generator) -> float:
        """tau1 with the probability of each unique cell averaged over 500 memberships, as in the paper's code."""
        mixed = self._mixed(state, rng.gamma(2.0, 1.0, MEMBERSHIPS), rng)
        total = 0.0
        for first in range(0, len(cells), CELLS_AT_ONCE):
            some = cells[first : first + CELLS_AT_ONCE]
            product = mixed[0][:, some[:, 0]]
            for j in range(1, len(self.levels)):
                product *= mixed[j][:, some[:, j]]
            total += float(((1.0 - product.mean(axis=0)) ** unsampled).sum())
        return total

    def population(self, state: Uncollapsed, cells: Codes, unsampled: int, rng: Generator) -> int:
        """tau1 of one population: all who were not sampled are drawn, and uniques without any of them counted."""
        found = np.zeros(int(np.prod(self.levels)), dtype=np.int64)
        for first in range(0, unsampled, PEOPLE_AT_ONCE):
            size = min(PEOPLE_AT_ONCE, unsampled - first)
            edges = np.cumsum(self._shares(state, rng.gamma(2.0, 1.0, size), rng), axis=1)
            cell = np.zeros(size, dtype=np.int64)
            for j, levels in enumerate(self.levels):
                z = (edges < rng.random((size, 1)) * edges[:, -1:]).sum(axis=1)
                reach = np.cumsum(np.vstack([state.theta[j], np.full(levels, 1.0 / levels)]), axis=1)[z]
                level = (reach < rng.random((size, 1)) * reach[:, -1:]).sum(axis=1)
                cell = cell * levels + level
            found += np.bincount(cell, minlength=len(found))
        return int((found[np.ravel_multi_index(tuple(cells.T), self.levels)] == 0).sum())

    def _shares(self, state: Uncollapsed, alpha: Vector, rng: Generator) -> Vector:
        """Memberships of new people, the weight of new profiles last."""
        drawn = np.maximum(rng.standard_gamma(alpha[:, None] * state.g0), 1e-300)
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))

    def _mixed(self, state: Uncollapsed, alpha: Vector, rng: Generator) -> list[Vector]:
        """By key: the probability of each level under each membership."""
        g = self._shares(state, alpha, rng)
        return [
            g[:, :-1] @ theta + g[:, -1:] / levels for theta, levels in zip(state.theta, self.levels, strict=True)
        ]

    def _leave(self, state: Uncollapsed, key: int, record: int, before: int, rng: Generator) -> None:
        """A record that chose none of the profiles from before this key: one born since, or one of its own."""
        level = self.records[record, key]
        since = state.g[record, before:-1] * state.theta[key][before:, level]
        edges = np.cumsum(np.append(since, state.g[record, -1] / self.levels[key]))
        chosen = int((edges < rng.random() * edges[-1]).sum())
        state.z[record, key] = before + chosen
        if chosen == len(since):
            self._give_birth(state, key, record, rng)

    def _give_birth(self, state: Uncollapsed, key: int, record: int, rng: Generator) -> None:
        left = rng.beta(state.alpha0, 1.0)
        rest = state.g0[-1]
        state.g0 = np.concatenate([state.g0[:-1], [rest * (1 - left), max(rest * left, 1e-12)]])
        a, b = (np.maximum(state.alpha * weight, 1e-12) for weight in (state.g0[-1], state.g0[-2]))
        part = rng.beta(a, b)
        state.g = np.column_stack([state.g[:, :-1], state.g[:, -1] * (1 - part), state.g[:, -1] * part])
        for j, levels in enumerate(self.levels):
            shape = np.ones(levels)
            if j == key:
                shape[self.records[record, key]] += 1
            state.theta[j] = np.vstack([state.theta[j], rng.dirichlet(shape)])

    def _drop_empty(self, state: Uncollapsed) -> None:
        used, z = np.unique(state.z, return_inverse=True)
        state.z = z.reshape(state.z.shape)
        lost = state.g0[:-1].sum() - state.g0[used].sum()
        state.g0 = np.append(state.g0[used], state.g0[-1] + lost)

    def _draw_tables(self, state: Uncollapsed, rng: Generator) -> tuple[IntVector, IntVector]:
        n, J = state.z.shape
        K = len(state.g0) - 1
        tables, total = np.zeros(K, dtype=np.int64), np.zeros(n, dtype=np.int64)
        seated = np.zeros((n, K), dtype=np.int64)
        everybody = np.arange(n)
        for j in range(J):
            k = state.z[:, j]
            weight, before = state.alpha * state.g0[k], seated[everybody, k]
            opened = (rng.random(n) * (weight + before) < weight) | (before == 0)
            tables += np.bincount(k, opened, minlength=K).astype(np.int64)
            total += opened
            seated[everybody, k] += 1
        return tables, total

    def _draw_memberships(self, state: Uncollapsed, rng: Generator) -> None:
        n, K = len(state.z), len(state.g0) - 1
        shape = state.alpha[:, None] * state.g0
        flat = state.z + (np.arange(n) * (K + 1))[:, None]
        shape = shape + np.bincount(flat.ravel(), minlength=n * (K + 1)).reshape(n, K + 1)
        drawn = np.maximum(rng.standard_gamma(shape), 1e-300)
        state.g = drawn / drawn.sum(axis=1, keepdims=True)

    def _draw_profiles(self, state: Uncollapsed, rng: Generator) -> None:
        K = len(state.g0) - 1
        state.theta = []
        for j, levels in enumerate(self.levels):
            counts = np.bincount(state.z[:, j] * levels + self.records[:, j], minlength=K * levels)
            drawn = rng.standard_gamma(1.0 + counts.reshape(K, levels))
            state.theta.append(drawn / drawn.sum(axis=1, keepdims=True))


def _escobar_west(alpha: Vector, customers: int, tables: IntVector | int, rng: Generator) -> Vector:
    """Concentrations with a Gamma(2, 1) prior given customers and tables, by the auxiliary beta variable."""
    rate = 1.0 - np.log(rng.beta(alpha + 1.0, customers))
    odds = customers * rate
    less = rng.random(len(alpha)) * (tables + 1.0 + odds) < odds
    return np.asarray(rng.standard_gamma(2.0 + tables - less) / rate)
