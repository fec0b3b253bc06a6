"""What is left over by the sequential logit on real populations, and can a sample tell? Prints Markdown tables.

For samples of every real table: the error of tau1 and tau2 by what is done with the posterior of log p (its mode,
half its variance off, its mean, all of it), the allowance that would have made the whole posterior right, and the
allowance that subsamples of the sample find. The seeds are not those of the validation.

    python scripts/study_of_the_allowance.py [--seeds 4] [--jobs 2] [--tables NAMES]
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product

import numpy as np
from numpy.random import Generator
from real_tables import BY_NAME, DEFAULT_FOLDER, Population, read_population
from scipy.optimize import brentq

from keyhole.arrays import IntVector, Vector
from keyhole.models.sequential.cell_posterior import CellPosterior
from keyhole.models.sequential.joint import fit_joint
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import key_orders
from keyhole.population.multinomial import MultinomialUnsampled

SIZES, NESTED_SIZES, REPLICATES, FIRST_SEED = (500, 1000, 2000, 5000, 10000), (500, 1000, 2000), 6, 201
FUNCTIONALS = ("mode", "half", "mean", "posterior", "with 0.08")
FURTHEST = 2.5

Risk = Callable[[float], tuple[float, float]]
"""tau1 and tau2 as functions of the allowance."""


def main() -> None:
    """Run every sample and print three tables."""
    parser = argparse.ArgumentParser(description="The allowance of the sequential logit on real tables.")
    parser.add_argument("--tables", default=",".join(BY_NAME))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    names = [name for name in options.tables.split(",") if (DEFAULT_FOLDER / BY_NAME[name].file).is_file()]
    places = list(product(names, SIZES, range(FIRST_SEED, FIRST_SEED + options.seeds)))
    with ProcessPoolExecutor(options.jobs) as pool:
        found = dict(zip(places, pool.map(study, places), strict=True))
    print_errors(found)
    print_allowances(found, names)
    print_nested(found)


Place = tuple[str, int, int]
Found = dict[str, tuple[float, float]]


def study(place: Place) -> Found:
    """Errors of each functional, the right allowance, and what subsamples say."""
    name, size, seed = place
    sample, truth = population(name).sampled(size, seed)
    observed = Observed.of(sample)
    rng = np.random.default_rng(seed)
    unique = sample.table.counts == 1
    moments = moments_of(observed, unique, rng)
    right = (float(truth.tau1), truth.tau2)
    found: Found = {}
    for functional in FUNCTIONALS:
        estimate = risk_of(moments, sample.unsampled_size, functional)(0.08 if functional[0] == "w" else 0.0)
        found[functional] = (np.log(estimate[0] / right[0]), np.log(estimate[1] / right[1]))
    found["allowance"] = allowances([(moments, right)], sample.unsampled_size)
    for part in NESTED_SIZES:
        if 2 * part <= size:
            runs = list(subsamples(observed, sample.table.counts, part, rng))
            found[f"nested {part}"] = allowances(runs, size - part)
    return found


@cache
def population(name: str) -> Population:
    return read_population(BY_NAME[name], DEFAULT_FOLDER)


def moments_of(observed: Observed, unique: IntVector, rng: Generator) -> Vector:
    """Moments of log p in the first order, at the sample uniques."""
    return fit_joint(observed, key_orders(observed, 1)[0], None, rng=rng).moments[unique]


def subsamples(
    observed: Observed, counts: IntVector, size: int, rng: Generator
) -> Iterator[tuple[Vector, tuple[float, float]]]:
    """Moments and truth of subsamples, the sample being their population."""
    for _ in range(REPLICATES):
        taken = rng.multivariate_hypergeometric(counts, size, method="marginals")
        unique = taken[taken > 0] == 1
        people = counts[taken > 0][unique]
        truth = (float((people == 1).sum()), float((1 / people).sum()))
        yield moments_of(observed.subset(taken), unique, rng), truth


def risk_of(moments: Vector, unsampled: int, functional: str) -> Risk:
    """tau1 and tau2 from the moments of log p, as functions of the allowance."""
    mode, bias, variance, _ = moments.T
    plugged = {"mode": mode, "half": mode - variance / 2, "mean": mode + bias}

    def risk(allowance: float) -> tuple[float, float]:
        if functional in plugged:
            law = MultinomialUnsampled(np.exp(np.minimum(plugged[functional] + allowance, 0.0)), unsampled)
            return float(law.prob_none().sum()), float(law.mean_match().sum())
        whole = CellPosterior.pooled([moments]).unsampled(unsampled, allowance)
        return float(whole.prob_none().sum()), float(whole.mean_match().sum())

    return risk


def allowances(runs: list[tuple[Vector, tuple[float, float]]], unsampled: int) -> tuple[float, float]:
    """The allowances that make tau1, and tau2, right over all runs together."""
    risks = [risk_of(moments, unsampled, "posterior") for moments, _ in runs]

    def excess(allowance: float, which: int) -> float:
        return sum(risk(allowance)[which] - truth[which] for risk, (_, truth) in zip(risks, runs, strict=True))

    def solve(which: int) -> float:
        of = partial(excess, which=which)
        return float(brentq(of, -FURTHEST, FURTHEST, xtol=1e-3)) if of(-FURTHEST) > 0 > of(FURTHEST) else np.nan

    return solve(0), solve(1)


def print_errors(found: dict[Place, Found]) -> None:
    print("| n | " + " | ".join(f"{name}: tau1 | tau2" for name in FUNCTIONALS) + " |")
    print("|---" * (1 + 2 * len(FUNCTIONALS)) + "|")
    for size in SIZES:
        cells = []
        for functional in FUNCTIONALS:
            errors = np.array([one[functional] for (_, n, _), one in found.items() if n == size])
            bias, spread = errors.mean(axis=0), np.sqrt((errors**2).mean(axis=0))
            cells += [f"{100 * bias[i]:+.1f}% ({100 * spread[i]:.1f})" for i in range(2)]
        print(f"| {size:,} | " + " | ".join(cells) + " |")
    print()


def print_allowances(found: dict[Place, Found], names: list[str]) -> None:
    print("| n | mean for tau1 | sd | mean for tau2 | sd | " + " | ".join(names) + " |")
    print("|---" * (5 + len(names)) + "|")
    for size in SIZES:
        values = {place: one["allowance"] for place, one in found.items() if place[1] == size}
        both = np.array(list(values.values()))
        mean, spread = np.nanmean(both, axis=0), np.nanstd(both, axis=0)
        by_table = [np.nanmean([two for (name, _, _), (_, two) in values.items() if name == own]) for own in names]
        print(
            f"| {size:,} | {mean[0]:.3f} | {spread[0]:.3f} | {mean[1]:.3f} | {spread[1]:.3f} | "
            + " | ".join(f"{value:+.3f}" for value in by_table)
            + " |"
        )
    print()


def print_nested(found: dict[Place, Found]) -> None:
    print("| n | subsample | allowance for tau1 | for tau2 | of the sample, tau2 | correlation |")
    print("|---|---|---|---|---|---|")
    grouped: dict[tuple[int, int], list[tuple[tuple[float, float], float]]] = defaultdict(list)
    for (_, size, _), one in found.items():
        for part in NESTED_SIZES:
            if f"nested {part}" in one:
                grouped[size, part].append((one[f"nested {part}"], one["allowance"][1]))
    for (size, part), pairs in sorted(grouped.items()):
        inner, outer = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        known = np.isfinite(inner[:, 1]) & np.isfinite(outer)
        alike = np.corrcoef(inner[known, 1], outer[known])[0, 1]
        mean = np.nanmean(inner, axis=0)
        print(
            f"| {size:,} | {part:,} | {mean[0]:.3f} | {mean[1]:.3f} | {outer[known].mean():.3f} | {alike:+.2f} |"
        )


if __name__ == "__main__":
    main()
