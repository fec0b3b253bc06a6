"""Fits of models to samples of real tables, spread over processes and remembered in a file."""

import hashlib
import inspect
import json
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from real_tables import BY_NAME, Population, Truth, read_population
from scipy.stats import rankdata

import keyhole
from keyhole.arrays import Mask, Vector
from keyhole.errors import NotConverged
from keyhole.inference.fit import RiskModel
from keyhole.models.catalogue import model_named
from keyhole.risk.assess import assess_risk
from keyhole.risk.estimate import RiskAssessment, RiskEstimate
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules

ROOT = Path(__file__).resolve().parents[1]
BINS = 10


@dataclass(frozen=True)
class Task:
    """One sample of one table, and the model that looks at it.

    Attributes
    ----------
    zeros
        Rules in YAML, or nothing.
    stratum
        The key of whose levels equally many records are drawn, or nothing for a simple random sample.
    blind
        Whether the model is kept from seeing the weights of a stratified sample.
    sweeps
        The most sweeps of each chain, for models with chains; 0 for as many as the model takes.
    """

    table: str
    size: int
    seed: int
    model: str = "sequential-logit"
    zeros: str = ""
    stratum: str = ""
    blind: bool = False
    sweeps: int = 0

    @property
    def fitted(self) -> RiskModel:
        """The model with its settings."""
        return model_named(self.model, **({"most_sweeps": self.sweeps} if self.sweeps else {}))


@dataclass(frozen=True)
class Interval:
    """An estimate, its interval and the truth."""

    estimate: float
    low: float
    high: float
    truth: float

    @property
    def covers(self) -> bool:
        return self.low <= self.truth <= self.high

    @property
    def relative_error(self) -> float:
        return self.estimate / self.truth - 1.0 if self.truth else float("nan")

    @property
    def log_error(self) -> float:
        return float(np.log(self.estimate / self.truth)) if self.truth and self.estimate else float("nan")


@dataclass(frozen=True)
class Result:
    """What came of a task; all but the first three are None when the fit failed.

    Attributes
    ----------
    chance
        Standard deviation of tau1 were r1 exactly right, sqrt(sum r1 (1 - r1)).
    auc
        Chance that a population unique has a higher r1 than another sample unique; ties count half.
    bins
        For r1 in tenths: sample uniques, their summed r1, population uniques among them.
    """

    status: str
    verdict: str
    seconds: float
    tau1: Interval | None = None
    tau2: Interval | None = None
    chance: float | None = None
    auc: float | None = None
    bins: tuple[tuple[int, float, int], ...] | None = None

    @classmethod
    def of(cls, found: RiskAssessment, truth: Truth) -> "Result":
        seconds = found.seconds_fit + found.seconds_risk
        if found.tau1 is None or found.tau2 is None or found.records is None:
            return cls(found.status, found.verdict, seconds)
        r1, alone = found.records.r1, truth.population_counts == 1
        return cls(
            found.status,
            found.verdict,
            seconds,
            _interval(found.tau1, truth.tau1),
            _interval(found.tau2, truth.tau2),
            float(np.sqrt((r1 * (1 - r1)).sum())),
            rank_auc(r1, alone),
            calibration_bins(r1, alone),
        )

    @classmethod
    def read(cls, stored: Mapping[str, object]) -> "Result":
        intervals = {name: stored[name] and Interval(**stored[name]) for name in ("tau1", "tau2")}  # type: ignore
        bins = stored["bins"] and tuple(tuple(tenth) for tenth in stored["bins"])  # type: ignore
        return cls(**{**stored, **intervals, "bins": bins})  # type: ignore


def run_tasks(tasks: Sequence[Task], folder: Path, cache_file: Path, jobs: int) -> dict[Task, Result]:
    """The results of the tasks, in their order: remembered ones first, the others fitted and remembered.

    With no jobs nothing is fitted. A task that ends in an unforeseen error is named and left out.
    """
    keys = {task: _key(task, folder) for task in tasks}
    known = _remembered(cache_file)
    found = {task: known[key] for task, key in keys.items() if key in known}
    missing = [task for task in tasks if task not in found]
    print(f"{len(tasks)} fits, {len(missing)} of them to do.", file=sys.stderr)
    if missing and jobs:
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        for task, result in _fitted(missing, folder, jobs):
            _remember(cache_file, keys[task], result)
            found[task] = result
    return {task: found[task] for task in tasks if task in found}


