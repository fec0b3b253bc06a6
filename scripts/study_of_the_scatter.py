"""How far are cells, and all of them together, from the sequential logit on real people? Prints Markdown tables.

For samples of many tables whose keys nobody chose (`drawn_keys.py`), from two populations: the error by what is
done with the posterior of log p; how many people rare cells hold against the fit; the error by the unit of the
scatter; and the common shift of log p under which expected tau1 + tau2 equal the truth, beside what nested
subsamples found and what chance alone makes of it, the constants of the shift's prior that make these most
likely, for each population by itself, and how many of the other's shifts they hold. Neither keys nor samples are
those of the validation.

    python scripts/study_of_the_scatter.py [--tables 20] [--jobs 2] [--sizes 1000,2000,5000,10000] [--cache FILE]
    python scripts/study_of_the_scatter.py --declared --samples 8 --sizes 1000,5000
"""

import argparse
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise, product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from drawn_keys import FILES, drawn_tables
from real_tables import BY_NAME, DECLARED, DEFAULT_FOLDER, RealTable, read_population, sampled
from scipy import special
from scipy.optimize import brentq

from keyhole.arrays import IntVector, Vector
from keyhole.inference.threads import own_threads_only
from keyhole.models.catalogue import model_named
from keyhole.models.sequential.cell_posterior import CellPosterior
from keyhole.models.sequential.joint import Moment
from keyhole.models.sequential.model import SequentialLogitFit
from keyhole.models.sequential.scatter import UNIT, Scatter
from keyhole.models.sequential.shift import (
    BALANCED_KEYS,
    BY_KEY,
    PRIOR_DEVIATION,
    SAMPLE_VARIANCE,
    UNSEEN_VARIANCE,
)
from keyhole.numerics.log_gamma_law import log_deviation
from keyhole.population.poisson import PoissonUnsampled
from keyhole.validation.population import KnownPopulation

KEYS_SEED, FIRST_SEED = 1, 2001
EXPECTED = (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, np.inf)
UNITS = (0.0, 2.5e-8, 5e-8, 1e-7, 2e-7, 4e-7, 8e-7)
FURTHEST, STEP = 2.5, 0.02
BY_KEYS = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
DEVIATIONS = (0.0, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08)
BY_SIZE = (0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0)
"""Constants that are tried: what a key less adds to the shift, times n; its deviation; its variance times n."""


@dataclass(frozen=True, eq=False)
class Studied:
    """The uniques of one sample: moments of log p by order, people in their cells, and what subsamples said."""

    source: str
    keys: int
    records: int
    people: int
    moments: Vector
    population_counts: IntVector
    nested: float | None

    @cached_property
    def cells(self) -> CellPosterior:
        return CellPosterior.pooled(list(self.moments))

    @cached_property
    def truth(self) -> Vector:
        counts = self.population_counts
        return np.array([(counts == 1).sum(), (1.0 / counts).sum()])

    def risks(self, unit: float, shift: float = 0.0, cells: CellPosterior | None = None) -> tuple[Vector, Vector]:
        return Scatter(unit).risks(cells or self.cells, self.records, self.people - self.records, shift)

    def taus(self, unit: float, shift: float = 0.0) -> Vector:
        return np.array([risk.sum() for risk in self.risks(unit, shift)])


@dataclass(frozen=True)
class Needed:
    """The shift that one sample needed, and its variance were the law of every cell known."""

    source: str
    keys: int
    records: int
    shift: float
    chance: float
    nested: float | None

    def residual(self, by_key: float, deviation: float, by_size: float) -> tuple[float, float]:
        """How far the shift was from what these constants expect, and the variance they give it."""
        expected = by_key * (BALANCED_KEYS - self.keys) / self.records
        return self.shift - expected, deviation**2 + by_size / self.records + self.chance


