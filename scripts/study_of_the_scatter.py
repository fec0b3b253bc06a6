"""How do cells scatter around the sequential logit on real populations? Prints Markdown tables.

For samples of every real table: the error of tau1 and tau2 by what is done with the posterior of log p; how many
people rare cells hold against the fit, and what that says of the factor behind it; how the error moves with the
sampling fraction, in populations thinned to a part of their people; and the error by the unit of the scatter, for
each population. The seeds are not those of the validation.

    python scripts/study_of_the_scatter.py [--seeds 2] [--jobs 2] [--tables NAMES]
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from multiprocessing import get_context

import numpy as np
from real_tables import BY_NAME, DECLARED, DEFAULT_FOLDER, read_population, sampled
from scipy import special
from scipy.optimize import brentq, minimize
from scipy.stats import nbinom

from keyhole.arrays import IntVector, Vector
from keyhole.models.sequential.cell_posterior import CellPosterior
from keyhole.models.sequential.joint import fit_joint
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import key_orders
from keyhole.models.sequential.scatter import Scatter
from keyhole.population.poisson import PoissonUnsampled
from keyhole.population.unsampled import UnsampledCounts
from keyhole.validation.population import KnownPopulation

SIZES, FIRST_SEED, ORDERS = ("500", "1,000", "2,000", "5,000", "10,000", "5%"), 201, 3
FRACTIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
EXPECTED = (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, np.inf)
UNITS = (0.0, 1e-8, 2e-8, 4e-8, 6e-8, 8e-8, 1.2e-7, 1.6e-7, 2.4e-7)
SOME_UNITS = (0.0, 1.25e-8, 2.5e-8, 5e-8)
FUNCTIONALS = ("mode", "half", "mean", "posterior", "scattered")
FURTHEST = 3.0


@dataclass(frozen=True, eq=False)
class Studied:
    """The uniques of one sample: moments of log p in each order, and how many people there are in their cells."""

    table: str
    size: str
    seed: int
    records: int
    people: int
    moments: Vector
    population_counts: IntVector

    @property
    def source(self) -> str:
        return self.table[:3]

    @property
    def posterior(self) -> CellPosterior:
        return CellPosterior.pooled(list(self.moments))

    def thinned(self, fraction: float) -> tuple[int, IntVector]:
        """The unsampled people, and those in the uniques' cells, had the sample been this share of everybody."""
        others = self.population_counts - 1
        outside = round(self.records / fraction) - self.records
        share = outside / (self.people - self.records)
        rng = np.random.default_rng(self.seed)
        return outside, np.asarray(rng.binomial(others, min(share, 1.0)))


def main() -> None:
    """Fit every sample and print the tables."""
    parser = argparse.ArgumentParser(description="How cells scatter around the sequential logit.")
    parser.add_argument("--tables", default=",".join(DECLARED))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    names = [name for name in options.tables.split(",") if (DEFAULT_FOLDER / BY_NAME[name].file).is_file()]
    places = product(range(FIRST_SEED, FIRST_SEED + options.seeds), SIZES, names)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        studied = list(pool.map(study, places))
    print_functionals(studied)
    print_crowding(studied)
    print_free_fit(studied)
    print_fractions(studied)
    print_units(studied)
    print_units_by_size(studied)


@cache
def population(name: str) -> KnownPopulation:
    return read_population(BY_NAME[name], DEFAULT_FOLDER)


def study(place: tuple[int, str, str]) -> Studied:
    """Fit one sample in all orders."""
    seed, size, name = place
    people = len(population(name))
    records = round(people / 20) if size == "5%" else int(size.replace(",", ""))
    sample, truth = sampled(population(name), records, seed)
    observed, rng, unique = Observed.of(sample), np.random.default_rng(seed), sample.table.uniques
    laws = [fit_joint(observed, order, None, rng=rng) for order in key_orders(observed, ORDERS)]
    moments = np.stack([law.moments[unique] for law in laws])
    return Studied(name, size, seed, records, people, moments, truth.population_counts)


