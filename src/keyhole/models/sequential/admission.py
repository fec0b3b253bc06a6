"""Which levels of a key can still lead to an admissible record, as the keys are read one after another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.arrays import IntVector, Mask
from keyhole.table.structural_zeros import StructuralZeros


@dataclass(frozen=True, eq=False)
class Admission:
    """A walk through the decision diagram of the structural zeros, restricted to levels that occur.

    Attributes
    ----------
    masks
        For each key of the order, nodes by dense levels: whether the level may follow.
    children
        For each key of the order, nodes by dense levels: where the level leads.
    root
        The node where every record starts.
    """

    masks: tuple[Mask, ...]
    children: tuple[IntVector, ...]
    root: int

    @classmethod
    def of(cls, zeros: StructuralZeros | None, order: Sequence[int], levels: Sequence[IntVector]) -> "Admission":
        """The walk in this order; without zeros everything is admitted."""
        if zeros is None:
            free = tuple(np.ones((1, len(levels[key])), dtype=np.bool_) for key in order)
            return cls(free, tuple(np.zeros(mask.shape, dtype=np.int64) for mask in free), 0)
        # Keys with one level come first: they decide nothing but where the walk begins.
        fixed = [key for key in range(len(levels)) if key not in set(order)]
        diagram = zeros.diagram_in((*fixed, *order))
        alive = np.array([False, True])
        masks: list[Mask] = []
        children: list[IntVector] = []
        for layer in reversed(diagram.layers):
            child = layer.child[:, layer.group[levels[layer.key]]].astype(np.int64)
            masks.append(alive[child])
            children.append(child)
            alive = np.asarray(masks[-1].any(axis=1))
        masks.reverse()
        children.reverse()
        root = diagram.root
        for child in children[: len(fixed)]:
            root = int(child[root, 0])
        return cls(tuple(masks[len(fixed) :]), tuple(children[len(fixed) :]), root)
