"""Draws of the latent classes of a file: what its synthetic copies and their risk are made from."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.inference.convergence import NEARLY, Convergence
from keyhole.inference.fit import Verdict
from keyhole.inference.threads import processors
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.model import NEAR
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.progress import Progress, silent
from keyhole.table.packing import Packing, rank_rows

SAME, APART = 0.02, 0.2
"""Mean log probabilities of combinations that are as good as the same, and those that are not nearly."""

LEAST = 1e-280
"""Stands for probabilities too small to be told from zero."""

LEAST_SHARE = 1e-100
"""Stands for level probabilities that small: products with two of them can still be divided by them again."""


@dataclass(frozen=True, eq=False)
class ClassDraw:
    """One draw, as the law of a further record: class k has ``weight[k]``, its levels ``share[., k]``.

    Either of the parameters themselves, or, if classes of records are known, of their expectation given the
    classes, from which one record can be taken away.

    Attributes
    ----------
    weight
        By class; rows for a record taken away from class 0, 1, ..., and last for none.
    share
        By level, the levels of one key after those of another, and class: counts with the prior's added, or
        probabilities.
    total
        What the shares of each key and class add up to.
    own
        The class of one record of each combination asked about; None where none can be taken away.
    """

    weight: Vector = field(repr=False)
    share: Vector = field(repr=False)
    total: Vector = field(repr=False)
    own: IntVector | None = field(repr=False)

    @classmethod
    def known(cls, state: LatentClasses, keys: int) -> "ClassDraw":
        """The parameters of a state, as they are."""
        weight = np.exp(np.minimum(state.log_weight - state.log_admissible, 600.0))
        used = weight > LEAST
        share = np.maximum(np.exp(state.log_theta[:, used]), LEAST_SHARE)
        return cls(weight[used][None], share, np.ones((keys, int(used.sum()))), None)

    @classmethod
    def expected(
        cls, state: LatentClasses, sizes: IntVector, counts: IntVector, key_of: IntVector, own: IntVector
    ) -> "ClassDraw":
        """The expectation of the parameters given the classes of all records, empty classes put together."""
        used = np.flatnonzero(sizes)
        place = np.full(len(sizes), -1)
        place[used] = np.arange(len(used))
        fewer = np.tile(sizes, (len(used) + 1, 1))
        fewer[np.arange(len(used)), used] -= 1
        weight = expected_weights(fewer, state.concentration)
        empty = weight.sum(axis=1) - weight[:, used].sum(axis=1)
        prior = state.mass[key_of] * state.base
        share = np.column_stack([counts[:, used] + prior[:, None], prior])
        total = np.column_stack([sizes[used] + state.mass[:, None], state.mass])
        return cls(np.column_stack([weight[:, used], empty]), share, total, place[own])


def expected_weights(sizes: IntVector, concentration: float) -> Vector:
    """E(pi | classes) of sticks broken in turn, for one row of class sizes or several.

    The stick of class k is Beta(1 + n_k, a + n_(k+1) + ...), the last one is all that is left.

    Examples
    --------
    >>> expected_weights(np.array([[2, 1, 0]]), 1.0).round(4).tolist()
    [[0.6, 0.2667, 0.1333]]
    """
    later = np.cumsum(sizes[:, ::-1], axis=1)[:, ::-1] - sizes
    stick = (1.0 + sizes) / (1.0 + sizes + concentration + later)
    stick[:, -1] = 1.0
    left = np.cumprod(1.0 - stick, axis=1)
    return np.asarray(stick * np.column_stack([np.ones(len(sizes)), left[:, :-1]]))


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of one file by several chains, one chain after another, and states to synthesise from.

    Attributes
    ----------
    watched
        The mean log probability of the asked combinations, by chain and draw.
    most_classes
        The most that were occupied.
    ends
        Where each chain ended.
    """

    draws: tuple[ClassDraw, ...] = field(repr=False)
    states: tuple[LatentClasses, ...] = field(repr=False)
    watched: Vector = field(repr=False)
    most_classes: int
    ends: tuple[LatentClasses, ...] = field(default=(), repr=False)

    @cached_property
    def convergence(self) -> Convergence:
        return Convergence.of(self.watched)

    @property
    def gap(self) -> float:
        """By how much chains differ in the mean log probability of a combination."""
        return float(np.ptp(self.watched.mean(axis=1)))

    @property
    def agreement(self) -> Verdict:
        """Whether chains agree, nearly, or not at all: on real files they settle in classes of their own."""
        if self.convergence.rhat < NEARLY or self.gap < SAME:
            return "good"
        return "caution" if self.gap < APART else "untrusted"

    @property
    def agreement_in_words(self) -> str:
        rhat = f"R-hat {self.convergence.rhat:.3f}"
        if self.agreement == "good":
            return f"Chains from opposite starts agree on the chances of the combinations ({rhat})."
        return (
            f"Chains from opposite starts settled in different classes ({rhat}): the chance of a combination "
            f"differs by {np.expm1(self.gap):.0%} between them on average."
        )


