r"""How many cells of another sample from a fitted log-linear model would hold one record, two, ...

On visited cells with means m the expected numbers are sums of Poisson probabilities (`poisson_cells`). For a
decomposable model no cell is visited: its maximum likelihood law is that of a record whose cliques are copied, one
after the other, from random records of the sample that agree with what was copied before. On a junction tree the
cliques are drawn from the fitted tables instead.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.inference.other_samples import mean_cells
from keyhole.models.loglinear.graph import Decomposition
from keyhole.models.loglinear.junction_tree import TreeFit
from keyhole.population.sample import Sample
from keyhole.table.packing import Packing, rank_rows

SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


def decomposable_cells(sample: Sample, tree: Decomposition, sizes: IntVector, rng: Generator) -> Vector:
    """The mean number of cells with so many records each, over samples from a decomposable model."""
    codes, levels = sample.table.dense()
    records = np.repeat(codes, sample.table.counts, axis=0)
    shape = tuple(map(len, levels))
    return _cells_of_drawn(sample, lambda own: copied_by_cliques(tree, records, shape, own), sizes, rng)


def tree_cells(sample: Sample, fit: TreeFit, sizes: IntVector, rng: Generator) -> Vector:
    """The mean number of cells with so many records each, over samples from a model on a junction tree."""
    return _cells_of_drawn(sample, lambda own: fit.draw(sample.sample_size, own), sizes, rng)


def _cells_of_drawn(
    sample: Sample, drawn: Callable[[Generator], Codes], sizes: IntVector, rng: Generator
) -> Vector:
    """Likewise over samples whose records ``drawn`` gives, in codes of the levels that occur."""
    packing = Packing(tuple(map(len, sample.table.dense()[1])))

    def another(own: Generator) -> IntVector:
        counts: IntVector = np.bincount(rank_rows(packing.pack(drawn(own)))[1])
        return counts

    return mean_cells(another, sizes, sample.sample_size, rng)


def copied_by_cliques(tree: Decomposition, records: Codes, shape: tuple[int, ...], rng: Generator) -> Codes:
    """As many new records, each clique copied from a random record with the same levels in its separator."""
    drawn = np.zeros_like(records)
    size = len(records)
    for clique, separator in zip(tree.cliques, tree.separators, strict=True):
        donors = rng.integers(0, size, size)
        if separator:
            packing = Packing(tuple(shape[key] for key in separator))
            both = np.concatenate([records[:, separator], drawn[:, separator]])
            _, group = rank_rows(packing.pack(both))
            order = np.argsort(group[:size], kind="stable")
            begin, end = (np.searchsorted(group[order], group[size:], side) for side in SIDES)
            donors = order[begin + (rng.random(size) * (end - begin)).astype(np.int64)]
        drawn[:, clique] = records[donors][:, clique]
    return drawn
