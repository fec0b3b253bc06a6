r"""Closed forms of decomposable models: maximum likelihood from the margins of the cliques.

With cliques :math:`C_i` and separators :math:`S_i` in running-intersection order the fitted mean of a cell is

.. math:: \log \hat m(x) = \log n + \sum_i \log \frac{n_{C_i}(x)}{n_{S_i}(x)}, \qquad n_\emptyset = n,

a product of estimated conditional probabilities of each clique given what was known before. A cell that nobody
resembles in some clique has mean zero: the extended maximum likelihood estimate. Margins hold the combinations
that occur, so a table of any size costs what its occupied cells cost.

The factors are asymptotically independent. Given its separator a clique's counts are multinomial, and by the delta
method the logs of their shares have the covariance

.. math:: \mathrm{cov}\Bigl(\log \frac{n_C(a)}{n_S(s)}, \log \frac{n_C(b)}{n_S(s)}\Bigr)
          = \frac{1\{a = b\}}{n_C(a)} - \frac{1}{n_S(s)},

zero where a and b differ in the separator. The log of a Poisson total adds 1/n, so that

.. math:: \mathrm{var} \log \hat m(x) = \frac1n + \sum_i \Bigl(\frac{1}{n_{C_i}(x)} - \frac{1}{n_{S_i}(x)}\Bigr),

which is the sum of 1/n_C over cliques less the sum of 1/n_S over the separators between them.

References
----------
Lauritzen (1996), Graphical Models, section 4.4.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.models.loglinear.graph import Decomposition
from keyhole.table.packing import Packing, rank_rows


@dataclass(frozen=True, eq=False)
class Factor:
    """The estimated law of one clique given its separator, at the combinations that occur.

    Attributes
    ----------
    keys
        The keys of the clique.
    packing
        The numbering of their combinations.
    packed
        The combinations that occur, packed, in rising order.
    totals
        The total of each, n_C.
    group, group_totals
        The combination of the separator that each of them has, and the totals of those, n_S.
    """

    keys: tuple[int, ...]
    packing: Packing
    packed: IntVector = field(repr=False)
    totals: Vector = field(repr=False)
    group: IntVector = field(repr=False)
    group_totals: Vector = field(repr=False)

    @classmethod
    def of(
        cls,
        clique: tuple[int, ...],
        separator: tuple[int, ...],
        cells: Codes,
        counts: Vector,
        sizes: Sequence[int],
    ) -> "Factor":
        packing = Packing(tuple(sizes[key] for key in clique))
        packed = packing.pack(cells[:, clique])
        first, row = rank_rows(packed)
        totals = np.bincount(row, counts).astype(np.float64)
        given = Packing(tuple(sizes[key] for key in separator)).pack(cells[first][:, separator])
        _, group = rank_rows(given)
        group_totals = np.bincount(group, totals).astype(np.float64)
        return cls(clique, packing, packed[first], totals, group, group_totals)

    def find(self, cells: Codes) -> IntVector:
        """The row of each cell's combination, -1 where nobody has it."""
        wanted = self.packing.pack(cells[:, self.keys])
        rows = len(self.packed)
        if wanted.shape[1] == 1:
            place = np.minimum(np.searchsorted(self.packed[:, 0], wanted[:, 0]), rows - 1)
            return np.where(self.packed[place, 0] == wanted[:, 0], place, -1)
        _, rank = rank_rows(np.concatenate([self.packed, wanted]))
        row = np.full(len(rank), -1)
        row[rank[:rows]] = np.arange(rows)
        return row[rank[rows:]]

    @cached_property
    def log_share(self) -> Vector:
        """log n_C/n_S."""
        return np.log(self.totals / self.group_totals[self.group])

    @cached_property
    def variance(self) -> Vector:
        """1/n_C - 1/n_S."""
        return 1.0 / self.totals - 1.0 / self.group_totals[self.group]

    def noise(self, rng: Generator) -> Vector:
        r"""One draw of the estimation error of the log shares.

        With z standard normal, :math:`z_c/\sqrt{n_c} - \sum_d \sqrt{n_d} z_d / n_S`, the sum over the combinations
        that share the separator, has the covariance of the delta method.
        """
        root = np.sqrt(self.totals)
        z = rng.standard_normal(len(root))
        common = np.bincount(self.group, root * z) / self.group_totals
        return np.asarray(z / root - common[self.group])


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """The extended maximum likelihood estimate of a decomposable model.

    Attributes
    ----------
    total
        n, the sum of the counts.
    factors
        The estimated law of each clique given its separator.
    """

    total: float
    factors: tuple[Factor, ...]

    @property
    def parameters(self) -> int:
        """The parameters that the sample determines, the constant among them: those of positive margins."""
        return 1 + sum(len(factor.totals) - len(factor.group_totals) for factor in self.factors)

    def log_fitted(self, cells: Codes) -> Vector:
        """log m of cells; minus infinity where the margin of a clique is zero."""
        rows, seen = self._rows(cells)
        fitted = np.log(self.total) + sum(
            factor.log_share[row] for factor, row in zip(self.factors, rows, strict=True)
        )
        return np.where(seen, fitted, -np.inf)

    def log_fitted_variance(self, cells: Codes, *, given_total: bool = False) -> Vector:
        """The asymptotic variance of log m at cells; zero where m is zero.

        Parameters
        ----------
        given_total
            Whether n is fixed by the design (a multinomial sample) rather than Poisson. With weights the counts
            must add up to the effective sample size.
        """
        rows, seen = self._rows(cells)
        variance = sum(factor.variance[row] for factor, row in zip(self.factors, rows, strict=True))
        return np.where(seen, variance if given_total else 1.0 / self.total + variance, 0.0)

    def log_fitted_noise(self, cells: Codes, size: int, *, given_total: bool = False, rng: Generator) -> Vector:
        """Draws (size, cells) of the estimation error of log m, normal with the covariance of the delta method.

        Cells that share margins err together. Cells whose mean is zero stay there.
        """
        rows, seen = self._rows(cells)
        noise = np.zeros((size, len(cells)))
        for draw in noise:
            if not given_total:
                draw += rng.standard_normal() / np.sqrt(self.total)
            for factor, row in zip(self.factors, rows, strict=True):
                draw += factor.noise(rng)[row]
        noise[:, ~seen] = 0.0
        return noise

    def _rows(self, cells: Codes) -> tuple[list[IntVector], Mask]:
        """The row of each cell in each factor, and whether it has one in all of them."""
        rows = [factor.find(cells) for factor in self.factors]
        return rows, np.all([row >= 0 for row in rows], axis=0)


