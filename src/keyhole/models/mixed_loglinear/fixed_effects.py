r"""Effects of keys and of sets of keys on the logarithm of a cell's mean; the empty set is the overall effect.

.. math:: \log\xi_k = \sum_T u_T(k_T), \qquad u_T = (H_{j} \otimes H_{j'} \otimes \cdots)\,\beta_T

for each set T of keys in the model. The columns of :math:`H_j` are orthonormal and orthogonal to the constant, so
that the effects of a key add up to zero over its levels, whatever the levels of the others, and with independent
normal :math:`\beta` no level is treated unlike another. What gradient and information of a Poisson likelihood
need of a table are its margins: no design matrix is ever made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import prod

import numpy as np
from scipy.linalg import helmert

from keyhole.arrays import IntVector, Vector
from keyhole.inference.formula import Generators


class Margins:
    """The margins of a table with one axis for each key, each worked out from a larger one."""

    def __init__(self, table: Vector) -> None:
        self._known = {tuple(range(table.ndim)): table}
        self._keys = table.ndim

    def of(self, keys: tuple[int, ...]) -> Vector:
        """The margin of some keys, in rising order."""
        if keys not in self._known:
            # Sums over an axis in front add rows, which is faster than adding up each row.
            missing = max(key for key in range(self._keys) if key not in keys)
            larger = tuple(sorted((*keys, missing)))
            self._known[keys] = self.of(larger).sum(axis=larger.index(missing))
        return self._known[keys]


@dataclass(frozen=True, eq=False)
class FixedEffects:
    """Which effects there are.

    Attributes
    ----------
    levels
        Of each key.
    terms
        The sets of keys with an effect, each in rising order.
    """

    levels: tuple[int, ...]
    terms: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, levels: Sequence[int], generators: Generators, *, overall: bool = False) -> "FixedEffects":
        """The generators and everything inside them, with an overall effect or without."""
        inside = {
            part for keys in generators for size in range(1, len(keys) + 1) for part in combinations(keys, size)
        }
        inside |= {()} if overall else set()
        return cls(tuple(levels), tuple(sorted(inside, key=lambda keys: (len(keys), keys))))

    @cached_property
    def contrasts(self) -> tuple[Vector, ...]:
        """H of each key: its levels by one less."""
        return tuple(np.asarray(helmert(size).T) if size > 1 else np.zeros((1, 0)) for size in self.levels)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Where the parameters of each term are."""
        sizes = [prod(self.levels[key] - 1 for key in term) for term in self.terms]
        ends = np.cumsum([0, *sizes])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @property
    def number(self) -> int:
        """Parameters."""
        return self.blocks[-1].stop if self.blocks else 0

    def predictor(self, beta: Vector) -> Vector:
        """log xi of all cells, one axis for each key."""
        keys = len(self.levels)
        total = np.zeros([1] * keys)
        for first in range(keys, -1, -1):
            # Terms of the last keys first, while the sum is small: one pass over all cells is left for the rest.
            for term, block in zip(self.terms, self.blocks, strict=True):
                if min(term, default=keys) == first:
                    effect = beta[block].reshape([self.levels[key] - 1 for key in term])
                    for axis, key in enumerate(term):
                        effect = _along(self.contrasts[key], effect, axis)
                    total = total + effect.reshape(
                        [size if key in term else 1 for key, size in enumerate(self.levels)]
                    )
        return total if total.shape == self.levels else np.broadcast_to(total, self.levels).copy()

    def projected(self, margins: Margins) -> Vector:
        """X'y of a table y."""
        return self._projected(margins, self.contrasts)

    def projected_squares(self, margins: Margins) -> Vector:
        """The diagonal of X' diag(y) X."""
        return self._projected(margins, tuple(H**2 for H in self.contrasts))

    def _projected(self, margins: Margins, contrasts: tuple[Vector, ...]) -> Vector:
        found = np.zeros(self.number)
        for term, block in zip(self.terms, self.blocks, strict=True):
            margin = margins.of(term)
            for axis, key in enumerate(term):
                margin = _along(contrasts[key].T, margin, axis)
            found[block] = margin.ravel()
        return found

    def information(self, margins: Margins) -> Vector:
        """X' diag(y) X of a table y: first for indicators of levels, then for the contrasts of each term."""
        size = self._indicators[-1].stop if self.terms else 0
        known = [margins.of(both).ravel() for both, _, _ in self._shared]
        found = np.zeros((size, size))
        for (_, rows, columns), margin in zip(self._shared, known, strict=True):
            found[rows, columns] = margin
            found[columns, rows] = margin
        for _ in range(2):
            parts = [H.T @ found[place] for H, place in zip(self._bases, self._indicators, strict=True)]
            found = np.concatenate([np.zeros((0, len(found.T))), *parts]).T
        return found

    @cached_property
    def _indicators(self) -> tuple[slice, ...]:
        """Where the indicators of the levels of each term are."""
        ends = np.cumsum([0, *(prod(self.levels[key] for key in term) for term in self.terms)])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @cached_property
    def _bases(self) -> tuple[Vector, ...]:
        """The contrasts of each term."""
        found = []
        for term in self.terms:
            H: Vector = np.ones((1, 1))
            for key in term:
                H = np.asarray(np.kron(H, self.contrasts[key]), dtype=np.float64)
            found.append(H)
        return tuple(found)

    @cached_property
    def _shared(self) -> tuple[tuple[tuple[int, ...], IntVector, IntVector], ...]:
        """For any two terms their keys together, and which two indicators each cell of those keys has."""
        found = []
        for i, one in enumerate(self.terms):
            for j, other in enumerate(self.terms[: i + 1]):
                both = tuple(sorted({*one, *other}))
                cells = dict(zip(both, np.indices([self.levels[key] for key in both]), strict=True))
                places = [
                    self._indicators[at].start + self._numbered(term, cells) for at, term in ((i, one), (j, other))
                ]
                found.append((both, *places))
        return tuple(found)

    def _numbered(self, term: tuple[int, ...], cells: dict[int, IntVector]) -> IntVector:
        """Which combination of levels of a term each cell has."""
        number = np.zeros(1, dtype=np.int64)
        for key in term:
            number = number * self.levels[key] + cells[key].ravel()
        return number


def _along(matrix: Vector, values: Vector, axis: int) -> Vector:
    """A matrix applied along one axis."""
    return np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
