"""The decision diagram of the admissible cells as plain arrays, for kernels to walk."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import IntVector
from keyhole.table.decision_diagram import DecisionDiagram


@dataclass(frozen=True, eq=False)
class FlatDiagram:
    """All layers behind each other.

    Attributes
    ----------
    keys
        The key of each layer.
    nodes
        Where the nodes of each layer begin among all; the two terminals are last.
    groups
        How many groups of levels each layer has.
    edges
        Where the edges of each layer begin in ``child``.
    child
        The node to which a node's group of levels leads, node by node, numbered within the next layer.
    group_of
        The group of each level, the levels of one key after those of another in the order of the table.
    root
        Where cells start, in the first layer.
    """

    keys: IntVector
    nodes: IntVector
    groups: IntVector
    edges: IntVector
    child: NDArray[np.int32] = field(repr=False)
    group_of: NDArray[np.int32] = field(repr=False)
    root: int

    @classmethod
    def of(cls, diagram: DecisionDiagram) -> "FlatDiagram":
        layers = diagram.layers
        by_key = sorted(layers, key=lambda layer: layer.key)
        return cls(
            np.array([layer.key for layer in layers]),
            np.concatenate([[0], np.cumsum([layer.nodes for layer in layers])]).astype(np.int64),
            np.array([layer.groups for layer in layers]),
            np.concatenate([[0], np.cumsum([layer.child.size for layer in layers])]).astype(np.int64),
            np.concatenate([layer.child.ravel() for layer in layers]),
            np.concatenate([layer.group for layer in by_key]),
            diagram.root,
        )

    @property
    def arrays(self) -> tuple[object, ...]:
        """What a kernel needs."""
        return self.keys, self.nodes, self.groups, self.edges, self.child, self.group_of, self.root
