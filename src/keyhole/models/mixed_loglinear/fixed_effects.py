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

from keyhole.arrays import Vector
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
        total = np.zeros(self.levels)
        for term, block in zip(self.terms, self.blocks, strict=True):
            effect = beta[block].reshape([self.levels[key] - 1 for key in term])
            for axis, key in enumerate(term):
                effect = _along(self.contrasts[key], effect, axis)
            total += effect.reshape([size if key in term else 1 for key, size in enumerate(self.levels)])
        return total

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
        """X' diag(y) X of a table y."""
        found = np.zeros((self.number, self.number))
        for i, (one, rows) in enumerate(zip(self.terms, self.blocks, strict=True)):
            for other, columns in zip(self.terms[: i + 1], self.blocks[: i + 1], strict=True):
                found[rows, columns] = self._between(margins, one, other)
                found[columns, rows] = found[rows, columns].T
        return found

    def _between(self, margins: Margins, one: tuple[int, ...], other: tuple[int, ...]) -> Vector:
        """The part of the information that two terms share."""
        both = tuple(sorted({*one, *other}))
        found, shape, rows, columns = margins.of(both), list[int](), list[int](), list[int]()
        for axis, key in enumerate(both):
            size = self.levels[key] - 1
            shared = key in one and key in other
            found = _along(self._squares[key] if shared else self.contrasts[key].T, found, axis)
            if key in one:
                rows.append(len(shape))
                shape.append(size)
            if key in other:
                columns.append(len(shape))
                shape.append(size)
        whole = found.reshape(shape).transpose(rows + columns)
        return whole.reshape(prod(shape[axis] for axis in rows), -1)

    @cached_property
    def _squares(self) -> tuple[Vector, ...]:
        """The products of any two columns of H of each key, one row each."""
        return tuple((H[:, :, None] * H[:, None, :]).reshape(len(H), -1).T for H in self.contrasts)


def _along(matrix: Vector, values: Vector, axis: int) -> Vector:
    """A matrix applied along one axis."""
    return np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
