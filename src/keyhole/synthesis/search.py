"""Candidates beyond the neighbours of a record, where all combinations are too many: a search for the likely ones.

What copies add to a combination hardly depends on which single record is unknown. So one search serves all
records: from the combinations of the file and of the copies it goes to neighbours of those that gain most, some
at random, and keeps the best it has met.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.synthesis import _kernels as kernels
from keyhole.synthesis.class_draws import ClassDraw
from keyhole.synthesis.supports import Listed, Near, begins_of
from keyhole.table.structural_zeros import StructuralZeros

THINNED = 40
"""Draws of each file that the search goes by."""


@dataclass(frozen=True, eq=False)
class Searched:
    """A record, its neighbours, and the combinations that a search has found."""

    near: Near
    pool: Listed

    @property
    def name(self) -> str:
        return "search"

    def mask(self, cells: Codes) -> Mask:
        far = (self.pool.candidates(cells)[:, 1:] != cells[:, None, :]).sum(axis=2) > 1
        return np.concatenate([self.near.mask(cells), self.pool.mask(cells)[:, 1:] & far], axis=1)

    def candidates(self, cells: Codes) -> Codes:
        return np.concatenate([self.near.candidates(cells), self.pool.candidates(cells)[:, 1:]], axis=1)

    def probabilities(self, cells: Codes, own: IntVector, draw: ClassDraw) -> Vector:
        far = self.pool.probabilities(cells, own, draw)[:, 1:]
        return np.concatenate([self.near.probabilities(cells, own, draw), far], axis=1)


@dataclass(frozen=True, eq=False)
class Search:
    """How to search: so many rounds, so many combinations kept.

    Attributes
    ----------
    by_model
        Whether the intruder believes beforehand what the model says, so that likely combinations count for more.
    """

    sizes: tuple[int, ...]
    zeros: StructuralZeros | None = field(default=None, repr=False)
    rounds: int = 8
    kept: int = 400
    by_model: bool = False

    def run(
        self, cells: Codes, alone: Sequence[ClassDraw], stacked: Sequence[Sequence[ClassDraw]], rng: Generator
    ) -> Searched:
        """Search from the combinations ``cells``."""
        near = Near(self.sizes)
        pool = cells[rng.permutation(len(cells))[: 4 * self.kept]].astype(np.int32)
        score = self._gain(pool, alone, stacked)
        for _ in range(self.rounds):
            best = np.argsort(-score)[: self.kept]
            # Half of the starts by what they gain, half at random among the kept ones.
            starts = pool[np.concatenate([best[: self.kept // 20], rng.choice(best, self.kept // 20)])]
            steps = near.candidates(np.unique(starts, axis=0)).reshape(-1, len(self.sizes))
            pool = np.unique(np.concatenate([pool[best], steps]), axis=0)
            if self.zeros is not None:
                pool = pool[~self.zeros.contains(pool)]
            score = self._gain(pool, alone, stacked)
        chosen = np.sort(np.argsort(-score)[: self.kept])
        return Searched(Near(self.sizes, zeros=self.zeros), Listed("search", self.sizes, pool[chosen]))

    def _gain(self, pool: Codes, alone: Sequence[ClassDraw], stacked: Sequence[Sequence[ClassDraw]]) -> Vector:
        """The log posterior of each combination, up to a constant, as if nobody were taken away."""
        before = self._log_mean(pool, alone)
        total = sum((self._log_mean(pool, draws) - before for draws in stacked), np.zeros(len(pool)))
        return np.asarray(total + before if self.by_model else total)

    def _log_mean(self, pool: Codes, draws: Sequence[ClassDraw]) -> Vector:
        begins = begins_of(self.sizes)[:-1]
        places, nothing = (pool + begins).astype(np.int64), np.zeros(len(begins), dtype=bool)
        total, found = np.zeros(len(pool)), np.empty((1, len(pool)))
        for draw in draws[:: max(1, len(draws) // THINNED)]:
            law = (draw.weight, draw.share, draw.total)
            kernels.listed(places[:1], np.array([-1]), *law, places, nothing, found)
            total += found[0]
        return np.asarray(np.log(np.maximum(total, 1e-300)))
