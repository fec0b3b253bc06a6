"""What does the sequential logit cost: against scikit-learn, by number of records, by size of the table?

Keys of the bundled population. The comparison is in seconds of processor time on one thread, the rest in wall
time; only ratios within one run mean anything. scikit-learn's tolerance is set so that its log posterior comes
within 0.1 of ours; the shortfall is printed.

    python benchmarks/sequential_logit.py [RECORDS ...]
"""

import os
import resource
import sys
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import duckdb
import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from keyhole.arrays import Vector
from keyhole.data import census_income
from keyhole.keys.variable import KeyVariable
from keyhole.models.sequential import _kernels as kernels
from keyhole.models.sequential.fitting import FittedConditional
from keyhole.models.sequential.joint import JointLaw, fit_joint
from keyhole.models.sequential.model import SequentialLogit
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import key_orders
from keyhole.population.sample import Sample
from keyhole.risk.assess import assess_risk
from keyhole.table.contingency import ContingencyTable

KEYS = ("AGE10", "SEX", "MARITAL7", "RACE5", "EDUC17", "CLASSWKR9", "CITIZEN5", "HHREL8", "WKSTAT8", "VETBEN3")
RECORDS = (10_000, 100_000, 1_000_000)
PEOPLE = 100
TOLERANCE = 1e-5


def bundled(size: int) -> Sample:
    """A simple random sample of the bundled population on ten keys."""
    columns = duckdb.sql(f"SELECT {', '.join(KEYS)} FROM '{census_income.path()}'").fetchnumpy()
    coded = [np.unique(np.asarray(columns[key]).astype(str), return_inverse=True) for key in KEYS]
    keys = [KeyVariable(key, tuple(levels)) for key, (levels, _) in zip(KEYS, coded, strict=True)]
    codes = np.stack([code for _, code in coded], axis=1)
    chosen = np.random.default_rng(1).choice(len(codes), size, replace=False)
    return Sample(ContingencyTable.from_codes(keys, codes[chosen]), len(codes))


def scikit_learn(fit: FittedConditional) -> tuple[float, float]:
    """Seconds of one penalised multinomial logit on the same design, and how far its log posterior falls short.

    Each block's columns are scaled by its ridge. For two levels scikit-learn penalises the difference of their
    coefficients, another model, so no shortfall is worked out.
    """
    data = fit.data
    scale = 1.0 / np.sqrt(np.repeat(fit.penalty, np.diff(data.offsets)))
    rows = np.repeat(np.arange(len(data.level)), len(data.blocks) - 1)
    columns = data.feature[data.context, 1:].ravel()
    design = sparse.csr_matrix((scale[columns], (rows, columns)), shape=(len(data.level), data.rows))
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LogisticRegression(C=1.0, max_iter=1000, tol=TOLERANCE)
        peer.fit(design, data.level, sample_weight=data.weight)
    seconds = time.process_time() - started
    if data.levels == 2:
        return seconds, 0.0
    theirs = peer.coef_.T * scale[:, None]
    theirs[0] = peer.intercept_
    return seconds, log_posterior(fit, fit.coefficients) - log_posterior(
        fit, theirs - theirs.mean(1, keepdims=True)
    )


def log_posterior(fit: FittedConditional, theta: Vector) -> float:
    """The log posterior of coefficients, the intercept free."""
    data = fit.data
    ridge = np.repeat(fit.penalty, np.diff(data.offsets))[1:, None]
    return float(kernels.log_likelihood(*data.layout, *data.entries, theta) - 0.5 * (ridge * theta[1:] ** 2).sum())


def against_scikit_learn() -> JointLaw:
    """Print the time of one order, and of everything, beside one scikit-learn fit per conditional."""
    sample = bundled(10_000)
    observed = Observed.of(sample)
    order = key_orders(observed, 1)[0]
    fit_joint(observed, order, None, rng=np.random.default_rng(1))  # compile
    assess_risk(SequentialLogit(nested=0), sample)
    started = time.process_time()
    law = fit_joint(observed, order, None, rng=np.random.default_rng(1))
    one_order = time.process_time() - started
    started = time.process_time()
    assess_risk(SequentialLogit(), sample)
    everything = time.process_time() - started
    fits = [scikit_learn(fit) for fit in law.factors if len(fit.data.blocks) > 1]
    peer, shortfall = sum(seconds for seconds, _ in fits), max(short for _, short in fits)
    print(f"10,000 records, {len(KEYS)} keys, {sample.table.occupied:,} occupied cells")
    print(f"  scikit-learn, one fit per conditional  {peer:8.2f} s  largest shortfall {shortfall:.2g}")
    print(f"  one order, ridges and terms chosen     {one_order:8.2f} s  ratio {one_order / peer:.2f}")
    print(f"  everything: 3 orders, 6 subsamples, risk {everything:6.2f} s  ratio {everything / peer:.2f}")
    return law


def by_records(law: JointLaw, sizes: tuple[int, ...]) -> None:
    """Print time and peak memory for samples simulated from the law of the bundled data."""
    print(f"{'records':>10} {'occupied':>10} {'uniques':>9} {'fit s':>8} {'risk s':>8} {'peak MB':>8}")
    for size in sizes:
        cells = law.simulate(size, np.random.default_rng(size))
        keys = [KeyVariable(f"K{j}", tuple(map(str, range(n)))) for j, n in enumerate(law.observed.sizes)]
        sample = Sample(ContingencyTable.from_codes(keys, cells), PEOPLE * size)
        report(sample)


def by_table_size() -> None:
    """Print the time for the same records in tables of more and more cells."""
    sample = bundled(10_000)
    for extra in (0, 100, 10_000):
        keys = tuple(
            KeyVariable(key.name, key.levels + tuple(f"unused {i}" for i in range(extra)))
            for key in sample.table.keys
        )
        padded = ContingencyTable(keys, sample.table.cells, sample.table.counts)
        print(f"table of {padded.size:.1e} cells")
        report(Sample(padded, sample.population_size))


def report(sample: Sample) -> None:
    """Print one line: sizes, seconds, peak memory of the process so far."""
    found = assess_risk(SequentialLogit(), sample)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{sample.sample_size:10,} {sample.table.occupied:10,} {sample.uniques:9,} "
        f"{found.seconds_fit:8.1f} {found.seconds_risk:8.1f} {peak:8.0f}",
        flush=True,
    )


if __name__ == "__main__":
    fitted = against_scikit_learn()
    by_table_size()
    by_records(fitted, tuple(int(size) for size in sys.argv[1:]) or RECORDS)
