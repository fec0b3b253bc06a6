"""Do synthetic files have the tables of the original?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from keyhole.arrays import Codes, IntVector, Vector, read_only
from keyhole.errors import InvalidKeys
from keyhole.synthesis.utility_files import check_files

SPARSE = 4
"""A two-way table with more cells than this many times the records is counted by its occupied cells alone."""


@dataclass(frozen=True, slots=True)
class TableUtility:
    r"""How far the one- and two-way tables of the copies are from those of the original, on average over copies.

    In a table, write :math:`o_c` and :math:`s_c` for the records of the original and of a copy in cell c,
    :math:`n_o` and :math:`n_s` for all their records, and :math:`k` for the cells that either of them occupies.

    .. math::

        \text{distance} &= \tfrac12 \sum_c \left|\frac{s_c}{n_s} - \frac{o_c}{n_o}\right| \\
        X^2 &= \frac{n_o n_s}{n_o + n_s} \sum_c \frac{(s_c/n_s - o_c/n_o)^2}{(s_c + o_c)/(n_o + n_s)} \\
        \text{ratio} &= \frac{X^2}{k - 1} \cdot \frac{n_o + n_s - 1}{n_o + n_s}

    Attributes
    ----------
    tables
        The names of the one or two keys of each table: first the one-way tables, then the two-way.
    distance
        Total variation distance: the share of the records that would have to change cell. It has no fixed
        expectation; small files and large tables are further apart.
    ratio
        1 on average if the copy is another sample from where the original came from. A copy is left out where one
        cell holds all records of both, so that there is nothing to compare; NaN if that is so in all copies.
    degrees_of_freedom
        :math:`k - 1`.

    Notes
    -----
    For files of one size :math:`X^2` is half of :math:`\sum_c (s_c - o_c)^2 / ((s_c + o_c)/2)`. For any sizes it
    is the chi-squared statistic of a table of k cells by two files. If every way of dealing the records out to two
    files of these sizes is equally likely, its expectation is exactly :math:`(k - 1)\,N/(N - 1)` with
    :math:`N = n_o + n_s`, however sparse the table: :math:`s_c` is then hypergeometric with variance
    :math:`t_c (N - t_c)\,n_o n_s / (N^2 (N - 1))` for :math:`t_c = s_c + o_c`, and
    :math:`X^2 = \sum_c (s_c - t_c n_s/N)^2\,N^2/(n_o n_s t_c)`. The ratio divides by that.

    Such are copies from the posterior predictive law of a good model: they vary about the truth as much as the
    original did. A copy drawn from the shares of the original themselves, or from a law fitted to them, has a
    ratio of only :math:`n_o/N` on average; a ratio much below that says that the copy repeats the original.

    References
    ----------
    Voas & Williamson (2001), Geographical & Environmental Modelling 5, 177-200; for the part played by the null
    law: Snoke, Raab, Nowok, Dibben & Slavkovic (2018), Journal of the Royal Statistical Society A 181, 663-688.
    """

    tables: tuple[tuple[str, ...], ...]
    distance: Vector = field(repr=False)
    ratio: Vector = field(repr=False)
    degrees_of_freedom: Vector = field(repr=False)

    def __post_init__(self) -> None:
        for name in ("distance", "ratio", "degrees_of_freedom"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def mean_distance(self, ways: int) -> float:
        """Mean distance of the one-way (1) or two-way (2) tables; NaN if there are none."""
        return _mean(self.distance[self._having(ways)])

    def mean_ratio(self, ways: int) -> float:
        """Mean ratio of the one-way (1) or two-way (2) tables that can be compared; NaN if there are none."""
        ratio = self.ratio[self._having(ways)]
        return _mean(ratio[~np.isnan(ratio)])

    def _having(self, ways: int) -> IntVector:
        return np.array([place for place, names in enumerate(self.tables) if len(names) == ways], dtype=np.int64)


def compare_tables(
    original: Codes, copies: Sequence[Codes], sizes: Sequence[int], names: Sequence[str]
) -> TableUtility:
    """Compare all one- and two-way tables of synthetic copies with those of the original.

    Parameters
    ----------
    original, copies
        Level codes, one row a record, one column a key. Copies may have another number of records.
    sizes, names
        Number of levels and name of each key.

    Raises
    ------
    InvalidKeys
        Files that cannot be compared.

    Examples
    --------
    >>> original = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> copy = np.array([[0, 0], [0, 0], [1, 0], [1, 1]])
    >>> found = compare_tables(original, [copy], (2, 2), ("SEX", "WORK"))
    >>> for table, distance in zip(found.tables, found.distance.tolist()):
    ...     print(*table, distance)
    SEX 0.0
    WORK 0.25
    SEX WORK 0.25
    """
    check_files(original, copies, sizes)
    if len(names) != len(sizes):
        raise InvalidKeys(f"There are {len(names)} names for {len(sizes)} keys: give each key one name.")
    found = np.array([[_compare(*counts) for counts in _tables(original, copy, sizes)] for copy in copies])
    distance, ratio, degrees = np.moveaxis(found, -1, 0)
    return TableUtility(
        tables=tuple((name,) for name in names) + tuple(combinations(names, 2)),
        distance=distance.mean(axis=0),
        ratio=np.array([_mean(table[~np.isnan(table)]) for table in ratio.T]),
        degrees_of_freedom=degrees.mean(axis=0),
    )


def _tables(original: Codes, copy: Codes, sizes: Sequence[int]) -> Iterator[tuple[IntVector, IntVector]]:
    """The counts of original and copy in every table, one-way first."""
    pooled = np.concatenate([original, copy]).astype(np.int64)
    columns = list(np.ascontiguousarray(pooled.T))
    for column, size in zip(columns, sizes, strict=True):
        yield _counts(column, len(original), size)
    for first, second in combinations(range(len(sizes)), 2):
        yield _counts(
            columns[first] * sizes[second] + columns[second], len(original), sizes[first] * sizes[second]
        )


def _counts(cells: IntVector, originals: int, size: int) -> tuple[IntVector, IntVector]:
    if size > SPARSE * len(cells):
        occupied, cells = np.unique(cells, return_inverse=True)
        size = len(occupied)
    return np.bincount(cells[:originals], minlength=size), np.bincount(cells[originals:], minlength=size)


def _compare(originals: IntVector, synthetics: IntVector) -> tuple[float, float, float]:
    """Distance, ratio and degrees of freedom of one table in one copy."""
    pooled = originals + synthetics
    occupied = np.flatnonzero(pooled)
    o, s, t = originals[occupied], synthetics[occupied], pooled[occupied]
    n_o, n_s = int(o.sum()), int(s.sum())
    records = n_o + n_s
    apart = s / n_s - o / n_o
    distance = float(np.abs(apart).sum()) / 2
    degrees = len(occupied) - 1
    if degrees == 0:
        return distance, np.nan, 0.0
    chi_squared = n_o * n_s * float((apart**2 / t).sum())
    return distance, chi_squared / degrees * (records - 1) / records, float(degrees)


def _mean(values: Vector) -> float:
    return float(values.mean()) if len(values) else float("nan")