def fit_closed_form(
    tree: Decomposition, cells: Codes, counts: Vector | IntVector, sizes: Sequence[int]
) -> ClosedForm:
    """Fit a decomposable model to the occupied cells of a table.

    Parameters
    ----------
    tree
        The model's cliques, from `decomposition`.
    cells, counts
        Rows of level codes and the records, or weights, of each.
    sizes
        The number of levels of each key.

    Examples
    --------
    >>> tree = Decomposition.of([(0,), (1,)])
    >>> fit = fit_closed_form(tree, np.array([[0, 0], [1, 1]]), np.array([3, 1]), (2, 3))
    >>> np.exp(fit.log_fitted(np.array([[0, 1], [0, 2]]))).round(9).tolist()
    [0.75, 0.0]
    """
    occupied = np.asarray(counts) > 0
    cells, weight = cells[occupied], np.asarray(counts, dtype=np.float64)[occupied]
    factors = tuple(
        Factor.of(clique, separator, cells, weight, sizes)
        for clique, separator in zip(tree.cliques, tree.separators, strict=True)
    )
    return ClosedForm(float(weight.sum()), factors)


def free_parameters(tree: Decomposition, sizes: Sequence[int]) -> int:
    """The parameters of the model on the whole table, the constant among them.

    Examples
    --------
    >>> free_parameters(Decomposition.of([(0, 1), (1, 2)]), (2, 3, 4))
    15
    """
    cells = [prod(sizes[key] for key in clique) for clique in tree.cliques]
    return 1 + sum(cells) - sum(prod(sizes[key] for key in separator) for separator in tree.separators)
