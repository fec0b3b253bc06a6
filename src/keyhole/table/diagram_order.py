"""In which order a decision diagram should read the keys.

The size of a diagram depends on the order. Rules that tie keys far apart have to be remembered in between: with
rules about A1 and B1, A2 and B2, ..., reading A1, A2, ... first needs a node for every set of rules still
open, twice as many with each rule, while A1, B1, A2, B2, ... needs two nodes a layer.

``rule_order`` guesses a good order from the rules alone, before there is a diagram. ``sift`` improves the order of
a diagram by moving one key at a time, which is cheap because two neighbouring keys change places without
touching the rest of the diagram (Rudell 1993).

References
----------
R. Rudell (1993), Dynamic variable ordering for ordered binary decision diagrams,
https://doi.org/10.1109/ICCAD.1993.580029
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np

from keyhole.table.decision_diagram import DecisionDiagram, Layer
from keyhole.table.level_sets import LevelSet
from keyhole.table.packing import Packing, distinct_rows, rank_rows

GROWTH = 2.0
"""A key is moved no further once the diagram costs this many times what it did at best."""

WORK = 1 << 25
"""Edges that a round of moves may rebuild, a few seconds; a diagram that needs more stays as it is."""


def rule_order(sizes: Sequence[int], boxes: Sequence[Mapping[int, LevelSet]]) -> tuple[int, ...]:
    """An order of the keys in which few rules are half read at any point.

    Greedy: next comes the key after which the rules that have begun and not ended have the fewest different
    endings, for these endings are what the nodes of a layer must remember. Ties go to the key with more
    rules ending, then to the order of the table.
    """
    sets: dict[LevelSet | None, int] = {None: 0}
    named = np.array(
        [[sets.setdefault(box.get(key), len(sets)) for key in range(len(sizes))] for box in boxes], dtype=np.int64
    ).reshape(len(boxes), len(sizes))
    left = list(range(len(sizes)))
    order: list[int] = []

    def endings(key: int) -> tuple[int, int]:
        rest = [other for other in left if other != key]
        begun = named[:, [*order, key]].any(axis=1)
        open_rules = named[begun][:, rest]
        open_rules = open_rules[open_rules.any(axis=1)]
        if not len(open_rules):
            return 0, -int(begun.sum())
        distinct, _ = rank_rows(Packing((len(sets),) * len(rest)).pack(open_rules))
        return len(distinct), -int(begun.sum() - len(open_rules))

    while left:
        following = min(left, key=endings)
        left.remove(following)
        order.append(following)
    return tuple(order)


def sift(diagram: DecisionDiagram, cost: Callable[[DecisionDiagram], float]) -> DecisionDiagram:
    """The same cells in an order that costs less: each key in turn is moved to its best place.

    Keys with the widest layers go first, and rounds go on while they help. The result never costs more than
    ``diagram``.
    """
    lowest, before = cost(diagram), np.inf
    while lowest < before and _round_of_moves(diagram) <= WORK:
        before = lowest
        widths = {layer.key: layer.nodes for layer in diagram.layers}
        for key in sorted(widths, key=lambda each: (-widths[each], each)):
            moved = [*_moves(diagram, key, -1, cost, lowest), *_moves(diagram, key, 1, cost, lowest)]
            lowest, diagram = min([(lowest, diagram), *moved], key=itemgetter(0))
    return diagram


def _round_of_moves(diagram: DecisionDiagram) -> int:
    """The edges that are rebuilt when every key passes every layer once."""
    pairs = zip(diagram.layers, diagram.layers[1:], strict=False)
    return len(diagram.layers) * sum(upper.nodes * upper.groups * lower.groups for upper, lower in pairs)


def _moves(
    diagram: DecisionDiagram, key: int, step: int, cost: Callable[[DecisionDiagram], float], lowest: float
) -> Iterator[tuple[float, DecisionDiagram]]:
    """The diagrams met, each with its cost, while the key moves away, until they grow too costly."""
    place = diagram.order.index(key)
    while 0 <= place + step < len(diagram.layers):
        first = min(place, place + step)
        layers = list(diagram.layers)
        layers[first : first + 2] = swap(layers[first], layers[first + 1])
        diagram = DecisionDiagram(tuple(layers), diagram.root)
        price = cost(diagram)
        if price > GROWTH * lowest:
            return
        lowest = min(lowest, price)
        yield price, diagram
        place += step


def swap(upper: Layer, lower: Layer) -> tuple[Layer, Layer]:
    """Two neighbouring layers with their keys in the other order.

    The nodes of the upper layer and all nodes below the lower one stay what they are, and so do the groups of
    levels: levels that lead to different children in one order do so in the other.
    """
    across = lower.child[upper.child].transpose(0, 2, 1)
    nodes, place = distinct_rows(across.reshape(-1, upper.child.shape[1]).astype(np.int64))
    return (
        Layer(lower.key, lower.group, place.reshape(upper.nodes, -1).astype(np.int32)),
        Layer(upper.key, upper.group, np.ascontiguousarray(nodes, dtype=np.int32)),
    )
