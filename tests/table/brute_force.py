"""Random small tables with random overlapping rules, and every answer by looking at every cell."""

from itertools import product

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from keyhole.arrays import Codes, Mask, Vector
from keyhole.keys.variable import KeyVariable
from keyhole.table.level_sets import LevelSet
from keyhole.table.rule_meaning import Box

EXAMPLES = settings(deadline=None, max_examples=60)
"""Enough for rules to overlap in every way; no deadline, because machines that run tests are busy."""


def all_cells(sizes: tuple[int, ...]) -> Codes:
    return np.array(list(product(*map(range, sizes))), dtype=np.int64).reshape(-1, len(sizes))


def matches(box: Box, cell: tuple[int, ...]) -> bool:
    return all((cell[j] in chosen.codes) != chosen.negated for j, chosen in box.items())


def impossible(boxes: tuple[Box, ...], cells: Codes) -> Mask:
    return np.array([any(matches(box, cell) for box in boxes) for cell in map(tuple, cells.tolist())], dtype=bool)


def weights(marginals: list[Vector], cells: Codes) -> Vector:
    """The product of the marginals at every cell; marginals may have a first axis of classes."""
    return np.prod([marginal[..., cells[:, j]] for j, marginal in enumerate(marginals)], axis=0)


def named_keys(sizes: tuple[int, ...]) -> tuple[KeyVariable, ...]:
    return tuple(KeyVariable(f"K{j}", tuple(f"{j}:{code}" for code in range(n))) for j, n in enumerate(sizes))


@st.composite
def tables(draw: st.DrawFn, rules: int = 30) -> tuple[tuple[int, ...], tuple[Box, ...]]:
    """Sizes of a few keys, and boxes over them; also ones that match everything or nothing."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    condition = {
        j: st.builds(LevelSet, st.frozensets(st.integers(0, size - 1), min_size=1), st.booleans())
        for j, size in enumerate(sizes)
    }
    box = st.fixed_dictionaries({}, optional=condition)
    boxes = draw(st.lists(box, max_size=rules))
    # Rules of one key empty a small table at once; most rules should leave something to disagree about.
    kept = [each for each in boxes if len(each) >= min(2, len(sizes)) or draw(st.booleans())]
    return sizes, tuple(kept)


@st.composite
def rule_lists(draw: st.DrawFn) -> tuple[tuple[KeyVariable, ...], list[dict[str, object]]]:
    """Keys and valid rules in labels, in all the forms of a rule file; the first cell is always admissible."""
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=5)))
    keys = named_keys(sizes)
    chosen = {
        j: st.tuples(st.frozensets(st.integers(0, size - 1), min_size=1, max_size=size - 1), st.booleans())
        for j, size in enumerate(sizes)
    }
    some_conditions = st.fixed_dictionaries({}, optional=chosen).filter(bool)
    rules: list[dict[str, object]] = []
    for conditions in draw(st.lists(some_conditions, min_size=1, max_size=12)):
        box = {j: LevelSet(codes, negated) for j, (codes, negated) in conditions.items()}
        if matches(box, (0,) * len(sizes)):
            j = min(box)
            box[j] = LevelSet(box[j].codes, not box[j].negated)
        rule: dict[str, object] = {}
        for j, levels in box.items():
            labels: object = [keys[j].levels[code] for code in sorted(levels.codes)]
            if len(levels.codes) == 1 and draw(st.booleans()):
                labels = keys[j].levels[min(levels.codes)]
            rule[keys[j].name] = {"not": labels} if levels.negated else labels
        rules.append(rule)
    return keys, rules
