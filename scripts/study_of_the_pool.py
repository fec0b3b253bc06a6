"""By which rule should models share a pool? Prints errors of several rules on samples of real populations.

    python scripts/study_of_the_pool.py [--sizes 1000,5000] [--seeds 101,102] [--folder DIR]

The seeds are not those of the validation. Rules: the sequential logit alone, latent classes alone, both by
stacking, both by how surely each predicts unseen records best (as auto does). Rows are printed for each population
by itself: a rule that is chosen on one is tried on the other.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from real_tables import BY_NAME, DECLARED, DEFAULT_FOLDER, is_here, read_population, sampled

from keyhole.inference.elapsed import Elapsed
from keyhole.inference.fit import ScoresRecords
from keyhole.inference.stacking import stacking_weights
from keyhole.inference.threads import own_threads_only
from keyhole.models.pooled.model import Pooled
from keyhole.randomness import stream
from keyhole.risk.assess import assess_fit

RULES = ("sequential-logit", "latent-class", "stacking", "auto")


def main() -> None:
    """Fit, then print root mean squares of log(estimate/truth) by population, size and rule."""
    parser = argparse.ArgumentParser(description="Rules by which models share a pool.")
    parser.add_argument("--sizes", default="1000,5000")
    parser.add_argument("--seeds", default="101,102")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER)
    options = parser.parse_args()
    found: dict[tuple[str, int], list[np.ndarray]] = {}
    for table in (name for name in DECLARED if is_here(name, options.folder)):
        population = read_population(BY_NAME[table], options.folder)
        for size in map(int, options.sizes.split(",")):
            for seed in map(int, options.seeds.split(",")):
                sample, truth = sampled(population, size, seed)
                rng = stream(seed, "auto")
                with own_threads_only():
                    fit = Pooled().fit(sample, rng=rng)
                    pool = assess_fit(Pooled(), fit, Elapsed(), seed=seed)
                taus = np.array([[one.tau1.estimate, one.tau2.estimate] for one in (*pool.members, pool)])
                scores = [one.fit.log_by_cell for one in fit.members if isinstance(one.fit, ScoresRecords)]
                share = stacking_weights(np.array(scores), sample.table.counts)
                by_rule = np.array([taus[0], taus[1], share @ taus[:2], taus[2]])
                errors = np.log(by_rule / np.array([truth.tau1, truth.tau2]))
                found.setdefault((table.partition("_")[0], size), []).append(errors)
                said = ", ".join(f"{one.share:.2f}" for one in fit.members)
                where = f"{table} n={size:,} seed={seed}"
                print(f"{where}: shares {said}, {errors.round(3).tolist()}", file=sys.stderr, flush=True)
    print("| population | n | samples | rule | tau1: rms | mean | tau2: rms | mean |")
    print("|---" * 8 + "|")
    for (name, size), rows in found.items():
        whole = np.array(rows)
        rms, mean = np.sqrt((whole**2).mean(axis=0)), whole.mean(axis=0)
        for rule, spread, off in zip(RULES, rms, mean, strict=True):
            taus = " | ".join(f"{spread[tau]:.3f} | {off[tau]:+.3f}" for tau in (0, 1))
            print(f"| {name} | {size:,} | {len(rows)} | {rule} | {taus} |")


if __name__ == "__main__":
    main()
