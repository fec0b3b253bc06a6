"""How near are mixed-effects log-linear models on a sample of a real population? Prints a Markdown table.

    python scripts/mixed_effects_on_real_tables.py [--tables NAMES] [--models NAMES] [--sweeps N] [--target-ess N]

A sample of 5% of each population; the truth comes first, and each model's estimate with its posterior standard
deviation, of tau and of its expectation given the cells' means (tau* in the paper); seconds by the clock, and of
processors, compilation included. Progress is on stderr.
"""

import argparse
import sys
import time
import warnings

import numpy as np
from real_tables import BY_NAME, DEFAULT_FOLDER, read_population, sampled

from keyhole.errors import NotConverged
from keyhole.inference.fit import Fit, KeepsDraws
from keyhole.models.catalogue import model_named
from keyhole.population.sample import Sample

MODELS = "p-o,p-i,p-ii,np-o,np-i,np-i-emp,two-way"
SHARE = 0.05
HEAD = "| table | model | tau1 | tau1* | tau2 | tau2* | clusters | sweeps | R-hat | seconds | of processors |"


def row(name: str, sample: Sample, sweeps: int, target_ess: float, seed: int) -> str:
    """Estimates of one model."""
    options = {} if name == "two-way" else {"most_sweeps": sweeps, "target_ess": target_ess}
    rng = np.random.default_rng(seed)
    begun, worked = time.perf_counter(), time.process_time()
    fit: Fit = model_named(name, **options).fit(sample, rng=rng)
    laws = list(fit.unsampled())
    counts = [law.draw(rng) for law in laws for _ in range(max(1, 400 // len(laws)))]
    drawn = np.array([[(one == 0).sum(), (1.0 / (1.0 + one)).sum()] for one in counts])
    seconds, processor = time.perf_counter() - begun, time.process_time() - worked
    given = np.array([[law.prob_none().sum(), law.mean_match().sum()] for law in laws])
    cells = [f"{given[:, i].mean():.1f} ({drawn[:, i].std():.1f})" for i in range(2)]
    star = [f"{given[:, i].mean():.1f} ({given[:, i].std():.1f})" if len(laws) > 1 else "-" for i in range(2)]
    found = {one.name: one.value for one in fit.diagnostics}
    watched = isinstance(fit, KeepsDraws)
    rhat = f"{max(float(found['rhat_tau1']), float(found['rhat_tau2'])):.3f}" if watched else "-"
    clusters = f"{float(found['clusters']):.0f}" if "clusters" in found else "-"
    parts = [
        name,
        cells[0],
        star[0],
        cells[1],
        star[1],
        clusters,
        found.get("sweeps", "-"),
        rhat,
        f"{seconds:.0f}",
        f"{processor:.0f}",
    ]
    return " | ".join(map(str, parts))


def main() -> None:
    """Print the truth and a row for each model."""
    parser = argparse.ArgumentParser(description="Mixed-effects log-linear models on real populations.")
    parser.add_argument("--tables", default="eph_90k,eph_840k")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--sweeps", type=int, default=4000)
    parser.add_argument("--target-ess", type=float, default=400.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{HEAD}\n{'|---' * 11}|", flush=True)
    for table in options.tables.split(","):
        population = read_population(BY_NAME[table], DEFAULT_FOLDER)
        sample, truth = sampled(population, round(SHARE * len(population)), options.seed)
        print(f"| {table} | truth | {truth.tau1:.0f} | | {truth.tau2:.1f} | | | | | | |", flush=True)
        for name in options.models.split(","):
            print(f"{table} {name} ...", file=sys.stderr, flush=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConverged)
                print(
                    f"| {table} | {row(name, sample, options.sweeps, options.target_ess, options.seed)} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