def main() -> None:
    """Fit every sample and print the tables."""
    parser = argparse.ArgumentParser(description="How cells scatter around the sequential logit.")
    parser.add_argument("--tables", type=int, default=20, help="of each population")
    parser.add_argument("--declared", action="store_true", help="the tables of the validation, each by itself")
    parser.add_argument("--samples", type=int, default=1, help="of each table and size")
    parser.add_argument("--sizes", default="1000,2000,5000,10000")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="a file to keep fits in")
    options = parser.parse_args()
    studied = studied_samples(options)
    sizes = sorted({one.records for one in studied})
    print_functionals(studied, sizes)
    print_crowding(studied, sizes)
    print_units(studied, sizes)
    shifts = [found for one in studied if (found := needed(one)) is not None]
    print_shifts(shifts, sizes)
    if not options.declared:
        print_shifts_by_keys(shifts, sizes)
        print_constants(shifts, sizes)


def studied_samples(options: argparse.Namespace) -> list[Studied]:
    """All fits, from the cache where there is one."""
    if options.cache and options.cache.is_file():
        return list(pickle.loads(options.cache.read_bytes()))
    here = [source for source, file in FILES.items() if (DEFAULT_FOLDER / file).is_file()]
    if options.declared:
        tables = [BY_NAME[name] for name in DECLARED if name[:3] in here]
    else:
        tables = [
            one for source in here for one in drawn_tables(source, options.tables, KEYS_SEED, DEFAULT_FOLDER)
        ]
    # Each table has its own samples: those of one seed are the same people.
    every = product(tables, options.sizes.split(","), range(options.samples))
    places = [(table, int(size), FIRST_SEED + place) for place, (table, size, _) in enumerate(every)]
    found = []
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for done, one in enumerate(pool.map(study, places), start=1):
            found.append(one)
            print(f"{done}/{len(places)} {one.source} n={one.records:,}", file=sys.stderr, flush=True)
    if options.cache:
        options.cache.write_bytes(pickle.dumps(found))
    return found


@cache
def population(table: RealTable) -> KnownPopulation:
    return read_population(table, DEFAULT_FOLDER)


def study(place: tuple[RealTable, int, int]) -> Studied:
    """Fit one sample."""
    table, size, seed = place
    sample, truth = sampled(population(table), size, seed)
    with own_threads_only():
        fit = model_named("sequential-logit", draws=2).fit(sample, rng=np.random.default_rng(seed))
    assert isinstance(fit, SequentialLogitFit)
    moments = np.stack([law.moments[sample.table.uniques] for law in fit.laws])
    keys, people = len(table.keys.split(",")), len(population(table))
    source = table.name if table.name in DECLARED else table.name[:3]
    return Studied(source, keys, size, people, moments, truth.population_counts, fit.shift.nested)


def print_row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def print_head(*cells: str) -> None:
    print_row(*cells)
    print("|---" * len(cells) + "|")


def by_place(studied: Sequence[Studied], sizes: Sequence[int]) -> Iterator[tuple[str, int, list[Studied]]]:
    for source, size in product(sorted({one.source for one in studied}), sizes):
        yield source, size, [one for one in studied if one.source == source and one.records == size]


def errors(own: Sequence[Studied], taus: Callable[[Studied], Vector]) -> str:
    """Bias of the summed estimate, and root mean square of the log error, of tau1 and tau2."""
    found, truth = np.array([taus(one) for one in own]), np.array([one.truth for one in own])
    bias = found.sum(axis=0) / truth.sum(axis=0) - 1
    logs = np.log(np.maximum(found, 1e-9) / np.maximum(truth, 0.5))
    spread = np.sqrt(np.mean(logs**2, axis=0))
    return " / ".join(f"{100 * one:+.1f}% ({100 * two:.1f})" for one, two in zip(bias, spread, strict=True))


