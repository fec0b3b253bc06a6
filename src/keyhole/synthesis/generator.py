"""Synthetic records from the latent classes of a file."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.errors import FitFailed
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.model import NEAR, first_classes
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.progress import Progress, silent
from keyhole.synthesis.class_draws import Draws, Length, draw_classes
from keyhole.synthesis.imputation import complete_by_turns, levels_of_key
from keyhole.table.structural_zeros import StructuralZeros

TRIES = 1_000
"""Proposals of the levels of some keys, the others given, before one that can be."""

AT_ONCE = 1 << 16
"""Records whose classes are drawn together."""


@dataclass(frozen=True, eq=False)
class Synthesis:
    """Synthetic files and what made them.

    Attributes
    ----------
    copies
        Rows of codes, shuffled.
    generating
        The parameters that made each copy.
    draws
        The chains they come from.
    """

    copies: tuple[Codes, ...] = field(repr=False)
    generating: tuple[LatentClasses, ...] = field(repr=False)
    draws: Draws = field(repr=False)
    classes: int


def sampler_of(
    sizes: tuple[int, ...], records: int, zeros: StructuralZeros | None, classes: int = 0
) -> LatentClassSampler:
    """The model of a file: classes enough for its records, level probabilities around the marginal law."""
    diagram = None if zeros is None else zeros.small_diagram
    return LatentClassSampler(sizes, classes or first_classes(records), "marginal", diagram=diagram)


def synthesize(
    sampler: LatentClassSampler,
    codes: Codes,
    *,
    copies: int,
    records: int | None = None,
    only: Sequence[int] | None = None,
    zeros: StructuralZeros | None = None,
    missing: Mask | None = None,
    length: Length | None = None,
    rng: Generator,
    progress: Progress = silent,
) -> Synthesis:
    """Make ``copies`` synthetic files from draws of the parameters that are far apart.

    Parameters
    ----------
    codes
        The file, one row per record.
    records
        Of each copy; as many as in the file by default. With ``only`` it must be that.
    only
        The keys to synthesise, given each record's own levels of the others; all by default.
    missing
        True where a value is missing and to be imputed; what ``codes`` hold there does not matter.
    """
    length = length or Length()
    chains, draws, walk = rng.spawn(3)
    if missing is not None and missing.any():
        found, files = complete_by_turns(sampler, codes, missing, copies, length, rng=chains, progress=progress)
        states = found.states
    else:
        tree = CellTree.of(sampler.sizes, codes)
        asked = np.unique(codes, axis=0)
        found = draw_classes(
            sampler, tree, asked, length, rng=chains, progress=progress, task="fitting", keep_states=True
        )
        # The last draw of each of as many stretches of the chains: as far apart as they can be.
        ends = np.linspace(0, len(found.states), copies + 1)[1:].astype(np.int64) - 1
        states, files = tuple(found.states[end] for end in ends), (codes,) * copies
    made = []
    states = tuple(_without_empty(sampler, state, file, draws) for state, file in zip(states, files, strict=True))
    for state, file in zip(states, files, strict=True):
        if only is None or len(only) == len(sampler.sizes):
            member = draws.choice(sampler.classes, records or len(codes), p=_shares(state))
            copy = sampler.levels_of(member, state, draws)
        else:
            copy = _given_others(sampler, state, file, tuple(only), zeros, draws)
        made.append(copy[walk.permutation(len(copy))].astype(np.int32))
    return Synthesis(tuple(made), states, found, sampler.classes)


def binds(found: Synthesis) -> bool:
    """Whether more classes might be needed than there are."""
    return found.draws.most_classes >= NEAR * found.classes


def _without_empty(
    sampler: LatentClassSampler, state: LatentClasses, codes: Codes, rng: Generator
) -> LatentClasses:
    """The same without the classes that no record has: what they would make is the prior's, not the file's."""
    sizes = sampler.allocation(state, CellTree.of(sampler.sizes, codes), rng)[1]
    log_weight = np.where(sizes > 0, state.log_weight, -np.inf)
    top = log_weight.max()
    return replace(state, log_weight=log_weight - top - np.log(np.exp(log_weight - top).sum()))


def _shares(state: LatentClasses) -> Vector:
    weight = np.exp(state.log_weight - state.log_weight.max())
    return np.asarray(weight / weight.sum())


def _given_others(
    sampler: LatentClassSampler,
    state: LatentClasses,
    codes: Codes,
    only: tuple[int, ...],
    zeros: StructuralZeros | None,
    rng: Generator,
) -> Codes:
    """New levels of some keys, given each record's levels of the others."""
    kept = [key for key in range(len(sampler.sizes)) if key not in only]
    made, open_ = codes.astype(np.int64).copy(), np.arange(len(codes))
    for _ in range(TRIES):
        member = _classes_given(sampler, state, codes[open_], kept, rng)
        for key in only:
            made[open_, key] = levels_of_key(sampler, state, key, member, rng)
        if zeros is None:
            return made
        # A class's levels are independent but for what is impossible: what cannot be is drawn again.
        open_ = open_[zeros.contains(made[open_])]
        if not len(open_):
            return made
    raise FitFailed(
        f"For {len(open_):,} of {len(codes):,} records no possible combination was found in {TRIES:,} tries: the "
        "rules leave next to nothing where the other keys are given. Synthesise more keys."
    )


def _classes_given(
    sampler: LatentClassSampler, state: LatentClasses, codes: Codes, kept: list[int], rng: Generator
) -> IntVector:
    member = np.empty(len(codes), dtype=np.int64)
    for start in range(0, len(codes), AT_ONCE):
        part = codes[start : start + AT_ONCE]
        log = np.repeat((state.log_weight - state.log_admissible)[None], len(part), axis=0)
        for key in kept:
            log += state.log_theta[sampler.begins[key] + part[:, key].astype(np.int64)]
        weight = np.exp(log - log.max(axis=1, keepdims=True)).cumsum(axis=1)
        reach = rng.random((len(part), 1)) * weight[:, -1:]
        member[start : start + AT_ONCE] = np.minimum((weight <= reach).sum(axis=1), weight.shape[1] - 1)
    return member
