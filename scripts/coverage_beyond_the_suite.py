"""Where do the intervals of the superpopulation models stop holding? Prints a Markdown table.

Settings in which the sample says little, beside the eighteen of the statistical tests, measured in the same way
with fewer replicates; and, first, how many ties (records beyond the first of their cell) the tests' own have.

    python scripts/coverage_beyond_the_suite.py
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.statistical.own_laws import Law, gamma_rates, restaurant, slide
from tests.statistical.test_superpopulation_coverage import CASES, measure

REPLICATES = 200

BEYOND: dict[str, tuple[str, Law]] = {
    "Ewens, theta = 2,000, n = 300, N = 10,000": ("ewens", restaurant(2000.0, 0.0, 10_000, 300)),
    "Pitman, theta = 50, sigma = 0.05, n = 500, N = 5,000": ("pitman", restaurant(50.0, 0.05, 5000, 500)),
    "Pitman, theta = 1,000, sigma = 0.3, n = 200, N = 4,000": ("pitman", restaurant(1000.0, 0.3, 4000, 200)),
    "slide, alpha = 0.5, omega = 8, 3,000 cells, pi = 0.02": (
        "slide-negative-binomial",
        slide(3000, 0.5, 8.0, 0.02),
    ),
    "Poisson-gamma, K = 2,000, alpha = 1, n = 200, N = 10,000": (
        "poisson-gamma",
        gamma_rates(2000, 1.0, 10_000, 200),
    ),
}


def ties(law: Law) -> float:
    """The mean number of ties in ten samples."""
    drawn = [law(rng).sample for rng in np.random.default_rng(1).spawn(10)]
    return float(np.mean([sample.sample_size - sample.table.occupied for sample in drawn]))


def row(setting: str) -> str:
    """One line of the table: ties, truth, bias and coverage of tau1 and tau2."""
    name, law = BEYOND[setting]
    found = measure(name, law, REPLICATES)
    truth = np.mean([law(rng).truth for rng in np.random.default_rng(20260101).spawn(REPLICATES)], axis=0)
    bias = found.error.mean(axis=0) / truth
    covered = found.coverage
    return (
        f"| {setting} | {ties(law):.0f} | {truth[0]:.1f}, {truth[1]:.1f} | {bias[0]:+.0%}, {bias[1]:+.0%} "
        f"| {covered[0]:.1%}, {covered[1]:.1%} |"
    )


def main() -> None:
    fewest = min((ties(law), case) for case, (_, law) in CASES.items())
    print(f"Fewest ties in the suite: {fewest[0]:.0f} ({fewest[1]}).\n")
    print("| setting | ties | true tau1, tau2 | bias | coverage |")
    print("|---|---|---|---|---|")
    with ProcessPoolExecutor(2) as workers:
        for line in workers.map(row, BEYOND):
            print(line, flush=True)


if __name__ == "__main__":
    main()
