"""How a Bayesian model is sampled: one protocol, so that one harness runs and tests them all."""

from typing import Any, Protocol, TypeAlias, TypeVar

from numpy.random import Generator

from keyhole.arrays import Codes, Vector

State = TypeVar("State")

Records: TypeAlias = Any
"""Rows of codes, or what a sampler makes of them: cells and their counts."""


class GibbsSampler(Protocol[State]):
    """A model's prior and its transitions; it holds no state of a chain.

    A state is a dataclass whose fields are arrays and numbers: the parameters, and the latent variables of the
    records. What `sweep` gives is the state that goes on; it may be the one that came in, changed.
    """

    @property
    def state_type(self) -> type[State]:
        """The class of the states."""

    def draw_prior(self, size: int, rng: Generator) -> State:
        """Parameters from their prior, with latent variables of that many records."""

    def redraw(self, state: State, rng: Generator) -> Records:
        """New records given the parameters; the state's latent variables become theirs."""

    def start(self, records: Records, rng: Generator, *, crowded: bool) -> State:
        """Where a chain begins: with few classes, or with many if ``crowded``."""

    def sweep(self, state: State, records: Records, rng: Generator) -> State:
        """One transition that leaves the posterior of the state given the records as it is."""

    def probabilities(self, state: State, cells: Codes, rng: Generator) -> Vector:
        """The probability that a new record falls into each of some cells, among the admissible ones."""

    def trace(self, state: State) -> dict[str, float]:
        """Numbers to watch, comparable between states whatever the labels of their classes."""
