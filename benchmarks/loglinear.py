"""What does the all-two-way log-linear model cost: against R's loglin, and on tables of 1e8 and 1e9 cells?

People come from latent classes, those in impossible cells left out. The comparison with R is in seconds of
processor time. R fits the whole table, from a start that is zero in the impossible cells, until no margin moves
by more than 0.01 records over a pass, or to a limit of passes. The deviation of margins is then measured on both
fitted tables by one function, and ours is timed with the fewest passes, of even numbers, after which it is not
above R's. Only ratios within one run mean anything. R (Debian: r-base-core) is skipped, and that is said, where it
is absent. The other lines are fits to the model's own tolerances.

    python benchmarks/loglinear.py
"""

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import numpy as np

from keyhole.arrays import Vector
from keyhole.keys.variable import KeyVariable
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.ipf import Fitted, fit_margins
from keyhole.models.loglinear.means import MARGINS, RISKS
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import zero_rules_from

LEVELS = (3, 4, 9, 2, 6, 5, 11, 4, 3, 3)
HUNDRED_MILLION = (*LEVELS, 8, 5)
THOUSAND_MILLION = (*LEVELS, 8, 7, 7)
RULES = [
    {"K2": ["0", "1"], "K1": {"not": ["0"]}},
    {"K2": ["0"], "K6": {"not": ["0", "1"]}},
    {"K4": "5", "K5": ["3", "4"]},
    {"K3": "1", "K7": "3", "K8": "2"},
    {"K6": ["9", "10"], "K9": "2"},
]
RECORDS = 10_000
FRACTION = 0.01
EPS, MOST_PASSES = 0.01, 60
"""Where R stops: the deviation of its margins in records, and its passes."""

TARGET = 25.0
"""How many times faster than R the fit must be."""


def people(levels: Sequence[int], concentration: float, classes: int = 12, seed: int = 1) -> Sample:
    """A sample of people of latent classes; the smaller the concentration, the fewer levels a class has."""
    rng = np.random.default_rng(seed)
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(size)))) for j, size in enumerate(levels))
    zeros = StructuralZeros(keys, zero_rules_from(RULES))
    member = rng.choice(classes, 10 * RECORDS, p=rng.dirichlet(np.ones(classes)))
    columns = []
    for size in levels:
        edges = rng.dirichlet(np.full(size, concentration), classes).cumsum(axis=1)[member]
        columns.append(np.minimum((edges < rng.random((len(member), 1))).sum(axis=1), size - 1))
    codes = np.stack(columns, axis=1)
    codes = codes[~zeros.contains(codes)][:RECORDS]
    return Sample(ContingencyTable.from_codes(keys, codes), int(RECORDS / FRACTION), zeros)


def fit(sample: Sample, most_passes: int = 2000, tolerance: float = MARGINS) -> tuple[Fitted, float, float]:
    """The fit, and the seconds of processor time of finding the cells and of fitting."""
    generators = tuple(combinations(range(len(sample.table.keys)), 2))
    started = time.process_time()
    cells = Cells.of(sample, generators)
    found = time.process_time()
    fitted = fit_margins(
        cells,
        sample.table.counts,
        generators,
        uniques=sample.table.uniques,
        multiplier=1 / FRACTION - 1,
        tolerance=tolerance,
        risk_tolerance=RISKS,
        most_passes=most_passes,
    )
    return fitted, found - started, time.process_time() - found


def whole_table(fitted: Fitted, sample: Sample) -> Vector:
    """The fitted means on the whole table, 0 in the cells that the fit does not visit."""
    cells = fitted.cells
    codes = tuple(levels[codes] for levels, codes in zip(cells.levels, cells.codes, strict=True))
    whole = np.zeros(sample.table.levels)
    whole[codes] = fitted.fitted
    return whole


def deviation_of(whole: Vector, sample: Sample) -> float:
    """The largest difference between a two-way margin of a fitted table and the observed one, in records."""
    worst = 0.0
    for pair in combinations(range(whole.ndim), 2):
        observed = np.zeros(tuple(whole.shape[key] for key in pair))
        np.add.at(observed, tuple(sample.table.cells[:, list(pair)].T.astype(np.int64)), sample.table.counts)
        others = tuple(key for key in range(whole.ndim) if key not in pair)
        worst = max(worst, float(np.abs(whole.sum(axis=others) - observed).max()))
    return worst