def estimate(one: Studied, functional: str) -> UnsampledCounts:
    """The law of the unsampled counts by what is done with the posterior of log p."""
    outside = one.people - one.records
    if functional == "posterior":
        return one.posterior.unsampled(outside)
    if functional == "scattered":
        return Scatter().around(one.posterior, one.records).unsampled(outside)
    mode, bias, variance, _ = (one.moments[:, :, column] for column in range(4))
    plugged = {"mode": mode, "half": mode - variance / 2, "mean": mode + bias}[functional]
    return PoissonUnsampled(outside * np.exp(special.logsumexp(plugged, axis=0) - np.log(len(plugged))))


def print_functionals(studied: Sequence[Studied]) -> None:
    print("Mean log error, root mean square in brackets:\n")
    print("| n | " + " | ".join(f"{name}: tau1 | tau2" for name in FUNCTIONALS) + " |")
    print("|---" * (1 + 2 * len(FUNCTIONALS)) + "|")
    for size in SIZES:
        cells = []
        for functional in FUNCTIONALS:
            errors = np.array([_errors(one, estimate(one, functional)) for one in studied if one.size == size])
            bias, spread = np.nanmean(errors, axis=0), np.sqrt(np.nanmean(errors**2, axis=0))
            cells += [f"{100 * bias[i]:+.1f}% ({100 * spread[i]:.1f})" for i in range(2)]
        print(f"| {size} | " + " | ".join(cells) + " |")


def _errors(one: Studied, law: UnsampledCounts) -> tuple[float, float]:
    alone, match = float((one.population_counts == 1).sum()), float((1 / one.population_counts).sum())
    first = np.log(law.prob_none().sum() / alone) if alone else np.nan
    return float(first), float(np.log(law.mean_match().sum() / match))


def print_crowding(studied: Sequence[Studied]) -> None:
    """The shift of log p that makes tau2 right, by the number of records that the law expects in a cell."""
    print("\nThe shift of log p that makes tau2 right, by n p, without and with the scatter:\n")
    head = [f"{low:g} to {high:g}" for low, high in pairwise(EXPECTED)]
    print("| n | law | " + " | ".join(head) + " |\n" + "|---" * (2 + len(head)) + "|")
    for size, scattered in product(SIZES, (False, True)):
        own = [one for one in studied if one.size == size]
        shifts = [_crowding(own, low, high, scattered) for low, high in pairwise(EXPECTED)]
        print(f"| {size} | {'with' if scattered else 'without'} | " + " | ".join(shifts) + " |")


def _crowding(studied: Iterable[Studied], low: float, high: float, scattered: bool) -> str:
    parts, truth, known = [], 0.0, 0
    for one in studied:
        expected = one.records * np.exp(one.posterior.log_mean)
        inside = (expected >= low) & (expected < high)
        posterior = CellPosterior(one.posterior.log_mean[inside], one.posterior.shape[inside])
        parts.append((Scatter().around(posterior, one.records) if scattered else posterior, one))
        truth += float((1 / one.population_counts[inside]).sum())
        known += int(inside.sum())
    if known < 100:
        return ""

    def excess(shift: float) -> float:
        return sum(_match(part, one.people - one.records, shift) for part, one in parts) - truth

    return f"{_root(excess):+.2f}"


def _match(posterior: CellPosterior, outside: int, shift: float) -> float:
    return float(posterior.unsampled(outside, shift).mean_match().sum())


def _root(excess: Callable[[float], float]) -> float:
    if excess(-FURTHEST) <= 0 or excess(FURTHEST) >= 0:
        return np.nan
    return float(brentq(excess, -FURTHEST, FURTHEST, xtol=1e-3))


def print_free_fit(studied: Sequence[Studied]) -> None:
    """What the population counts say of the factor of seen cells when nothing ties its parts together.

    log E p moves by h + log(1 + d/(n p)) - log(1 + t n p), and 1/shape grows by s. A gamma factor of variance t
    has h = log(1 + t) and s = t/(1 + t).
    """
    print("\nThe factor of seen cells, fitted freely:\n")
    print("| population | n | h | t | s | d |\n|---|---|---|---|---|---|")
    for source, size in product(sorted({one.source for one in studied}), SIZES):
        own = [one for one in studied if one.source == source and one.size == size]
        bounds = [(-0.5, 0.5), (0.0, 2.0), (0.0, 2.0), (-15.0, -2.0)]
        found = minimize(_surprise, [0.0, 0.05, 0.05, -6.0], args=(own,), method="L-BFGS-B", bounds=bounds).x
        print(f"| {source} | {size} | {found[0]:.2f} | {found[1]:.2f} | {found[2]:.2f} | {np.exp(found[3]):.4f} |")


