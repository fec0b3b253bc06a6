"""Many trials, spread over processes or a cluster; what is remembered is not run again."""

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from keyhole.errors import DisclosureRiskError, InputError, MissingExtra
from keyhole.validation.assessor import ANSWERED, slowness, source_digest
from keyhole.validation.journal import Journal
from keyhole.validation.population import KnownPopulation
from keyhole.validation.replicate import Replicate, Trial, run_together

Ended = Callable[[Trial, Replicate, int, int], None]
"""Told of each trial that ended: what came of it, and how many of those to do have ended."""


def nobody(trial: Trial, replicate: Replicate, done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who does the work.

    Attributes
    ----------
    jobs
        Processes on this machine; 1 for none but this one, 0 to run nothing and tell what is remembered.
    scheduler
        The address of a Dask scheduler whose workers are used instead.
    max_seconds
        No trial is begun after so long.
    """

    jobs: int = 1
    scheduler: str | None = None
    max_seconds: float | None = None


def in_turn(trials: Iterable[Trial]) -> list[Trial]:
    """The trials so that a part of them is useful: quick models first, then everything's first replicate, ..."""
    return sorted(trials, key=lambda trial: (slowness(trial.model), trial.seed, trial.size))


def by_fit(trials: Sequence[Trial]) -> list[tuple[Trial, ...]]:
    """The trials in groups that one fit answers: a pool with those of its members that were asked for too."""
    members = {
        trial: [replace(trial, model=name, options=()) for name in ANSWERED.get(trial.model, ())]
        for trial in trials
    }
    asked = set(trials)
    answered = {member for own in members.values() for member in own if member in asked}
    return [
        (trial, *(member for member in members[trial] if member in asked))
        for trial in trials
        if trial not in answered
    ]


def run_trials(
    trials: Sequence[Trial],
    populations: Mapping[str, KnownPopulation],
    *,
    journal: Journal | None = None,
    workers: Workers = Workers(),  # noqa: B008
    ended: Ended = nobody,
) -> dict[Trial, Replicate]:
    """What came of the trials, in their order; those that time did not allow are not in it.

    Each population is sent to the workers once. A replicate is in the journal before ``ended`` is told of it.
    """
    keys = {trial: trial.key(populations[trial.population]) for trial in trials}
    found = {}
    for trial in trials:
        known = None if journal is None else journal.get(keys[trial])
        if known is not None and (known.status != "fault" or not workers.jobs):
            found[trial] = known
    missing = [trial for trial in trials if trial not in found]
    if missing and workers.jobs:
        for done, (trial, replicate) in enumerate(_run(missing, populations, workers), start=1):
            if journal is not None:
                journal.add(keys[trial], replicate)
            found[trial] = replicate
            ended(trial, replicate, done, len(missing))
    return {trial: found[trial] for trial in trials if trial in found}


def _run(
    trials: Sequence[Trial], populations: Mapping[str, KnownPopulation], workers: Workers
) -> Iterator[tuple[Trial, Replicate]]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    deadline = time.monotonic() + (float("inf") if workers.max_seconds is None else workers.max_seconds)

    def waiting() -> Iterator[Any]:
        for group in by_fit(trials):
            if time.monotonic() >= deadline:
                return
            sources = {trial.model: source_digest(trial.model) for trial in group}
            yield delayed(run_together)(group, populations[group[0].population], sources)

    with _backend(workers, list(populations.values())) as options:
        # One fit at a time to each worker: they differ in length, and each is remembered when it ends.
        with _interruptions_wait():
            answers = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs", **options)(
                waiting()
            )
        try:
            for group in answers:
                yield from group.items()
        except TerminatedWorkerError:
            lost = True
        else:
            lost = False
        finally:
            answers.close()
    if lost:
        raise DisclosureRiskError(
            "A process that fitted a model was ended from outside, perhaps for want of memory. What had ended is "
            "kept; run again with fewer --jobs."
        )


@contextmanager
def _interruptions_wait() -> Iterator[None]:
    """Ctrl-C waits until the block ends; processes that are started in it never hear of one.

    A terminal sends it to all of them. It is for the parent, which then ends its workers: a worker that is just
    starting would die of it before the parent can, and a chain would take it for itself.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_trackers() -> None:
    """Begin with the two processes that clean up after workers: when they start they let interruptions through."""
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as other_tracker

    resource_tracker.ensure_running()
    other_tracker.ensure_running()


@contextmanager
def _backend(workers: Workers, populations: list[KnownPopulation]) -> Iterator[dict[str, Any]]:
    """Where joblib shall run: processes of this machine, or the workers of a Dask cluster."""
    if workers.scheduler is None:
        if workers.jobs > 1:
            _start_trackers()
        yield {"n_jobs": workers.jobs, "backend": "loky"}
        return
    try:
        from dask.distributed import Client
        from joblib import parallel_config
    except ImportError:
        raise MissingExtra('A cluster needs more packages: pip install "keyhole[cluster]".') from None
    try:
        client = Client(workers.scheduler, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError):
        raise InputError(f"No Dask scheduler answers at {workers.scheduler!r}.") from None
    with client, parallel_config(backend="dask", client=client, scatter=populations):
        yield {"n_jobs": -1}
