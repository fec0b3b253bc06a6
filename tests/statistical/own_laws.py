"""Populations drawn from the models' own laws, person by person or cell by cell, never through the tested code."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable


@dataclass(frozen=True)
class Drawn:
    """A population by cell, the sample of it, and the survey weights of the cells if there are any."""

    population: IntVector
    counts: IntVector
    weights: Vector | None = None

    @property
    def sample(self) -> Sample:
        occupied = np.flatnonzero(self.counts)
        table = ContingencyTable((_key(len(self.counts)),), occupied[:, None], self.counts[occupied], self.weights)
        return Sample(table, int(self.population.sum()))

    @property
    def truth(self) -> tuple[float, float]:
        """tau1 and tau2."""
        sizes = self.population[self.counts == 1]
        return float((sizes == 1).sum()), float((1 / sizes).sum())


@lru_cache(maxsize=4)
def _key(cells: int) -> KeyVariable:
    return KeyVariable("cell", tuple(str(i) for i in range(cells)))


Law = Callable[[Generator], Drawn]


def restaurant(theta: float, sigma: float, people: int, records: int) -> Law:
    """Seat people one by one; the first ``records`` of them are the sample."""

    def draw(rng: Generator) -> Drawn:
        seat: list[int] = []
        size: list[int] = []
        opens, picks = rng.random(people).tolist(), rng.random(people).tolist()
        for i in range(people):
            if i == 0 or opens[i] * (theta + i) < theta + len(size) * sigma:
                seat.append(len(size))
                size.append(1)
                continue
            # The table of a random earlier guest, refused with chance sigma / size: weights size - sigma.
            table = seat[int(picks[i] * i)]
            while sigma and rng.random() * size[table] < sigma:
                table = seat[int(rng.random() * i)]
            seat.append(table)
            size[table] += 1
        return Drawn(np.array(size), np.bincount(seat[:records], minlength=len(size)))

    return draw


def gamma_rates(cells: int, alpha: float, people: int, records: int) -> Law:
    def draw(rng: Generator) -> Drawn:
        rate = rng.standard_gamma(alpha, cells)
        return _sampled(rng.multinomial(people, rate / rate.sum()), records, rng)

    return draw


def slide(cells: int, alpha: float, odds: float, fraction: float) -> Law:
    def draw(rng: Generator) -> Drawn:
        return _thinned(1 + rng.poisson(rng.standard_gamma(alpha, cells) * odds), fraction, rng)

    return draw


def inverse_gaussian_rates(cells: int, mean: float, dispersion: float, fraction: float) -> Law:
    def draw(rng: Generator) -> Drawn:
        return _thinned(rng.poisson(rng.wald(mean, 2 * mean**2 / dispersion, cells)), fraction, rng)

    return draw


def sibuya_sizes(cells: int, sigma: float, fraction: float) -> Law:
    """Sizes whose law, once zeros are dropped, sampling does not change; cut where nobody is seen only once."""

    def draw(rng: Generator) -> Drawn:
        sizes = np.minimum(rng.geometric(rng.beta(sigma, 1 - sigma, cells)), 50_000)
        return _thinned(sizes, fraction, rng)

    return draw


def inverse_sampling(uniques: int, doubles: int) -> Law:
    """F given f is negative binomial with each cell's own inclusion probability, as its weight says."""

    def draw(rng: Generator) -> Drawn:
        counts = np.repeat([1, 2], [uniques, doubles])
        inclusion = rng.uniform(0.05, 0.5, len(counts))
        population = counts + rng.negative_binomial(counts, inclusion)
        return Drawn(population, counts, counts / inclusion)

    return draw


def _sampled(population: IntVector, records: int, rng: Generator) -> Drawn:
    return Drawn(population, rng.multivariate_hypergeometric(population, records, method="marginals"))


def _thinned(population: IntVector, fraction: float, rng: Generator) -> Drawn:
    return _sampled(population, round(fraction * int(population.sum())), rng)
