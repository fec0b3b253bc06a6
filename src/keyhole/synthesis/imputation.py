"""Chains on a file with missing values, which are drawn anew in each sweep."""

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Mask
from keyhole.errors import FitFailed
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.progress import Progress, silent
from keyhole.synthesis.class_draws import Draws, Length, copied, mean_log_probability

TRIES, AGAIN = 1_000, 20
"""Draws of missing values before one that can be: at first, and in each sweep."""


def complete_by_turns(
    sampler: LatentClassSampler,
    codes: Codes,
    missing: Mask,
    copies: int,
    length: Length,
    *,
    rng: Generator,
    progress: Progress = silent,
) -> tuple[Draws, tuple[Codes, ...]]:
    """Draws of the parameters far apart, one for each copy, and the file as it was completed with each.

    In turn: the classes given the completed file, then the parameters, then the missing values given the class of
    their record, by the class's own law of the levels of that key; what cannot be is drawn again.
    """
    each = -(-length.draws // length.chains)
    sweeps = length.warmup + each * length.thin
    ends = np.maximum(np.linspace(0, each * length.chains, copies + 1)[1:].astype(np.int64) - 1, 0)
    kept: dict[int, tuple[LatentClasses, Codes]] = {}
    watched, most = [], 0
    for chain, own in enumerate(rng.spawn(length.chains)):
        full = _first_guess(sampler, codes, missing, own)
        state = sampler.start(full, own, crowded=bool(chain % 2))
        values: list[float] = []
        for sweep in range(sweeps):
            tree = CellTree.of(sampler.sizes, full)
            state = sampler.sweep(state, tree, own)
            member = _members(sampler, state, tree, full, own)
            full = _redrawn(sampler, state, full, missing, member, own)
            if sweep % 20 == 0:
                progress("fitting and imputing", chain * sweeps + sweep, length.chains * sweeps)
            if sweep >= length.warmup and (sweep - length.warmup + 1) % length.thin == 0:
                place = chain * each + len(values)
                if place in ends:  # the others would fill the memory
                    kept[place] = copied(state), full
                values.append(mean_log_probability(sampler, state, full, own))
                most = max(most, state.occupied)
        watched.append(values)
    chosen = [kept[end] for end in ends.tolist()]
    states = tuple(state for state, _ in chosen)
    return Draws((), states, np.array(watched), most), tuple(file for _, file in chosen)


def _first_guess(sampler: LatentClassSampler, codes: Codes, missing: Mask, rng: Generator) -> Codes:
    """Missing values drawn from those that are there, key by key.

    Raises
    ------
    FitFailed
        For some records nothing was found that can be.
    """
    full = codes.astype(np.int64).copy()
    open_ = np.flatnonzero(missing.any(axis=1))
    for _ in range(TRIES):
        for key, levels in enumerate(sampler.sizes):
            gone = open_[missing[open_, key]]
            seen = full[~missing[:, key], key]
            drawn = rng.integers(0, levels, len(gone)) if not len(seen) else rng.choice(seen, len(gone))
            full[gone, key] = drawn
        open_ = open_[_impossible(sampler, full[open_])]
        if not len(open_):
            return full
    raise FitFailed(
        f"For {len(open_):,} records with missing values no combination was found that the rules leave possible."
    )


def _impossible(sampler: LatentClassSampler, codes: Codes) -> Mask:
    return np.zeros(len(codes), dtype=bool) if sampler.diagram is None else sampler.diagram.impossible(codes)


def _members(
    sampler: LatentClassSampler, state: LatentClasses, tree: CellTree, full: Codes, rng: Generator
) -> IntVector:
    """The class of each record, in the order of the file.

    The classes of a cell come sorted, so records of a cell are put in random order: which of them has a missing
    value must not depend on its place in the file.
    """
    keys = np.argsort(sampler.sizes, kind="stable")
    order = np.lexsort((rng.random(len(full)), *full[:, keys].T[::-1]))
    member = np.empty(len(full), dtype=np.int64)
    member[order] = sampler.allocation(state, tree, rng)[0]
    return member


def _redrawn(
    sampler: LatentClassSampler,
    state: LatentClasses,
    full: Codes,
    missing: Mask,
    member: IntVector,
    rng: Generator,
) -> Codes:
    """Missing values given the classes; a record for which only what cannot be was drawn keeps its old ones.

    That leaves the right law as it is: whether a record keeps them does not depend on what they are.
    """
    new, open_ = full.copy(), np.flatnonzero(missing.any(axis=1))
    for _ in range(AGAIN):
        for key in range(len(sampler.sizes)):
            gone = open_[missing[open_, key]]
            new[gone, key] = levels_of_key(sampler, state, key, member[gone], rng)
        open_ = open_[_impossible(sampler, new[open_])]
        if not len(open_):
            return new
    new[open_] = full[open_]
    return new


def levels_of_key(
    sampler: LatentClassSampler, state: LatentClasses, key: int, member: IntVector, rng: Generator
) -> IntVector:
    """A level of one key for each record, by the law of its class, whatever the other keys are."""
    theta = np.exp(state.log_theta[sampler.begins[key] : sampler.begins[key + 1]])
    edges = theta.cumsum(axis=0).T[member]
    reach = rng.random((len(member), 1)) * edges[:, -1:]
    return np.asarray(np.minimum((edges <= reach).sum(axis=1), theta.shape[0] - 1))