def _surprise(factor: Vector, studied: Iterable[Studied]) -> float:
    """Minus the log likelihood of the population counts under negative binomial laws."""
    h, t, s, log_d = factor
    total = 0.0
    for one in studied:
        posterior, others = one.posterior, one.population_counts - 1
        expected = one.records * np.exp(posterior.log_mean)
        log_mean = posterior.log_mean + h + np.log1p(np.exp(log_d) / expected) - np.log1p(t * expected)
        shape = 1.0 / (1.0 / posterior.shape + s)
        mean = (one.people - one.records) * np.exp(log_mean)
        total -= float(nbinom.logpmf(others, shape, shape / (shape + mean)).sum())
    return total


def print_fractions(studied: Sequence[Studied]) -> None:
    """Mean log errors had the sample been a larger part of its population."""
    print("\nMean log error of tau1 / tau2 by sampling fraction, without and with the scatter:\n")
    print("| n | law | as it is | " + " | ".join(f"{fraction:.0%}" for fraction in FRACTIONS) + " |")
    print("|---" * (3 + len(FRACTIONS)) + "|")
    for size, scattered in product(SIZES, (False, True)):
        own = [one for one in studied if one.size == size]
        cells = [_fraction_errors(own, None, scattered)]
        cells += [_fraction_errors(own, fraction, scattered) for fraction in FRACTIONS]
        print(f"| {size} | {'with' if scattered else 'without'} | " + " | ".join(cells) + " |")


def _fraction_errors(studied: Sequence[Studied], fraction: float | None, scattered: bool) -> str:
    errors = []
    for one in studied:
        its = one.records / one.people if fraction is None else fraction
        if its < one.records / one.people:
            continue
        outside, others = one.thinned(its)
        posterior = Scatter().around(one.posterior, one.records) if scattered else one.posterior
        law = posterior.unsampled(outside)
        truth = (others == 0).sum(), (1 / (1 + others)).sum()
        errors.append([np.log(law.prob_none().sum() / truth[0]), np.log(law.mean_match().sum() / truth[1])])
    if not errors:
        return ""
    first, second = np.mean(errors, axis=0)
    return f"{100 * first:+.1f}% / {100 * second:+.1f}%"


def print_units(studied: Sequence[Studied]) -> None:
    """Root mean square of both log errors by unit, from 1,000 records on."""
    print("\nRoot mean square log error of tau1 / tau2 by the unit, n from 1,000 on:\n")
    print("| population | " + " | ".join(f"{unit:g}" for unit in UNITS) + " |\n" + "|---" * (1 + len(UNITS)) + "|")
    for source in sorted({one.source for one in studied}):
        errors = np.array([_unit_errors(studied, source, unit) for unit in UNITS])
        print(f"| {source} | " + " | ".join(f"{100 * a:.1f}% / {100 * b:.1f}%" for a, b in errors) + " |")


def _unit_errors(studied: Iterable[Studied], source: str, unit: float) -> Vector:
    errors = [
        _errors(one, _scattered(one, Scatter(unit)))
        for one in studied
        if one.source == source and one.size != "500"
    ]
    return np.asarray(np.sqrt(np.nanmean(np.square(errors), axis=0)))


def _scattered(one: Studied, scatter: Scatter) -> UnsampledCounts:
    return scatter.around(one.posterior, one.records).unsampled(one.people - one.records)


def print_units_by_size(studied: Sequence[Studied]) -> None:
    """Mean log errors by unit and sample size: whether samples of all sizes want the same."""
    print("\nMean log error of tau1 / tau2 by the unit and the sample size:\n")
    print("| population | n | " + " | ".join(f"{unit:g}" for unit in SOME_UNITS) + " |")
    print("|---" * (2 + len(SOME_UNITS)) + "|")
    for source, size in product(sorted({one.source for one in studied}), SIZES):
        own = [one for one in studied if one.source == source and one.size == size]
        cells = []
        for unit in SOME_UNITS:
            first, second = np.nanmean([_errors(one, _scattered(one, Scatter(unit))) for one in own], axis=0)
            cells.append(f"{100 * first:+.1f}% / {100 * second:+.1f}%")
        print(f"| {source} | {size} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
