"""The all-two-way log-linear model, fitted by extended maximum likelihood over the active cells only."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
from benchmarks.peers._two_way_kernels import active_cells, fit_margins
from benchmarks.peers.limits import limits
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.errors import FitFailed
from keyhole.inference.fit import Diagnostic, Verdict
from keyhole.population.poisson import PoissonUnsampled
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent
from keyhole.table.contingency import ContingencyTable

UNTRUSTED = 1.0
"""Records by which a fitted margin may miss before the fit is not to be believed."""


@dataclass(frozen=True)
class TwoWay:
    r"""Cell means with all main effects and two-way interactions, fitted by iterative proportional fitting.

    The fit reproduces every two-way margin of the sample, so a cell with an empty one is fitted as zero. Fitted
    values are on the scale of the sample, :math:`\hat\mu_k = \pi\hat\lambda_k`, hence

    .. math:: U_k \sim \text{Poisson}\left((1 - \pi)\hat\lambda_k\right), \qquad
              (1 - \pi)\hat\lambda_k = (N - n)\,\hat\mu_k / n

    Attributes
    ----------
    most_cells
        Active cells beyond which the fit is refused: 16 bytes each, and as much again while they are found.
    tolerance
        Largest difference, in records, between the fitted and the observed margins.
    most_rounds
        Passes over all margins.
    """

    name: ClassVar[str] = "two-way"

    most_cells: int = 60_000_000
    tolerance: float = 0.01
    most_rounds: int = 200

    @property
    def settings(self) -> Mapping[str, object]:
        return {"most_cells": self.most_cells, "tolerance": self.tolerance, "most_rounds": self.most_rounds}

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "TwoWayFit":
        table = sample.table
        if len(table.keys) < 2:
            raise FitFailed(f"Two-way margins need at least two key variables; found {len(table.keys)}.")
        progress(self.name, 0, 2, "finding the cells")
        packing = _Packing.of(table)
        active, _ = active_cells(packing.seen(table), packing.levels, packing.shift, self.most_cells)
        if len(active) > self.most_cells:
            raise FitFailed(
                f"More than {self.most_cells:,} combinations have no empty two-way margin. "
                "Coarsen the keys, or use fewer."
            )
        progress(self.name, 1, 2, "fitting the margins")
        fitted = np.full(len(active), sample.sample_size / len(active))
        places, start, target = packing.margins(table)
        rounds, worst = fit_margins(
            active.view(np.uint64), fitted, places, start, target, self.tolerance, self.most_rounds
        )
        progress(self.name, 2, 2)
        unique = np.searchsorted(active, packing.pack(table.cells[table.uniques]))
        return TwoWayFit(sample, fitted[unique], len(active), rounds, worst, self.tolerance)


@dataclass(frozen=True)
class TwoWayFit:
    """A plug-in fit: the fitted means are taken as known.

    Attributes
    ----------
    fitted
        Fitted mean SAMPLE count of each sample-unique cell.
    active
        The number of cells with a positive fit.
    rounds, worst
        Passes over the margins, and the largest difference in records that the last of them found.
    """

    sample: Sample
    fitted: Vector
    active: int
    rounds: int
    worst: float
    tolerance: float

    @property
    def interval_leaves_out(self) -> str:
        return "that the fitted means of the log-linear model are themselves estimated"

    @property
    def effective_draws(self) -> None:
        return None

    def unsampled(self) -> Iterator[PoissonUnsampled]:
        yield PoissonUnsampled(self.fitted * (self.sample.unsampled_size / self.sample.sample_size))

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        words = (
            f"After {self.rounds} rounds over {self.active:,} cells the fitted two-way margins differ from the "
            f"sample's by at most {self.worst:.2g} records."
        )
        verdict: Verdict = "good" if self.worst <= self.tolerance else "caution"
        if self.worst > UNTRUSTED:
            verdict = "untrusted"
        return (Diagnostic("margins", self.worst, verdict, words), *limits(self.sample))


@dataclass(frozen=True)
class _Packing:
    """Where each variable's code sits in a packed cell; the most restricting variable comes first."""

    order: IntVector
    levels: IntVector
    bits: IntVector
    shift: IntVector

    @classmethod
    def of(cls, table: ContingencyTable) -> "_Packing":
        order = _most_restricting_first(table)
        levels = np.array(table.levels, dtype=np.int64)[order]
        bits = np.array([max(int(size - 1).bit_length(), 1) for size in levels], dtype=np.int64)
        if bits.sum() > 63:
            raise FitFailed(f"The keys need {bits.sum()} bits, more than the 63 of an integer. Use fewer keys.")
        return cls(order, levels, bits, np.cumsum(bits[::-1])[::-1] - bits)

    def pack(self, cells: Codes) -> IntVector:
        return np.asarray((cells[:, self.order].astype(np.int64) << self.shift).sum(axis=1))

    def seen(self, table: ContingencyTable) -> Mask:
        return _seen(table, self.order)

    def margins(self, table: ContingencyTable) -> tuple[NDArray[np.uint64], IntVector, Vector]:
        """The arguments of ``fit_margins`` that say what the two-way margins are."""
        pairs = np.array(list(combinations(range(len(self.order)), 2)))
        bits, shift = self.bits[pairs], self.shift[pairs]
        mask = (np.int64(1) << bits) - 1
        start = np.concatenate([[0], np.cumsum(np.int64(1) << bits.sum(axis=1))])
        codes = table.cells[:, self.order].astype(np.int64)
        target = np.zeros(start[-1])
        for t, (a, b) in enumerate(pairs):
            np.add.at(target, start[t] + (codes[:, a] << bits[t, 1]) + codes[:, b], table.counts)
        places = np.column_stack([shift[:, 0], mask[:, 0], shift[:, 1], mask[:, 1], bits[:, 1]])
        return places.astype(np.uint64), start, target


def _seen(table: ContingencyTable, order: IntVector) -> Mask:
    """Which levels occur together, the levels of all variables numbered through."""
    levels = np.array(table.levels)[order]
    codes = table.cells[:, order].astype(np.int64) + np.cumsum(levels) - levels
    seen = np.zeros((levels.sum(), levels.sum()), dtype=np.bool_)
    for a, b in combinations(range(len(order)), 2):
        seen[codes[:, a], codes[:, b]] = seen[codes[:, b], codes[:, a]] = True
    seen[codes.ravel(), codes.ravel()] = True
    return seen


def _most_restricting_first(table: ContingencyTable) -> IntVector:
    """Variables by the share of their pairs with levels of others that never occur: early pruning."""
    seen = _seen(table, np.arange(len(table.keys)))
    ends = np.cumsum(table.levels)
    share = [seen[end - size : end].mean() for end, size in zip(ends, table.levels, strict=True)]
    return np.argsort(share, kind="stable")
