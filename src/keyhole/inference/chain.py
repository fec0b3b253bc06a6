"""One chain: its state, its stream of random numbers, what it watched and the laws it kept."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Generic

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import Vector
from keyhole.inference.cell_law import CellLaw, MultinomialCells
from keyhole.inference.gibbs import GibbsSampler, Records, State
from keyhole.population.sample import Sample

KEPT_VALUES = 25_000_000
"""Probabilities that one chain keeps, at four bytes each; twice as many before it drops every second law."""

MOST_KEPT, FEWEST_KEPT = 500, 40
"""Laws that a chain keeps, or up to twice as many: the more cells, the fewer."""


@dataclass(frozen=True, eq=False)
class Watched:
    """What is asked of a state: the probabilities of the sample's cells, and tau1 and tau2 given them.

    Attributes
    ----------
    every
        Sweeps from one look at the state to the next.
    law
        What probabilities of cells say of the unsampled counts.
    """

    sample: Sample
    every: int = 1
    law: CellLaw = field(default=MultinomialCells())

    @property
    def most_kept(self) -> int:
        cells = max(self.sample.table.occupied, 1)
        return int(np.clip(KEPT_VALUES // cells, FEWEST_KEPT, MOST_KEPT))

    def taus(self, probabilities: Vector) -> tuple[float, float]:
        """The expected tau1 and tau2 at given probabilities of the occupied cells."""
        law = self.law.unsampled(probabilities[self.sample.table.uniques], self.sample.unsampled_size)
        return float(law.prob_none().sum()), float(law.mean_match().sum())


@dataclass(frozen=True, eq=False)
class Chain(Generic[State]):
    """A chain after some sweeps; `advanced` gives it after some more and leaves this one as it is.

    Attributes
    ----------
    values
        The watched numbers at each look.
    laws
        Probabilities of the occupied cells at every ``stride``-th look.
    """

    state: State = field(repr=False)
    rng: Generator = field(repr=False)
    sweeps: int = 0
    values: dict[str, list[float]] = field(default_factory=dict, repr=False)
    laws: list[NDArray[np.float32]] = field(default_factory=list, repr=False)
    stride: int = 1

    @property
    def looks(self) -> int:
        return len(self.values.get("tau1", ()))

    def advanced(
        self,
        sampler: GibbsSampler[State],
        records: Records,
        watched: Watched,
        sweeps: int,
        proceed: Callable[[], None],
    ) -> "Chain[State]":
        """This chain after ``sweeps`` more; ``proceed`` is asked before each and may raise to stop."""
        state, rng = deepcopy(self.state), deepcopy(self.rng)
        values = {name: list(past) for name, past in self.values.items()}
        laws, stride, looks = list(self.laws), self.stride, self.looks
        for sweep in range(self.sweeps + 1, self.sweeps + sweeps + 1):
            proceed()
            state = sampler.sweep(state, records, rng)
            if sweep % watched.every:
                continue
            found = sampler.probabilities(state, watched.sample.table.cells, rng)
            tau1, tau2 = watched.taus(found)
            for name, value in {"tau1": tau1, "tau2": tau2, **sampler.trace(state)}.items():
                values.setdefault(name, []).append(value)
            if looks % stride == 0:
                laws.append(found.astype(np.float32))
            looks += 1
            if len(laws) > 2 * watched.most_kept:
                laws, stride = laws[::2], 2 * stride
        return replace(
            self, state=state, rng=rng, sweeps=self.sweeps + sweeps, values=values, laws=laws, stride=stride
        )

    def used(self, unused_looks: int) -> list[NDArray[np.float32]]:
        """The kept laws after the warm-up; the last one where thinning left none."""
        if self.looks <= unused_looks:
            return []
        return self.laws[-(-unused_looks // self.stride) :] or self.laws[-1:]
