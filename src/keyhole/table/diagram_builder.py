"""From rules to a decision diagram, without ever enumerating the table.

A handful of rules gives a diagram at once: what matters of a cell read so far is which rules it still
matches, so these sets are the nodes. Diagrams of handfuls are then intersected in pairs: a node of the
intersection is a pair of nodes, and a cell is admissible when both say so. After each step, from the last layer
up, nodes with equal children are merged, so what is kept is never larger than the rules require.

How large that is depends on the order in which keys are read (``diagram_order``). In a bad order the memory can
double with each rule, so there is a limit, and an error beyond it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import IntVector, Mask
from keyhole.errors import InvalidRules
from keyhole.table.decision_diagram import ADMISSIBLE, IMPOSSIBLE, DecisionDiagram, Layer
from keyhole.table.level_sets import LevelSet, tell_apart
from keyhole.table.packing import distinct_rows

HANDFUL = 12
"""Rules combined at once: at most 2^12 nodes a layer, whatever the rules."""

LIMIT = 1 << 20
"""Edges of one layer beyond which a diagram is given up, within seconds and in about 100 MB."""


class _Step(NamedTuple):
    """A layer under construction: the group of each class of levels, and the children of each node."""

    group: IntVector
    child: IntVector


class _Draft(NamedTuple):
    """A diagram under construction, over classes of levels that no rule tells apart."""

    steps: list[_Step]
    root: int


def build_diagram(
    sizes: Sequence[int], boxes: Sequence[Mapping[int, LevelSet]], order: Sequence[int] | None = None
) -> DecisionDiagram:
    """The diagram of the cells that are in none of the boxes.

    Parameters
    ----------
    sizes
        The number of levels of each key.
    boxes
        The impossible cells: for some key positions the levels concerned; all levels of the others.
    order
        The key positions in the order in which the diagram reads them; the order of the keys if not given.

    Raises
    ------
    InvalidRules
        The diagram would be too large in this order.

    Examples
    --------
    >>> diagram = build_diagram((3, 2), [{0: LevelSet(frozenset({0})), 1: LevelSet(frozenset({1}))}])
    >>> diagram.count(), diagram.count(impossible=True), diagram.node_count()
    (5, 1, 2)
    """
    order = tuple(range(len(sizes))) if order is None else tuple(order)
    if sorted(order) != list(range(len(sizes))):
        raise ValueError(f"The order {order} does not name each of {len(sizes)} keys once.")
    classes, allowed = [], []
    for key in order:
        group, member = _classes_of_levels(sizes[key], [box.get(key) for box in boxes])
        classes.append(group)
        allowed.append(member)

    handfuls = [slice(start, start + HANDFUL) for start in range(0, len(boxes), HANDFUL)] or [slice(0)]
    drafts = [_combine_rules([member[rules] for member in allowed]) for rules in handfuls]
    while len(drafts) > 1:
        odd = drafts[len(drafts) // 2 * 2 :]
        drafts = [_intersect(left, right) for left, right in zip(drafts[::2], drafts[1::2], strict=False)] + odd
    steps, root = drafts[0]
    layers = tuple(
        Layer(key, step.group[group].astype(np.int32), np.ascontiguousarray(step.child, dtype=np.int32))
        for key, group, step in zip(order, classes, steps, strict=True)
    )
    return DecisionDiagram(layers, root)


def _classes_of_levels(levels: int, chosen: Sequence[LevelSet | None]) -> tuple[IntVector, Mask]:
    """The class of each level, classes being told apart by some rule, and whether each rule allows each class."""
    sets = list(dict.fromkeys(each for each in chosen if each is not None))
    group, member = tell_apart(sets, levels)
    number = {each: position for position, each in enumerate(sets)}
    if len(chosen) * member.shape[1] > 256 * LIMIT:
        raise InvalidRules(
            f"The {len(chosen):,} rules tell {member.shape[1]:,} levels of a key apart, too many to combine. "
            "Merge rules that differ in one key."
        )
    anything = np.ones((1, member.shape[1]), dtype=np.bool_)
    rows = [len(sets) if each is None else number[each] for each in chosen]
    return group, np.concatenate([member, anything])[rows]


def _combine_rules(allowed: Sequence[Mask]) -> _Draft:
    """The diagram of a handful of rules, from what each allows of each key; nodes are the rules still matched."""
    rules = len(allowed[0]) if allowed else 0
    bit = np.int64(1) << np.arange(rules)
    ends = np.full(rules, -1)
    for depth, member in enumerate(allowed):
        ends[~member.all(axis=1)] = depth
    matched_all, matched_none = np.int64(-1), np.int64(0)
    start = matched_all if (ends < 0).any() else bit.sum()
    states, place = _first_seen(np.array([matched_all, matched_none, start]))
    root = int(place[2])

    steps = []
    for depth, member in enumerate(allowed):
        matching, group = np.unique(bit @ member, return_inverse=True)
        _within_limit(len(states) * len(matching))
        after = states[:, None] & matching
        after[IMPOSSIBLE] = matched_all
        after[(after & bit[ends == depth].sum()) != 0] = matched_all
        states, child = _first_seen(after)
        steps.append(_Step(group, child))
    return _reduce(steps, root)


def _intersect(left: _Draft, right: _Draft) -> _Draft:
    """The diagram of the cells that both admit; its nodes are pairs of nodes."""
    pairs = np.array([[IMPOSSIBLE, IMPOSSIBLE], [ADMISSIBLE, ADMISSIBLE], [left.root, right.root]])
    if IMPOSSIBLE in pairs[2]:
        pairs[2] = IMPOSSIBLE
    _, place = _first_seen(pairs @ np.array([1 << 32, 1]))
    root, pairs = int(place[2]), pairs[: place[2] + 1] if place[2] == 2 else pairs[:2]
    steps = []
    for one, other in zip(left.steps, right.steps, strict=True):
        groups, group = np.unique(one.group * other.child.shape[1] + other.group, return_inverse=True)
        _within_limit(len(pairs) * len(groups))
        one_group, other_group = np.divmod(groups, other.child.shape[1])
        one_child = one.child[pairs[:, :1], one_group]
        other_child = other.child[pairs[:, 1:], other_group]
        either = (one_child == IMPOSSIBLE) | (other_child == IMPOSSIBLE)
        one_child[either] = other_child[either] = IMPOSSIBLE
        numbers, child = _first_seen((one_child << 32) + other_child)
        pairs = np.stack([numbers >> 32, numbers & (2**32 - 1)], axis=1)
        steps.append(_Step(group, child))
    return _reduce(steps, root)


def _reduce(steps: Sequence[_Step], root: int) -> _Draft:
    """Merge, from the last layer up, nodes with equal children; then, in each layer, groups with equal columns."""
    merged = np.array([IMPOSSIBLE, ADMISSIBLE])
    reduced = []
    for group, child in reversed(steps):
        rows, merged = distinct_rows(merged[child])
        seen: dict[bytes, int] = {}
        place = np.array([seen.setdefault(column.tobytes(), len(seen)) for column in rows.T])
        kept = np.unique(place, return_index=True)[1]
        reduced.append(_Step(place[group], rows[:, kept]))
    return _Draft(reduced[::-1], int(merged[root]))


def _within_limit(edges: int) -> None:
    if edges > LIMIT:
        raise InvalidRules(
            "The rules need too large a decision diagram when the keys are read in this order: more than "
            f"{LIMIT:,} edges for one key. Bring keys that share rules together, or merge rules."
        )


def _first_seen(numbers: IntVector) -> tuple[IntVector, NDArray[np.int64]]:
    """The distinct numbers in the order in which they are first seen, and the place of every number among them.

    Because rows 0 and 1 of a layer lead only to *impossible* and to *admissible*, these two are seen first and
    keep the places 0 and 1 in the next layer.
    """
    distinct, first, rank = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return distinct[order], place[rank].reshape(numbers.shape)