def report(name: str, sample: Sample) -> Fitted:
    """Print one line of sizes, seconds and memory."""
    fitted, search, fitting = fit(sample)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    cells = fitted.cells
    print(
        f"{name:<22} {sample.table.size:14,} {len(cells):12,} {(cells.bytes + 8 * cells.nodes) / len(cells):6.1f} "
        f"{search:8.2f} {fitting:8.2f} {fitted.passes:6} {fitting / fitted.passes * 1e3:9.1f} {peak:8.2f}  "
        f"{fitted.ending}, margins within {fitted.discrepancy:.1g}",
        flush=True,
    )
    return fitted


def loglin(sample: Sample, passes: int) -> tuple[float, int, float] | None:
    """R's processor seconds, passes and measured deviation in records; None without R."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return None
    counts = np.zeros(sample.table.levels)
    counts[tuple(sample.table.cells.T.astype(np.int64))] = sample.table.counts
    cells = np.stack(np.unravel_index(np.arange(counts.size), counts.shape), axis=1)
    assert sample.zeros is not None
    start = (~sample.zeros.contains(cells)).astype(np.float64).reshape(counts.shape)
    with tempfile.TemporaryDirectory() as folder:
        for name, values in (("counts", counts), ("start", start)):
            values.ravel(order="F").tofile(Path(folder) / name)
        dims = ",".join(map(str, counts.shape))
        script = f"""
            read <- function(name) array(readBin(file.path("{folder}", name), "double", {counts.size}), c({dims}))
            counts <- read("counts"); start <- read("start")
            margins <- combn({counts.ndim}, 2, simplify=FALSE)
            took <- system.time(fit <- suppressWarnings(
                loglin(counts, margins, start=start, fit=TRUE, eps={EPS}, iter={passes}, print=TRUE)))
            writeBin(as.double(fit$fit), file.path("{folder}", "fitted"))
            cat("\\nseconds", took[["user.self"]] + took[["sys.self"]], "\\n")
        """
        out = subprocess.run(
            [rscript, "--vanilla", "-e", script], capture_output=True, text=True, check=True
        ).stdout
        whole = np.fromfile(Path(folder) / "fitted").reshape(counts.shape, order="F")
    words = out.split()
    return float(words[words.index("seconds") + 1]), int(words[0]), deviation_of(whole, sample)


def against_r(sample: Sample) -> None:
    """Print the ratio of processor times to margins as near as those R ends with."""
    theirs = loglin(sample, MOST_PASSES)
    if theirs is None:
        print("  Rscript is not on this machine: the comparison with R's loglin is skipped.")
        return
    seconds, passes, deviation = theirs
    each = seconds / passes
    print(f"  R loglin: {seconds:.1f} s for {passes} passes ({each:.2f} s each), within {deviation:.2g} records")
    for most in range(2, 200, 2):
        fitted, search, fitting = fit(sample, most, tolerance=0.0)
        if (reached := deviation_of(whole_table(fitted, sample), sample)) <= deviation:
            break
    print(
        f"  ours: {search + fitting:.2f} s, cells found and {fitted.passes} passes, within {reached:.2g} records; "
        f"ratio {seconds / (search + fitting):.0f} (target {TARGET:.0f})"
    )


if __name__ == "__main__":
    fit(people(LEVELS, 0.05))  # compile
    print(
        f"{'law':<22} {'table':>14} {'active':>12} {'bytes':>6} {'search s':>8} {'fit s':>8} {'passes':>6} "
        f"{'ms a pass':>9} {'peak GB':>8}"
    )
    for name, concentration in (("specialised classes", 0.07), ("broad classes", 0.35)):
        small = people(LEVELS, concentration)
        report(name, small)
        against_r(small)
    report("specialised classes", people(HUNDRED_MILLION, 0.07))
    report("specialised classes", people(THOUSAND_MILLION, 0.07))
