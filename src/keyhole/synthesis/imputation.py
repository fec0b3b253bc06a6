"""Chains on a file with missing values, which are drawn anew in each sweep."""

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.progress import Progress, silent
from keyhole.synthesis.class_draws import Draws, Length, copied, mean_log_probability


def complete_by_turns(
    sampler: LatentClassSampler,
    codes: Codes,
    missing: Codes,
    copies: int,
    length: Length,
    *,
    rng: Generator,
    progress: Progress = silent,
) -> tuple[Draws, tuple[Codes, ...]]:
    """Draws of the parameters far apart, one for each copy, and the file as it was completed with each.

    In turn: the classes given the completed file, then the parameters, then the missing values given the class of
    their record, by the class's own law of the levels of that key.
    """
    each = -(-length.draws // length.chains)
    sweeps = length.warmup + each * length.thin
    kept: list[tuple[LatentClasses, Codes]] = []
    watched, most = [], 0
    for chain, own in enumerate(rng.spawn(length.chains)):
        full = _first_guess(codes, missing, sampler.sizes, own)
        state = sampler.start(full, own, crowded=bool(chain % 2))
        values = []
        for sweep in range(sweeps):
            tree, order = _tree(sampler.sizes, full)
            state = sampler.sweep(state, tree, own)
            member = np.empty(len(full), dtype=np.int64)
            member[order] = sampler.allocation(state, tree, own)[0]
            full = _redrawn(sampler, state, full, missing, member, own)
            if sweep % 20 == 0:
                progress("fitting and imputing", chain * sweeps + sweep, length.chains * sweeps)
            if sweep >= length.warmup and (sweep - length.warmup + 1) % length.thin == 0:
                kept.append((copied(state), full))
                values.append(mean_log_probability(sampler, state, full, own))
                most = max(most, state.occupied)
        watched.append(values)
    ends = np.linspace(0, len(kept), copies + 1)[1:].astype(np.int64) - 1
    chosen = [kept[end] for end in ends]
    states = tuple(state for state, _ in chosen)
    return Draws((), states, np.array(watched), most), tuple(file for _, file in chosen)


def _first_guess(codes: Codes, missing: Codes, sizes: tuple[int, ...], rng: Generator) -> Codes:
    """Missing values drawn from those that are there, key by key."""
    full = codes.astype(np.int64).copy()
    for key, levels in enumerate(sizes):
        gone = missing[:, key].astype(bool)
        seen = full[~gone, key]
        full[gone, key] = (
            rng.choice(seen, int(gone.sum())) if len(seen) else rng.integers(0, levels, int(gone.sum()))
        )
    return full


def _tree(sizes: tuple[int, ...], full: Codes) -> tuple[CellTree, IntVector]:
    """The distinct cells, and the records in the order of the cells."""
    keys = np.argsort(sizes, kind="stable")
    order = np.lexsort(full[:, keys].T[::-1])
    return CellTree.of(sizes, full), order


def _redrawn(
    sampler: LatentClassSampler,
    state: LatentClasses,
    full: Codes,
    missing: Codes,
    member: IntVector,
    rng: Generator,
) -> Codes:
    new = full.copy()
    for key in range(len(sampler.sizes)):
        gone = np.flatnonzero(missing[:, key])
        theta = np.exp(state.log_theta[sampler.begins[key] : sampler.begins[key + 1]])
        edges = theta.cumsum(axis=0).T[member[gone]]
        reach = rng.random((len(gone), 1)) * edges[:, -1:]
        new[gone, key] = np.minimum((edges <= reach).sum(axis=1), theta.shape[0] - 1)
    return new
