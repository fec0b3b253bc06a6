"""How far is every log p of a sequential logit off together, on each population? Prints Markdown tables.

For samples of every real table: the common shift of log p under which expected tau1 + tau2 equal the truth, beside
what nested subsamples found and what chance alone makes of it. Then the constants of the shift's prior that make
these shifts most likely, for each population by itself, and how often intervals with the constants of one
population hold the shifts of the other. The seeds are not those of the validation.

    python scripts/study_of_the_shift.py [--seeds 6] [--jobs 2] [--tables NAMES]
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from multiprocessing import get_context

import numpy as np
from real_tables import DECLARED, DEFAULT_FOLDER, is_here, named_population, sampled
from scipy.optimize import brentq

from keyhole.arrays import Vector
from keyhole.inference.threads import own_threads_only
from keyhole.models.catalogue import model_named
from keyhole.models.sequential.model import SequentialLogitFit
from keyhole.models.sequential.scatter import Scatter
from keyhole.models.sequential.shift import PRIOR_DEVIATION, SAMPLE_VARIANCE, UNSEEN_VARIANCE
from keyhole.validation.population import KnownPopulation

FIRST_SEED, FURTHEST, STEP = 301, 3.0, 0.01
SIZES = {"500": 1, "1,000": 1, "2,000": 1, "5,000": 1, "10,000": 2, "5%": 3}
"""Sizes of the samples, and of how many seeds one is used: large samples differ less, and take longer."""

DEVIATIONS = np.array([0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04])
UNSEEN = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0])
"""Constants that are tried: the prior's deviation at any size, and its variance times n."""


@dataclass(frozen=True)
class Needed:
    """The shift that one sample needed.

    Attributes
    ----------
    shift, chance
        The shift that makes tau1 + tau2 right, and its variance were the law of every cell known.
    nested, nested_variance
        What the sample said of itself as a population; None where it was not asked.
    """

    table: str
    size: str
    records: int
    shift: float
    chance: float
    nested: float | None
    nested_variance: float | None

    @property
    def source(self) -> str:
        return self.table[:3]


def main() -> None:
    """Fit every sample and print what the shifts say."""
    parser = argparse.ArgumentParser(description="The common shift of log p on real tables.")
    parser.add_argument("--tables", default=",".join(DECLARED))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    names = [name for name in options.tables.split(",") if is_here(name, DEFAULT_FOLDER)]
    places = [
        (seed, size, name)
        for seed, size, name in product(range(options.seeds), SIZES, names)
        if seed % SIZES[size] == 0
    ]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        found = []
        for done, one in enumerate(pool.map(study, places), start=1):
            found.append(one)
            print(f"{done}/{len(places)} {one}", file=sys.stderr, flush=True)
    print_shifts(found)
    print_constants(found)


@cache
def population(name: str) -> KnownPopulation:
    return named_population(name, DEFAULT_FOLDER)


def study(place: tuple[int, str, str]) -> Needed:
    """Fit one sample and find the shift that would have made its risk right."""
    seed, size, name = place
    people = len(population(name))
    records = round(people / 20) if size == "5%" else int(size.replace(",", ""))
    sample, truth = sampled(population(name), records, FIRST_SEED + seed)
    with own_threads_only():
        fit = model_named("sequential-logit").fit(sample, rng=np.random.default_rng(FIRST_SEED + seed))
    assert isinstance(fit, SequentialLogitFit)
    cells = Scatter().around(fit.posterior, records)

    def risks(shift: float) -> Vector:
        law = cells.unsampled(people - records, shift)
        return law.prob_none() + law.mean_match()

    wanted = truth.tau1 + truth.tau2
    shift = float(brentq(lambda one: float(risks(one).sum()) - wanted, -FURTHEST, FURTHEST, xtol=1e-4))
    law = cells.unsampled(people - records, shift)
    rng = np.random.default_rng(seed)
    drawn = [float((alone := 1.0 / (1.0 + law.draw(rng))).sum() + (alone == 1.0).sum()) for _ in range(200)]
    slope = (risks(shift + STEP).sum() - risks(shift - STEP).sum()) / (2 * STEP)
    asked = fit.shift.nested_deviation
    return Needed(
        name,
        size,
        records,
        shift,
        float(np.var(drawn) / slope**2),
        fit.shift.nested,
        None if asked is None else asked**2,
    )


def residual(one: Needed, deviation: float, unseen: float) -> tuple[float, float]:
    """How far the shift was from where these constants expect it, and the variance they expect of that."""
    prior, sample = deviation**2 + unseen / one.records, SAMPLE_VARIANCE / one.records
    if one.nested is None or one.nested_variance is None:
        return one.shift, prior + sample + one.chance
    weight = prior / (prior + one.nested_variance)
    return one.shift - weight * one.nested, prior * (1 - weight) + sample + one.chance


def likelihood(found: Sequence[Needed], deviation: float, unseen: float) -> float:
    rows = np.array([residual(one, deviation, unseen) for one in found])
    return float(-0.5 * (rows[:, 0] ** 2 / rows[:, 1] + np.log(rows[:, 1])).sum())


def best(found: Sequence[Needed]) -> tuple[float, float]:
    """The constants that make the shifts most likely."""
    return max(product(DEVIATIONS, UNSEEN), key=lambda pair: likelihood(found, *pair))


def held(found: Sequence[Needed], deviation: float, unseen: float) -> float:
    rows = np.array([residual(one, deviation, unseen) for one in found])
    return float((np.abs(rows[:, 0]) <= 1.96 * np.sqrt(rows[:, 1])).mean())


def print_shifts(found: Sequence[Needed]) -> None:
    """By table and size: mean and deviation of the shift, and what chance alone makes of the latter."""
    print("| table | n | samples | mean shift | deviation | by chance | nested |")
    print("|---" * 7 + "|")
    for (table, size), own in grouped(found):
        shifts = np.array([one.shift for one in own])
        chance = np.sqrt(np.mean([one.chance for one in own]))
        nested = [one.nested for one in own if one.nested is not None]
        said = f"{np.mean(nested):+.3f}" if nested else ""
        spread = f"{shifts.std(ddof=1):.3f}" if len(own) > 1 else ""
        print(f"| {table} | {size} | {len(own)} | {shifts.mean():+.3f} | {spread} | {chance:.3f} | {said} |")
    print()


def grouped(found: Sequence[Needed]) -> Iterator[tuple[tuple[str, str], list[Needed]]]:
    for place in dict.fromkeys((one.table, size) for one, size in product(found, SIZES)):
        if own := [one for one in found if (one.table, one.size) == place]:
            yield place, own


def print_constants(found: Sequence[Needed]) -> None:
    """The best constants of each population, and what those of one hold of the other, by size."""
    sources = sorted({one.source for one in found})
    print("| constants of | deviation | variance times n | held of | " + " | ".join(SIZES) + " | all |")
    print("|---" * (5 + len(SIZES)) + "|")
    constants = {source: best([one for one in found if one.source == source]) for source in sources}
    constants["both"] = best(found)
    constants["the model"] = (PRIOR_DEVIATION, UNSEEN_VARIANCE)
    for name, pair in constants.items():
        for source in sources:
            own = [one for one in found if one.source == source]
            sizes = [[one for one in own if one.size == size] for size in SIZES]
            shares = " | ".join(f"{held(part, *pair):.0%}" if part else "" for part in (*sizes, own))
            print(f"| {name} | {pair[0]:g} | {pair[1]:g} | {source} | {shares} |")


if __name__ == "__main__":
    main()
