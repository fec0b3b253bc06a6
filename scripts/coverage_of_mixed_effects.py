"""How often do intervals of mixed-effects log-linear models hold the truth? Samples of one real population.

    python scripts/coverage_of_mixed_effects.py [--table NAME] [--model NAME] [--first N] [--samples N]
        [--keep FILE]

Samples of 5% with the seeds 1, or the first, to N. Each is one line of FILE as soon as it is done, and is not done
again. Prints the coverage of the 95% intervals of tau1 and tau2 over all samples of the file, the mean error, and
what the runs were like.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from real_tables import BY_NAME, DEFAULT_FOLDER, read_population, sampled

from keyhole.errors import NotConverged
from keyhole.models.catalogue import model_named
from keyhole.risk.assess import assess_risk
from keyhole.validation.population import KnownPopulation

SHARE = 0.05
CHAINS, TARGET_ESS, MOST_SWEEPS = 2, 200.0, 2000


def done_before(keep: Path) -> dict[int, dict[str, float]]:
    """What the file has, by seed."""
    lines = keep.read_text().splitlines() if keep.exists() else []
    return {int(one["seed"]): one for one in map(json.loads, lines)}


def one_sample(population: KnownPopulation, name: str, seed: int) -> dict[str, float]:
    """Truth, estimate and interval for one sample."""
    sample, truth = sampled(population, round(SHARE * len(population)), seed)
    model = model_named(name, chains=CHAINS, target_ess=TARGET_ESS, most_sweeps=MOST_SWEEPS)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        found = assess_risk(model, sample, seed=seed)
    watched = {one.name: float(one.value) for one in found.diagnostics if isinstance(one.value, (int, float))}
    line: dict[str, float] = {"seed": seed, "sweeps": watched["sweeps"], "seconds": time.process_time() - begun}
    line["rhat"] = max(watched["rhat_tau1"], watched["rhat_tau2"])
    for which, tau, true in (("tau1", found.tau1, truth.tau1), ("tau2", found.tau2, truth.tau2)):
        assert tau is not None
        line |= {f"{which}_{part}": float(getattr(tau, part)) for part in ("estimate", "low", "high")}
        line[f"{which}_truth"] = float(true)
    return line


def report(lines: list[dict[str, float]]) -> str:
    """Coverage and what the runs were like."""
    column = {name: np.array([line[name] for line in lines]) for name in lines[0]}
    words = [f"{len(lines)} samples"]
    for which in ("tau1", "tau2"):
        true = column[f"{which}_truth"]
        inside = (column[f"{which}_low"] <= true) & (true <= column[f"{which}_high"])
        error = column[f"{which}_estimate"] - true
        words.append(
            f"{which}: {inside.sum()} of {len(lines)} intervals hold the truth, {true.mean():.1f} on average; "
            f"estimate less truth {error.mean():+.1f} on average, from {error.min():+.1f} to {error.max():+.1f}; "
            f"width {(column[f'{which}_high'] - column[f'{which}_low']).mean():.1f}"
        )
    words.append(
        f"R-hat at most {column['rhat'].max():.3f}, below 1.01 in {(column['rhat'] < 1.01).sum()}; "
        f"sweeps {column['sweeps'].min():.0f} to {column['sweeps'].max():.0f}; "
        f"processor seconds {column['seconds'].mean():.0f} a sample"
    )
    return "\n".join(words)


def main() -> None:
    """Do what is missing, and report."""
    parser = argparse.ArgumentParser(description="Coverage of intervals of mixed-effects log-linear models.")
    parser.add_argument("--table", default="eph_90k")
    parser.add_argument("--model", default="np-i")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--keep", type=Path, default=None)
    options = parser.parse_args()
    keep = options.keep or Path(f"coverage-{options.table}-{options.model}.jsonl")
    lines = done_before(keep)
    population = read_population(BY_NAME[options.table], DEFAULT_FOLDER)
    for seed in range(options.first, options.samples + 1):
        if seed not in lines:
            lines[seed] = one_sample(population, options.model, seed)
            with keep.open("a") as file:
                file.write(json.dumps(lines[seed]) + "\n")
            print(f"sample {seed}: {lines[seed]['seconds']:.0f} s", file=sys.stderr, flush=True)
    print(report(list(lines.values())))


if __name__ == "__main__":
    main()