def functional(name: str) -> Callable[[Studied], Vector]:
    """tau1 and tau2 by what is done with the posterior of log p."""

    def plugged(one: Studied) -> Vector:
        log_p, bias, curved = (one.moments[:, :, column] for column in (Moment.LOG_P, Moment.BIAS, Moment.CURVED))
        taken = {"mode": log_p, "half": log_p - curved / 2, "mean": log_p + bias}[name]
        mean = np.exp(special.logsumexp(taken, axis=0)) / len(taken)
        law = PoissonUnsampled((one.people - one.records) * mean)
        return np.array([law.prob_none().sum(), law.mean_match().sum()])

    def one_gamma(one: Studied) -> Vector:
        shape = np.sqrt(one.moments[:, :, Moment.CURVED]).mean(axis=0) ** -2.0
        cells = CellPosterior(one.cells.mean, log_deviation(shape), shape)
        return np.array([risk.sum() for risk in one.risks(0.0, cells=cells)])

    if name == "one gamma":
        return one_gamma
    if name in ("posterior", "scattered"):
        return lambda one: one.taus(UNIT if name == "scattered" else 0.0)
    return plugged


def print_functionals(studied: Sequence[Studied], sizes: Sequence[int]) -> None:
    names = ("mode", "half", "mean", "one gamma", "posterior", "scattered")
    print("Bias of tau1 / tau2, root mean square log error in brackets:\n")
    print_head("population", "n", "samples", *names)
    for source, size, own in by_place(studied, sizes):
        print_row(source, f"{size:,}", len(own), *(errors(own, functional(name)) for name in names))


def print_crowding(studied: Sequence[Studied], sizes: Sequence[int]) -> None:
    """The shift of log p that makes tau2 right, by the number of records that the law expects in a cell."""
    print("\nThe shift of log p that makes tau2 right, by n p, without and with the scatter:\n")
    print_head("n", "law", *(f"{low:g} to {high:g}" for low, high in pairwise(EXPECTED)))
    for size, unit in product(sizes, (0.0, UNIT)):
        own = [one for one in studied if one.records == size]
        shifts = [_crowding(own, low, high, unit) for low, high in pairwise(EXPECTED)]
        print_row(f"{size:,}", "with" if unit else "without", *shifts)


def _crowding(studied: Sequence[Studied], low: float, high: float, unit: float) -> str:
    parts, truth, known = [], 0.0, 0
    for one in studied:
        cells, expected = one.cells, one.records * np.exp(one.cells.log_moment(1.0))
        inside = (expected >= low) & (expected < high)
        parts.append((one, CellPosterior(cells.mean[inside], cells.deviation[inside], cells.shape[inside])))
        truth += float((1 / one.population_counts[inside]).sum())
        known += int(inside.sum())
    if known < 100:
        return ""
    found = root(lambda shift: sum(float(one.risks(unit, shift, part)[1].sum()) for one, part in parts) - truth)
    return "" if found is None else f"{found:+.2f}"


def root(excess: Callable[[float], float]) -> float | None:
    if excess(-FURTHEST) <= 0 or excess(FURTHEST) >= 0:
        return None
    return float(brentq(excess, -FURTHEST, FURTHEST, xtol=1e-3))


def print_units(studied: Sequence[Studied], sizes: Sequence[int]) -> None:
    print("\nThe same errors by the unit of the scatter:\n")
    print_head("population", "n", *(f"{unit:g}" for unit in UNITS))
    for source, size, own in by_place(studied, sizes):
        print_row(source, f"{size:,}", *(errors(own, lambda one, unit=unit: one.taus(unit)) for unit in UNITS))


def needed(one: Studied) -> Needed | None:
    """The shift that makes tau1 + tau2 right; None where none does."""
    wanted = float(one.truth.sum())
    shift = root(lambda given: float(one.taus(UNIT, given).sum()) - wanted)
    if shift is None:
        return None
    rng = np.random.default_rng(one.records)
    drawn = []
    for _ in range(60):
        log_p = one.cells.log_draw(rng.standard_normal(len(one.cells.mean))) + shift
        alone = 1.0 / (1.0 + Scatter().unsampled(log_p, one.records, one.people - one.records).draw(rng))
        drawn.append(float(alone.sum() + (alone == 1.0).sum()))
    slope = (one.taus(UNIT, shift + STEP).sum() - one.taus(UNIT, shift - STEP).sum()) / (2 * STEP)
    return Needed(one.source, one.keys, one.records, shift, float(np.var(drawn) / slope**2), one.nested)


