"""The Dirichlet-process mixture of products of multinomials: latent classes, as many as the data ask for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from benchmarks.peers._latent_class_kernels import mixture_probability, split_cells, swap_labels
from benchmarks.peers.limits import limits
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.inference.fit import Diagnostic, Verdict
from keyhole.population.multinomial import MultinomialUnsampled
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

MASS_SHAPE = MASS_RATE = 0.25
"""The Gamma prior of the mass of the Dirichlet process."""

BATCHES = 10
"""Stretches of the chain whose means tell how many independent draws it is worth."""


class Classes(NamedTuple):
    """The parameters: mass of the process, log weight of each class, log probability of each level by class."""

    mass: float
    log_weight: Vector
    log_level: Vector


@dataclass(frozen=True)
class LatentClass:
    r"""Records choose a class, and within it every key on its own.

    .. math:: p_c = \sum_k w_k \prod_j \psi_{jk}(c_j), \quad w_k = V_k \prod_{l < k} (1 - V_l), \quad
              V_k \sim \text{Beta}(1, \alpha), \quad \alpha \sim \text{Gamma}(1/4, 1/4), \quad
              \psi_{jk} \sim \text{Dirichlet}(1, \dots, 1)

    One chain of the blocked Gibbs sampler, with swaps of labels. Every kept draw gives one multinomial law.

    Attributes
    ----------
    classes
        Where the sticks are cut off: the last one takes all that is left.
    sweeps, burn_in, draws
        Length of the chain, how much of it is thrown away, and how many states of the rest are kept.
    """

    name: ClassVar[str] = "latent-class"

    classes: int = 40
    sweeps: int = 1500
    burn_in: int = 500
    draws: int = 100

    @property
    def settings(self) -> Mapping[str, object]:
        return {"classes": self.classes, "sweeps": self.sweeps, "burn_in": self.burn_in, "draws": self.draws}

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "LatentClassFit":
        table = sample.table
        chain = Chain(table.levels, table.cells, table.counts, self.classes)
        unique = chain.numbered(table.cells[table.uniques])
        keep_every = (self.sweeps - self.burn_in) // self.draws
        state = chain.start(rng=rng)
        kept: list[Vector] = []
        occupied: list[int] = []
        for sweep in range(1, self.sweeps + 1):
            state, sizes = chain.sweep(state, rng=rng)
            if sweep > self.burn_in and (sweep - self.burn_in) % keep_every == 0 and len(kept) < self.draws:
                kept.append(mixture_probability(unique, state.log_weight, state.log_level))
                occupied.append(int(np.count_nonzero(sizes)))
            progress(self.name, sweep, self.sweeps)
        return LatentClassFit(sample, np.array(kept), np.array(occupied), self.classes)


@dataclass(frozen=True)
class Chain:
    """The blocked Gibbs sampler over the distinct cells of a table."""

    levels: tuple[int, ...]
    cells: Codes
    counts: IntVector
    classes: int
    _starts: IntVector = field(init=False, repr=False)
    _numbered: IntVector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", np.cumsum(self.levels) - np.array(self.levels))
        object.__setattr__(self, "_numbered", self.numbered(self.cells))

    def numbered(self, cells: Codes) -> IntVector:
        """Cells with the levels of all variables numbered through."""
        return np.asarray(cells.astype(np.int64) + self._starts)

    def start(self, *, rng: Generator) -> Classes:
        """Classes of equal weight whose levels are near the observed margins."""
        observed = np.zeros((sum(self.levels), 1))
        np.add.at(observed[:, 0], self._numbered.ravel(), np.repeat(self.counts, len(self.levels)))
        share = 20.0 * observed / self.counts.sum()
        weight = np.full(self.classes, -np.log(self.classes))
        return Classes(1.0, weight, self._draw_levels(share.repeat(self.classes, axis=1), rng))

    def sweep(self, state: Classes, *, rng: Generator) -> tuple[Classes, IntVector]:
        """The next state, and how many records each class held on the way."""
        sizes, level_counts = split_cells(self._numbered, self.counts, state.log_weight, state.log_level, rng)
        order = swap_labels(sizes, state.log_weight, rng)
        sizes, level_counts = sizes[order], level_counts[:, order]
        log_weight, log_kept = _draw_sticks(sizes, state.mass, rng)
        mass = rng.gamma(MASS_SHAPE + self.classes - 1, 1.0 / (MASS_RATE - log_kept.sum()))
        return Classes(mass, log_weight, self._draw_levels(level_counts, rng)), sizes

    def _draw_levels(self, level_counts: NDArray[np.int64] | Vector, rng: Generator) -> Vector:
        raw = rng.standard_gamma(1.0 + level_counts)
        whole = np.repeat(np.add.reduceat(raw, self._starts, axis=0), self.levels, axis=0)
        return np.asarray(np.log(raw) - np.log(whole))


def _draw_sticks(sizes: IntVector, mass: float, rng: Generator) -> tuple[Vector, Vector]:
    """log w of all classes and log(1 - V) of all but the last; in logs throughout, as V may round to 1."""
    later = sizes[::-1].cumsum()[::-1][1:]
    broken, kept = np.log(rng.standard_gamma(1.0 + sizes[:-1])), _log_gamma_draw(mass + later, rng)
    whole = np.logaddexp(broken, kept)
    log_kept = kept - whole
    before = np.concatenate([[0.0], np.cumsum(log_kept)])
    return before + np.append(broken - whole, 0.0), log_kept


def _log_gamma_draw(shape: Vector, rng: Generator) -> Vector:
    """log of gamma variables, even where they are too small for a float."""
    return np.asarray(np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(len(shape))) / shape)


@dataclass(frozen=True)
class LatentClassFit:
    """Draws of the cell probabilities.

    Attributes
    ----------
    probability
        Of each sample-unique cell, one row per kept draw.
    occupied
        The number of classes with records in each kept draw.
    classes
        Where the sticks were cut off.
    """

    sample: Sample
    probability: Vector
    occupied: IntVector
    classes: int

    @property
    def interval_leaves_out(self) -> str:
        return "that one chain may not have visited all ways to divide the records into classes"

    @cached_property
    def effective_draws(self) -> float:
        """Independent draws of the expected tau1, by batch means."""
        tau1 = np.array([law.prob_none().sum() for law in self.unsampled()])
        length = len(tau1) // BATCHES
        if length < 2 or np.ptp(tau1) == 0.0:
            return float(len(tau1))
        means = tau1[: BATCHES * length].reshape(BATCHES, length).mean(axis=1)
        worth = len(tau1) * tau1.var(ddof=1) / (length * means.var(ddof=1))
        return float(np.clip(worth, 1.0, len(tau1)))

    def unsampled(self) -> Iterator[MultinomialUnsampled]:
        for probability in self.probability:
            yield MultinomialUnsampled(probability, self.sample.unsampled_size)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        most = int(self.occupied.max())
        words = (
            f"Between {self.occupied.min()} and {most} of {self.classes} classes held records; the draws are "
            f"worth {self.effective_draws:.0f} independent ones of tau1."
        )
        verdict: Verdict = "good" if most < self.classes or self.classes == 1 else "caution"
        return (Diagnostic("classes", most, verdict, words), *limits(self.sample))