def occupied_in_words(most: int, classes: int) -> str:
    """How near chains came to the most classes there can be."""
    words = f"Never more than {most} of {classes} classes were occupied."
    return words if most < NEAR * classes else f"{words} More might be needed: give --classes."


@dataclass(frozen=True, slots=True)
class Length:
    """How long chains are: sweeps that are not used, sweeps between two draws, draws in all, chains."""

    warmup: int = 1500
    thin: int = 10
    draws: int = 400
    chains: int = 2

    def finer(self, times: int) -> "Length":
        """As many sweeps with up to so many times the draws.

        Examples
        --------
        >>> Length(100, 10, 40).finer(5)
        Length(warmup=100, thin=2, draws=200, chains=2)
        """
        thin = max(1, self.thin // times)
        return Length(self.warmup, thin, self.draws * (self.thin // thin), self.chains)


class _Chain(NamedTuple):
    draws: list[ClassDraw]
    states: list[LatentClasses]
    watched: list[float]
    most: int
    end: LatentClasses


def draw_classes(
    sampler: LatentClassSampler,
    tree: CellTree,
    asked: Codes,
    length: Length,
    *,
    rng: Generator,
    progress: Progress = silent,
    task: str = "sampling",
    keep_states: bool = False,
    starts: Sequence[LatentClasses] = (),
) -> Draws:
    """Run chains on a file whose distinct cells are in ``tree``; ``asked`` are combinations of the file.

    Chains start with few classes and with many, or from given states: chains on a file with and without a copy
    that began in the same place can be compared.
    """
    place = _places(sampler.sizes, tree, asked)
    each = -(-length.draws // length.chains)
    done = [0] * length.chains
    stopped = threading.Event()

    def chain(number: int, own: Generator) -> _Chain:
        if starts:
            state = replace(copied(starts[number]), records=tree.records)
        else:
            state = sampler.start(tree, own, crowded=bool(number % 2))
        draws, states, watched, most = list[ClassDraw](), list[LatentClasses](), list[float](), 0
        for sweep in range(length.warmup + each * length.thin):
            if stopped.is_set():
                break
            state = sampler.sweep(state, tree, own)
            done[number] = sweep
            if sweep % 50 == 0:
                progress(task, min(done), length.warmup + each * length.thin)
            if sweep < length.warmup or (sweep - length.warmup + 1) % length.thin:
                continue
            draw = _draw(sampler, state, tree, place, own)
            draws.append(draw)
            most = max(most, state.occupied)
            watched.append(mean_log_probability(sampler, state, asked, own))
            if keep_states:
                states.append(copied(state))
        return _Chain(draws, states, watched, most, state)

    # Compile before threads start, so that they do not all wait for it.
    progress(f"{task} (the first time: compiling, once per installation)", 0)
    with ThreadPoolExecutor(min(length.chains, processors())) as threads:
        try:
            found = list(threads.map(chain, range(length.chains), rng.spawn(length.chains)))
        finally:
            stopped.set()  # an interruption must not wait for the end of the chains
    return Draws(
        tuple(draw for one in found for draw in one.draws),
        tuple(state for one in found for state in one.states),
        np.array([one.watched for one in found]),
        max(one.most for one in found),
        tuple(one.end for one in found),
    )


def _draw(
    sampler: LatentClassSampler, state: LatentClasses, tree: CellTree, place: IntVector, rng: Generator
) -> ClassDraw:
    if sampler.diagram is not None:  # probabilities of classes with impossible cells have no such expectation
        return ClassDraw.known(state, len(sampler.sizes))
    member, sizes, counts = sampler.allocation(state, tree, rng)
    ends = np.cumsum(tree.counts)[place]
    one = ends - 1 - rng.integers(0, tree.counts[place])  # any record of the combination: they are alike
    return ClassDraw.expected(state, sizes, counts, sampler.key_of, member[one])


def _places(sizes: tuple[int, ...], tree: CellTree, asked: Codes) -> IntVector:
    """Where the combinations are among the cells of a tree."""
    order = np.argsort(sizes, kind="stable")
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    packing = Packing(tuple(sizes[j] for j in order))
    both = np.concatenate([tree.rows - begins[order], asked[:, order]])
    number = rank_rows(packing.pack(np.ascontiguousarray(both)))[1]
    found = np.full(int(number.max(initial=0)) + 1, -1)
    found[number[: len(tree.rows)]] = np.arange(len(tree.rows))
    return np.asarray(found[number[len(tree.rows) :]])


def mean_log_probability(sampler: LatentClassSampler, state: LatentClasses, cells: Codes, rng: Generator) -> float:
    """What chains are watched by."""
    return float(np.log(np.maximum(sampler.probabilities(state, cells, rng), LEAST)).mean())


def copied(state: LatentClasses) -> LatentClasses:
    """The same, to be kept while the chain goes on."""
    return LatentClasses(
        state.log_weight.copy(),
        state.log_theta.copy(),
        state.log_admissible.copy(),
        state.mass.copy(),
        state.base.copy(),
        state.concentration,
        state.records,
        state.occupied,
    )