def print_shifts(found: Sequence[Needed], sizes: Sequence[int]) -> None:
    """By population and size: the shifts, what chance alone makes of them, and how near subsamples came."""
    print("\nThe shift that each sample needed:\n")
    print_head("population", "n", "samples", "mean", "deviation", "by chance", "nested: mean", "correlation")
    for source, size in product(sorted({one.source for one in found}), sizes):
        own = [one for one in found if one.source == source and one.records == size]
        shifts, chance = np.array([one.shift for one in own]), np.sqrt(np.mean([one.chance for one in own]))
        asked = [(one.nested, one.shift) for one in own if one.nested is not None]
        nested = f"{np.mean([pair[0] for pair in asked]):+.3f}" if asked else ""
        together = f"{np.corrcoef(np.transpose(asked))[0, 1]:+.2f}" if len(asked) > 2 else ""
        numbers = (f"{shifts.mean():+.3f}", f"{shifts.std(ddof=1):.3f}", f"{chance:.3f}")
        print_row(source, f"{size:,}", len(own), *numbers, nested, together)


Constants = tuple[float, float, float]


def print_shifts_by_keys(found: Sequence[Needed], sizes: Sequence[int]) -> None:
    """The mean shift by the number of keys, samples weighed by what chance leaves of them."""
    print("\nThe mean shift by the number of keys, its standard error in brackets:\n")
    print_head("keys", *(f"{size:,}" for size in sizes))
    for low, high in ((5, 6), (7, 7), (8, 8), (9, 10)):
        cells = []
        for size in sizes:
            own = [one for one in found if low <= one.keys <= high and one.records == size]
            three = 0.0, PRIOR_DEVIATION, UNSEEN_VARIANCE + SAMPLE_VARIANCE
            weight = np.array([1.0 / one.residual(*three)[1] for one in own])
            mean = float(np.average([one.shift for one in own], weights=weight))
            cells.append(f"{mean:+.3f} ({weight.sum() ** -0.5:.3f})")
        print_row(low if low == high else f"{low} to {high}", *cells)


def likelihood(found: Sequence[Needed], constants: Constants) -> float:
    rows = np.array([one.residual(*constants) for one in found])
    return float(-0.5 * (rows[:, 0] ** 2 / rows[:, 1] + np.log(rows[:, 1])).sum())


def held(found: Sequence[Needed], constants: Constants) -> str:
    rows = np.array([one.residual(*constants) for one in found]).reshape(-1, 2)
    return f"{np.mean(np.abs(rows[:, 0]) <= 1.96 * np.sqrt(rows[:, 1])):.0%}" if len(rows) else ""


def best(found: Sequence[Needed]) -> Constants:
    """The most likely constants."""
    return max(product(BY_KEYS, DEVIATIONS, BY_SIZE), key=lambda constants: likelihood(found, constants))


def print_constants(found: Sequence[Needed], sizes: Sequence[int]) -> None:
    """The most likely constants of each population, and how many of the shifts of each their intervals hold."""
    print("\nConstants of the shift:\n")
    sources = sorted({one.source for one in found})
    constants = {source: best([one for one in found if one.source == source]) for source in sources}
    constants["both"] = best(found)
    constants["the model"] = (BY_KEY, PRIOR_DEVIATION, UNSEEN_VARIANCE + SAMPLE_VARIANCE)
    told = "constants of", "a key less, times n", "deviation", "variance times n", "held of"
    print_head(*told, *(f"{size:,}" for size in sizes), "all")
    for (name, three), source in product(constants.items(), sources):
        own = [one for one in found if one.source == source]
        shares = [held([one for one in own if one.records == size], three) for size in sizes]
        print_row(name, *(f"{one:g}" for one in three), source, *shares, held(own, three))


if __name__ == "__main__":
    main()
