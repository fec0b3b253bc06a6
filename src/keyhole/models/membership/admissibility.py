"""The admissible cells as the kernels walk through them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import IntVector
from keyhole.models.membership.level_prior import Rows
from keyhole.table.decision_diagram import ADMISSIBLE, DecisionDiagram


@dataclass(frozen=True, eq=False)
class Admissibility:
    """A decision diagram as flat arrays: from a node of layer d, row r leads to
    ``child[child_start[d] + node * groups[d] + group[r]]``.

    Attributes
    ----------
    order
        The keys in the order in which they are read.
    """

    order: IntVector
    group: IntVector
    groups: IntVector
    child: NDArray[np.int32]
    child_start: IntVector
    root: int

    @classmethod
    def of(cls, diagram: DecisionDiagram, rows: Rows) -> "Admissibility":
        group = np.empty(rows.total, dtype=np.int64)
        for layer in diagram.layers:
            group[rows.start[layer.key] : rows.start[layer.key + 1]] = layer.group
        sizes = [layer.child.size for layer in diagram.layers]
        return cls(
            np.array(diagram.order, dtype=np.int64),
            group,
            np.array([layer.groups for layer in diagram.layers], dtype=np.int64),
            np.concatenate([layer.child.ravel() for layer in diagram.layers]).astype(np.int32),
            np.cumsum([0, *sizes[:-1]]).astype(np.int64),
            int(diagram.root),
        )

    @classmethod
    def everything(cls, rows: Rows) -> "Admissibility":
        """No cell is impossible: every layer has the two nodes that all have."""
        keys = rows.keys
        ends = np.tile(np.array([0, ADMISSIBLE], dtype=np.int32), keys)
        zeros, ones = np.zeros(rows.total, dtype=np.int64), np.ones(keys, dtype=np.int64)
        return cls(np.arange(keys), zeros, ones, ends, 2 * np.arange(keys), ADMISSIBLE)

    @property
    def arrays(self) -> tuple[IntVector, IntVector, IntVector, NDArray[np.int32], IntVector, int]:
        """As the kernel takes them."""
        return self.order, self.group, self.groups, self.child, self.child_start, self.root