def _fitted(tasks: Sequence[Task], folder: Path, jobs: int) -> Iterable[tuple[Task, Result]]:
    # Spawned, not forked: DuckDB's threads may have run in this process.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(fit_task, task, folder, _source(task.model)): task for task in tasks}
        for done, future in enumerate(as_completed(waiting), 1):
            task = waiting.pop(future)
            where = f"{done}/{len(tasks)} {task.model} {task.table} n={task.size:,} seed={task.seed}"
            where += " zeros" if task.zeros else f" by {task.stratum}" if task.stratum else ""
            try:
                result = future.result()
            except BrokenProcessPool:
                raise
            except Exception as error:
                print(f"{where}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            print(f"{where}: {_in_words(result)}", file=sys.stderr, flush=True)
            yield task, result


def fit_task(task: Task, folder: Path, source: str) -> Result:
    """Draw the sample, fit the model and compare it with the truth."""
    if _source(task.model) != source:
        # Or the result would be remembered as that of code which did not produce it.
        raise RuntimeError(f"The files of {task.model} changed while the processes started. Run again.")
    population = _population(task.table, folder)
    zeros = _zeros(task.table, folder, task.zeros) if task.zeros else None
    if task.stratum:
        sample, truth = population.stratified(task.size, task.seed, task.stratum)
        if task.blind:
            sample = replace(sample, table=replace(sample.table, weights=None, squared_weights=None))
    else:
        sample, truth = population.sampled(task.size, task.seed, zeros)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        return Result.of(assess_risk(task.fitted, sample, seed=task.seed), truth)


@cache
def _population(table: str, folder: Path) -> Population:
    return read_population(BY_NAME[table], folder)


@cache
def _zeros(table: str, folder: Path, rules: str) -> StructuralZeros:
    """The zeros, after making sure that nobody in the whole population breaks a rule."""
    population = _population(table, folder)
    zeros = StructuralZeros(population.keys, parse_zero_rules(rules, f"the rules of {table}"))
    broken = zeros.violations(population.table)
    if broken.any():
        raise ValueError(f"People of {table} who break each rule: {broken.tolist()}; declare only what holds.")
    return zeros


def rank_auc(r1: Vector, alone: Mask) -> float:
    """The area under the curve by ranks; nan when there are only uniques of one kind."""
    ones, others = int(alone.sum()), int((~alone).sum())
    if not ones or not others:
        return float("nan")
    return float((rankdata(r1)[alone].sum() - ones * (ones + 1) / 2) / (ones * others))


def calibration_bins(r1: Vector, alone: Mask) -> tuple[tuple[int, float, int], ...]:
    """Sample uniques, summed r1 and population uniques in tenths of r1, [0, 0.1) to [0.9, 1]."""
    tenth = np.minimum((r1 * BINS).astype(np.int64), BINS - 1)
    columns = (np.bincount(tenth, weight, BINS).tolist() for weight in (None, r1, alone))
    return tuple((int(size), float(r1_sum), int(ones)) for size, r1_sum, ones in zip(*columns, strict=True))


def _interval(tau: RiskEstimate, truth: float) -> Interval:
    return Interval(tau.estimate, tau.low, tau.high, truth)


def _in_words(result: Result) -> str:
    if result.tau1 is None or result.tau2 is None:
        return f"{result.status}: {result.verdict}"
    both = ", ".join(
        f"{name} {tau.estimate:,.1f} [{tau.low:,.1f}, {tau.high:,.1f}], truth {tau.truth:,.1f}"
        for name, tau in (("tau1", result.tau1), ("tau2", result.tau2))
    )
    return f"{both}, {result.seconds:.1f} s, {result.status}"


def _key(task: Task, folder: Path) -> str:
    """Everything that the result depends on; of the code, the version and the files beside the model."""
    told = {
        **{
            name: value
            for name, value in asdict(task).items()
            if value or name not in ("stratum", "blind", "sweeps")
        },
        "settings": dict(task.fitted.settings),
        "version": keyhole.__version__,
        "source": _source(task.model),
        "data": _digest((folder / BY_NAME[task.table].file,)),
    }
    return json.dumps(told, sort_keys=True)


@cache
def _source(model: str) -> str:
    module = Path(inspect.getfile(type(model_named(model))))
    return _digest(tuple(sorted(module.parent.glob("*.py"))))


@cache
def _digest(files: tuple[Path, ...]) -> str:
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.read_bytes())
    return whole.hexdigest()[:16]


def _remembered(cache_file: Path) -> dict[str, Result]:
    """Results by key; a line that an interruption cut short is passed over."""
    found = {}
    for line in cache_file.read_text().splitlines() if cache_file.is_file() else ():
        try:
            row = json.loads(line)
            found[json.dumps(row["key"], sort_keys=True)] = Result.read(row["result"])
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _remember(cache_file: Path, key: str, result: Result) -> None:
    # The line starts with the line break: one that was cut short ends here.
    line = json.dumps({"key": json.loads(key), "result": asdict(result)})
    with cache_file.open("a") as file:
        file.write(f"\n{line}")
