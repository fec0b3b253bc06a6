"""Do intervals of models with chains cover, where the population is the model's own? Prints a Markdown table.

    python scripts/chains_on_own_populations.py [--models NAMES] [--sizes N,N] [--replicates R] [--law prior]

A replicate is a law, 712,174 people of it, a simple random sample and a fit. With ``--law prior`` everything,
hyperparameters too, comes from the model's prior, again and again until the sample has 250 uniques: a
posterior is calibrated whatever is asked of the data, so that 95% intervals must cover 95%. With ``--law fixed``
there are so many classes or profiles with Dirichlet laws that no prior knows of. Replicates are remembered in a
file, so an interrupted run goes on where it was. Progress is on stderr.
"""

import argparse
import json
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.random import Generator
from own_populations import LAWS, PEOPLE, fixed_law, people_of, prior_law
from real_tables import ROOT

from keyhole.errors import NotConverged
from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import model_named
from keyhole.population.sample import Sample
from keyhole.risk.assess import assess_risk
from keyhole.table.contingency import ContingencyTable

LEVELS = {"8 keys": (5, 2, 6, 5, 11, 3, 2, 2), "10 keys": (3, 4, 9, 2, 6, 5, 11, 4, 3, 3)}
FEWEST_UNIQUES = 250
"""Of a sample from the prior: with fewer there is no risk to speak of."""

HEAD = "| model | keys | n | samples | not converged | true tau1 | error | covered | true tau2 | error | covered |"
RULE = "|---|---|---|---|---|---|---|---|---|---|---|"


@dataclass(frozen=True)
class Replicate:
    """One population of a model, one sample of it, and how long chains may be."""

    model: str
    law: str
    keys: str
    size: int
    seed: int
    sweeps: int
    effective: float

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def run(one: Replicate) -> dict[str, object]:
    """Estimate, interval and truth of tau1 and tau2."""
    levels = LEVELS[one.keys]
    sample, inhabitants = sample_of(one, np.random.default_rng([*one.key.encode()]))
    unique = sample.table.cells[sample.table.uniques].astype(np.int64)
    alone = inhabitants[np.ravel_multi_index(tuple(unique.T), levels)]
    options = {"target_ess": one.effective, **({"most_sweeps": one.sweeps} if one.sweeps else {})}
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        found = assess_risk(model_named(one.model, **options), sample, seed=one.seed)
    assert found.tau1 is not None
    assert found.tau2 is not None
    return {
        "tau1": [found.tau1.estimate, found.tau1.low, found.tau1.high, int((alone == 1).sum())],
        "tau2": [found.tau2.estimate, found.tau2.low, found.tau2.high, float((1 / alone).sum())],
        "status": found.status,
        "seconds": time.perf_counter() - begun,
    }


def sample_of(one: Replicate, rng: Generator) -> tuple[Sample, np.ndarray]:
    """The sample, and the people of each cell of the population. The first records are a simple random sample."""
    levels = LEVELS[one.keys]
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(size)))) for j, size in enumerate(levels))
    while True:
        law = (prior_law if one.law == "prior" else fixed_law)(one.model, levels, rng)
        drawn = people_of(law, one.size, rng)
        sample = Sample(ContingencyTable.from_codes(keys, drawn), PEOPLE)
        if one.law == "fixed" or sample.uniques >= FEWEST_UNIQUES:
            break
    everybody = np.concatenate([drawn, people_of(law, PEOPLE - one.size, rng)])
    cell = np.ravel_multi_index(tuple(everybody.T), levels)
    return sample, np.bincount(cell, minlength=int(np.prod(levels)))


def main() -> None:
    """Print a row for each model, set of keys and size."""
    parser = argparse.ArgumentParser(description="Coverage of models with chains on their own populations.")
    parser.add_argument("--models", default="latent-class,gom,hdp")
    parser.add_argument("--law", choices=LAWS, default="prior")
    parser.add_argument("--sizes", default="1000")
    parser.add_argument("--replicates", type=int, default=50)
    parser.add_argument("--sweeps", type=int, default=0, help="the most sweeps of a chain; 0 for the models' own")
    parser.add_argument("--target-ess", type=float, default=200.0, help="effective draws that end a run")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 0 to print what is remembered")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "own_populations.jsonl")
    options = parser.parse_args()
    tasks = [
        Replicate(model, options.law, keys, int(size), seed, options.sweeps, options.target_ess)
        for model in options.models.split(",")
        for keys in LEVELS
        for size in options.sizes.split(",")
        for seed in range(1, options.replicates + 1)
    ]
    known = remembered(options.cache)
    if options.jobs:
        fit(tasks, known, options.cache, options.jobs)
    print(f"{HEAD}\n{RULE}")
    for model, keys, size in dict.fromkeys((one.model, one.keys, one.size) for one in tasks):
        rows = [
            known[one.key]
            for one in tasks
            if (one.model, one.keys, one.size) == (model, keys, size) and one.key in known
        ]
        if rows:
            print_row(model, keys, size, rows)


def fit(tasks: list[Replicate], known: dict[str, dict], cache: Path, jobs: int) -> None:
    """Run what is not remembered, and remember it."""
    missing = [one for one in tasks if one.key not in known]
    print(f"{len(tasks)} replicates, {len(missing)} of them to do.", file=sys.stderr, flush=True)
    cache.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool, cache.open("a") as file:
        waiting = {pool.submit(run, one): one for one in missing}
        for done, future in enumerate(as_completed(waiting), 1):
            one, result = waiting[future], future.result()
            known[one.key] = result
            file.write(json.dumps([one.key, result]) + "\n")
            file.flush()
            print(f"{done}/{len(missing)} {one} {result}", file=sys.stderr, flush=True)


def remembered(cache: Path) -> dict[str, dict]:
    """What the file holds."""
    return dict(map(json.loads, cache.read_text().splitlines())) if cache.is_file() else {}


def print_row(model: str, keys: str, size: int, rows: list[dict]) -> None:
    """Errors are medians, in percent of the truth."""
    cells = []
    for name in ("tau1", "tau2"):
        estimate, low, high, truth = np.array([row[name] for row in rows]).T
        error = np.median(estimate / np.maximum(truth, 1.0) - 1.0)
        cells += [f"{np.median(truth):,.0f}", f"{error:+.0%}", f"{np.mean((low <= truth) & (truth <= high)):.0%}"]
    odd = sum(row["status"] != "ok" for row in rows)
    print(f"| {model} | {keys} | {size:,} | {len(rows)} | {odd} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
