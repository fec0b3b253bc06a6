"""Chains side by side until they agree, the time is over or somebody stops them.

Each chain has its own stream of random numbers, so their draws do not depend on how many run at once. Chains
advance in rounds; a round that is interrupted is as if it had not begun, so what is left is the state of all
chains after whole rounds: usable, and where a resumed run goes on.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import Vector
from keyhole.errors import FitFailed
from keyhole.inference.chain import Chain, Watched
from keyhole.inference.checkpoint import Checkpoint
from keyhole.inference.convergence import AGREE, Convergence
from keyhole.inference.gibbs import GibbsSampler, Records, State
from keyhole.inference.schedule import ROUND, Schedule
from keyhole.inference.threads import processors
from keyhole.progress import Progress, silent

Ending = Literal["converged", "time", "limit", "interrupted"]


@dataclass(frozen=True, eq=False)
class Chains(Generic[State]):
    """Chains of equal length, and why they ended."""

    chains: tuple[Chain[State], ...] = field(repr=False)
    schedule: Schedule
    ending: Ending
    seconds: float

    @property
    def sweeps(self) -> int:
        return self.chains[0].sweeps

    @property
    def unused_looks(self) -> int:
        """Looks at each chain that are warm-up."""
        share = self.schedule.unused(self.sweeps) / max(self.sweeps, 1)
        return int(share * self.chains[0].looks)

    def values(self, name: str) -> Vector:
        """A watched number by chain and look, after the warm-up."""
        return np.array([chain.values[name][self.unused_looks :] for chain in self.chains])

    def convergence(self, name: str) -> Convergence:
        return Convergence.of(self.values(name))

    @property
    def converged(self) -> bool:
        """Whether tau1 and tau2 have the effective draws that were asked for, from chains that agree."""
        if not self.chains[0].looks:
            return False
        found = [self.convergence(name) for name in ("tau1", "tau2")]
        return all(one.rhat < AGREE and one.ess >= self.schedule.target_ess for one in found)

    @property
    def laws(self) -> tuple[list[NDArray[np.float32]], ...]:
        """Probabilities of the occupied cells, by chain, after the warm-up."""
        return tuple(chain.used(self.unused_looks) for chain in self.chains)


def run_chains(
    sampler: GibbsSampler[State],
    records: Records,
    watched: Watched,
    schedule: Schedule,
    *,
    rng: Generator,
    progress: Progress = silent,
    checkpoint: Checkpoint | None = None,
) -> Chains[State]:
    """Run chains from opposite starts until tau1 and tau2 have converged or the schedule says stop.

    Ctrl-C ends a run that has draws like a time limit does, with the ending ``interrupted``.

    Raises
    ------
    FitFailed
        The time was over before there was a draw to use.
    """
    streams = rng.spawn(schedule.chains)  # in any case, so that a resumed run has the same ones afterwards
    chains = None if checkpoint is None else checkpoint.read(sampler.state_type)
    if chains is None:
        progress("starting chains", 0, schedule.chains)
        chains = [Chain(sampler.start(records, own, crowded=bool(i % 2)), own) for i, own in enumerate(streams)]
    progress("getting ready (the first time: compiling, once per installation)", 0)
    chains[0].advanced(sampler, records, watched, watched.every, lambda: None)  # with a look at the cells
    begun = time.monotonic()  # the time limit is for sampling
    deadline = np.inf if schedule.max_seconds is None else begun + schedule.max_seconds
    ending: Ending = "limit"

    def turn(chain: Chain[State], proceed: Callable[[], None]) -> Chain[State]:
        return chain.advanced(sampler, records, watched, ROUND, proceed)

    with _Threads(min(schedule.chains, processors())) as threads:
        try:
            while True:
                if schedule.judges(chains[0].sweeps) and _converged(chains, schedule):
                    ending = "converged"
                    break
                if chains[0].sweeps + ROUND > schedule.most_sweeps:
                    break
                chains = threads.each(turn, chains, deadline)
                if checkpoint is not None:
                    checkpoint.write(chains)
                progress("sampling", chains[0].sweeps, None, _in_words(chains))
        except TimeoutError:
            ending = "time"
        except KeyboardInterrupt:
            ending = "interrupted"
    if checkpoint is not None and chains[0].sweeps:
        checkpoint.write(chains, always=True)
    if ending == "time" and _converged(chains, schedule):
        ending = "converged"  # since it was last judged
    found = Chains(tuple(chains), schedule, ending, time.monotonic() - begun)
    if not all(found.laws):
        if ending == "interrupted":
            raise KeyboardInterrupt
        raise FitFailed("The time limit was over before there were draws to use.")
    return found


def _converged(chains: Sequence[Chain[State]], schedule: Schedule) -> bool:
    return Chains(tuple(chains), schedule, "converged", 0.0).converged


def _in_words(chains: Sequence[Chain[State]]) -> str:
    if not chains[0].looks:
        return ""
    late = [np.mean(chain.values["tau1"][chain.looks // 2 :]) for chain in chains]
    return f"tau1 about {np.mean(late):,.0f} ({min(late):,.0f} to {max(late):,.0f} by chain)"


class _Stopped(Exception):
    """Raised inside a thread to leave a round that will not be used."""


class _Threads:
    """Threads that advance all chains by one round, or none."""

    def __init__(self, number: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=number)

    def __enter__(self) -> "_Threads":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def each(
        self,
        turn: Callable[[Chain[State], Callable[[], None]], Chain[State]],
        chains: Sequence[Chain[State]],
        deadline: float,
    ) -> list[Chain[State]]:
        stop = threading.Event()

        def proceed() -> None:
            if stop.is_set():
                raise _Stopped
            if time.monotonic() > deadline:
                raise TimeoutError

        waiting = [self._pool.submit(turn, chain, proceed) for chain in chains]
        try:
            return [future.result() for future in waiting]
        except BaseException:
            stop.set()
            for future in waiting:
                future.cancel()
            raise
