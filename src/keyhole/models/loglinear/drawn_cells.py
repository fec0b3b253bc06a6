r"""Part of the cells of a large table, chosen at random to stand for all of them.

A penalised fit gives every admissible cell a mean. Where these are too many the
occupied cells are joined by a random set of others, each of which stands for :math:`w_c = 1/P(c \text{ is in the
set})` cells, so that every margin of every law over the table has an unbiased estimate (Horvitz & Thompson). The
set is what :math:`M_1` draws from a law :math:`q_1` and :math:`M_2` from a law :math:`q_2` hit,

.. math:: P(c \text{ is in the set}) = 1 - (1 - q_1(c))^{M_1} (1 - q_2(c))^{M_2}.

:math:`q_1` should be where the fit will be: keys follow one another, each by a multinomial logit of those before
it, fitted to the records with a ridge. :math:`q_2` is independence, which covers what the logits think impossible
and the fits with a large penalty. Both walk the diagram of structural zeros, so that no draw is lost. What the
choice of cells adds to the error is measured by `Approximation`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import optimize, sparse, special

from keyhole.arrays import IntVector, Mask, Vector, read_only
from keyhole.errors import InvalidRules
from keyhole.models.loglinear.cell_search import code_kind
from keyhole.models.loglinear.cells import CellLayer, Cells
from keyhole.models.loglinear.information import Design
from keyhole.population.sample import Sample
from keyhole.population.weights import pseudo_counts
from keyhole.table.decision_diagram import DecisionDiagram
from keyhole.table.packing import Packing, rank_rows

CELLS_DRAWN, FROM_LOGITS = 100_000, 0.8
"""Draws that choose the cells of a larger table, and the share of them that follow the logits."""

RIDGE, ITERATIONS = 1.0, 30
"""Precision of the effects of a logit around zero, and steps of its fit: it only has to be near."""

AT_ONCE = 1 << 22
"""Numbers held while cells are drawn: 32 MB."""


def draw_cells(sample: Sample, draws: int = CELLS_DRAWN, *, rng: Generator) -> tuple[Design, Vector]:
    """The occupied cells and random others, their margins of one and two keys, and what each cell stands for."""
    if sample.zeros is not None:
        sample.zeros.check(sample.table)
    codes, found = sample.table.dense()
    levels = tuple(map(read_only, found))
    law = _Proposal.of(codes, pseudo_counts(sample), levels, sample)
    by_logits = round(FROM_LOGITS * draws)
    parts = [*law.draw(by_logits, True, rng), *law.draw(draws - by_logits, False, rng)]
    drawn, logits, independent = (np.concatenate(part) for part in zip(*parts, strict=True))
    with np.errstate(divide="ignore"):
        missed = by_logits * np.log1p(-np.minimum(logits, 1.0))
        missed += (draws - by_logits) * np.log1p(-np.minimum(independent, 1.0))
    cells, place = tree_of(np.concatenate([law.codes, drawn]), levels, law.order, len(law.codes))
    weights = np.ones(len(cells))
    weights[place[len(law.codes) :]] = -1.0 / np.expm1(missed)
    weights[cells.occupied] = 1.0
    keys = range(len(levels))
    return Design(cells, (*((key,) for key in keys), *combinations(keys, 2))), read_only(weights)


def tree_of(
    codes: IntVector, levels: tuple[IntVector, ...], order: tuple[int, ...], occupied: int
) -> tuple[Cells, IntVector]:
    """Rows of dense codes, which may repeat, the occupied cells first, as a tree; and the place of each row."""
    sizes = tuple(map(len, levels))
    ordered = codes[:, order]
    first, place = rank_rows(Packing(tuple(sizes[key] for key in order)).pack(ordered))
    read: NDArray[np.unsignedinteger] = ordered[first].astype(code_kind(sizes))
    begins = np.zeros(len(read), dtype=np.bool_)
    begins[:1] = True
    layers, above, prefix = [], np.zeros(1, np.int64), np.empty((0, 1), read.dtype)
    for d in range(len(order)):
        begins[1:] |= read[1:, d] != read[:-1, d]
        nodes = np.flatnonzero(begins)
        parent = np.searchsorted(above, nodes, side="right") - 1
        branch = np.bincount(parent, minlength=len(above)).astype(np.int32)
        # The codes of a layer are the last row of what stands above the next; of the cells nothing else is kept.
        whole = np.ascontiguousarray(read[nodes, (0 if d + 1 < len(order) else d) : d + 1].T)
        layers.append(CellLayer(prefix, branch, whole[-1]))
        above, prefix = nodes, whole
    return Cells(sizes, levels, order, tuple(layers), read_only(place[:occupied]), len(codes)), place


@dataclass(frozen=True, eq=False)
class _Proposal:
    """The two laws that cells are drawn from, key after key.

    Attributes
    ----------
    codes
        The occupied cells, in codes of the levels that occur.
    sizes
        The number of these of each key.
    order
        The keys in the order in which they are drawn.
    effects
        For each of them the effects of its logit: one row for the constant and one for each level of each key
        before, one column per level.
    marginals
        For each of them the logarithms of its shares.
    admitted, child
        For each of them, whether a level can follow each node of the diagram, and the node that it leads to.
    root
        The first node.
    """

    codes: IntVector = field(repr=False)
    sizes: tuple[int, ...]
    order: tuple[int, ...]
    effects: tuple[Vector, ...] = field(repr=False)
    marginals: tuple[Vector, ...] = field(repr=False)
    admitted: tuple[Mask, ...] = field(repr=False)
    child: tuple[IntVector, ...] = field(repr=False)
    root: int

    @classmethod
    def of(cls, codes: IntVector, counts: Vector, levels: Sequence[IntVector], sample: Sample) -> "_Proposal":
        shares = [np.bincount(column, counts) / counts.sum() for column in codes.T]
        # Keys that vary little come first: the tree of the cells is small then.
        order = tuple(np.argsort([special.entr(share).sum() for share in shares], kind="stable").tolist())
        diagram: DecisionDiagram | None = None
        if sample.zeros is not None:
            try:
                diagram = sample.zeros.diagram_in(order)
            except InvalidRules:
                # Too many ways to combine in this order; there is one in which they are few.
                diagram = sample.zeros.small_diagram
                order = diagram.order
        admitted, child = _admission(diagram, order, levels)
        effects = tuple(fit_logit(codes, counts, key, order[:d], levels) for d, key in enumerate(order))
        logs = tuple(np.log(shares[key]) for key in order)
        root = 0 if diagram is None else diagram.root
        return cls(codes, tuple(map(len, levels)), order, effects, logs, admitted, child, root)

    def draw(self, size: int, by_logits: bool, rng: Generator) -> Iterator[tuple[IntVector, Vector, Vector]]:
        """Cells from one of the laws, a block at a time, and their probabilities under both."""
        step = max(1, AT_ONCE // max(self.sizes))
        for begin in range(0, size, step):
            rows = min(step, size - begin)
            cells = np.zeros((rows, len(self.order)), dtype=np.int64)
            node, log_q = np.full(rows, self.root), np.zeros((2, rows))
            for d, key in enumerate(self.order):
                logit = indicators(cells, self.order[:d], self.sizes) @ self.effects[d]
                both = np.stack([logit, np.broadcast_to(self.marginals[d], logit.shape)])
                both[:, ~self.admitted[d][node]] = -np.inf
                both -= special.logsumexp(both, axis=2, keepdims=True)
                edges = np.cumsum(np.exp(both[0 if by_logits else 1]), axis=1)
                level = (edges <= rng.random((rows, 1)) * edges[:, -1:]).sum(axis=1)
                cells[:, key] = level
                log_q += both[:, np.arange(rows), level]
                node = self.child[d][node, level]
            yield cells, np.exp(log_q[0]), np.exp(log_q[1])


def _admission(
    diagram: DecisionDiagram | None, order: Sequence[int], levels: Sequence[IntVector]
) -> tuple[tuple[Mask, ...], tuple[IntVector, ...]]:
    """Which of the levels that occur may follow each node of each layer, and the nodes that they lead to."""
    if diagram is None:
        free = tuple(np.ones((1, len(levels[key])), dtype=np.bool_) for key in order)
        return free, tuple(np.zeros(mask.shape, np.int64) for mask in free)
    admitted: list[Mask] = []
    children: list[IntVector] = []
    alive = np.array([False, True])
    for layer in reversed(diagram.layers):
        child = layer.child[:, layer.group[levels[layer.key]]].astype(np.int64)
        admitted.append(alive[child])
        children.append(child)
        alive = np.asarray(alive[child].any(axis=1))
    return tuple(admitted[::-1]), tuple(children[::-1])


def indicators(codes: IntVector, keys: Sequence[int], sizes: Sequence[int]) -> sparse.csr_array:
    """A constant and the indicators of all levels of these keys, one row per cell."""
    begins = np.cumsum([1, *(sizes[key] for key in keys)])
    entries = np.concatenate([np.zeros((len(codes), 1), np.int64), codes[:, list(keys)] + begins[:-1]], axis=1)
    ends = np.arange(0, entries.size + 1, entries.shape[1])
    return sparse.csr_array((np.ones(entries.size), entries.ravel(), ends), shape=(len(codes), int(begins[-1])))


def fit_logit(
    codes: IntVector, counts: Vector, key: int, before: Sequence[int], levels: Sequence[IntVector]
) -> Vector:
    """The effects of a multinomial logit of a key on those before it, with a ridge; rows as in `indicators`."""
    X, size = indicators(codes, before, [*map(len, levels)]), len(levels[key])
    seen = np.zeros((len(codes), size))
    seen[np.arange(len(codes)), codes[:, key]] = counts
    start = np.zeros((X.shape[1], size))
    start[0] = np.log(seen.sum(axis=0))
    ridge = np.full((X.shape[1], 1), RIDGE)
    ridge[0] = 0.0

    def loss(flat: Vector) -> tuple[float, Vector]:
        effects = flat.reshape(start.shape)
        logit = X @ effects
        total = special.logsumexp(logit, axis=1)
        slope = X.T @ (np.exp(logit - total[:, None]) * counts[:, None] - seen) + ridge * effects
        value = counts @ total - (seen * logit).sum() + 0.5 * (ridge * effects * effects).sum()
        return float(value), slope.ravel()

    if not before:
        return start
    found = optimize.minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    return np.asarray(found.x.reshape(start.shape))
