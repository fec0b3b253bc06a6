"""How fast are structural zeros: building the diagram, testing cells, summing over all admissible cells?

Rules are drawn at random: a few neighbouring levels of two or three keys that belong together. Keys that belong
together are not side by side in the table, so the order in which the diagram reads them matters. Times are
the best of several runs, those of the small order with the search for it.
"""

import time
from collections.abc import Callable
from typing import Literal

import numpy as np

from keyhole.keys.variable import KeyVariable
from keyhole.table.rule_meaning import Labels, ZeroRule, ZeroRules
from keyhole.table.structural_zeros import StructuralZeros

CLASSES = 50
CELLS = 1_000_000
SIZES = {"small": (6, 8, 20), "medium": (10, 10, 200), "large": (16, 10, 500)}
"""Keys, levels of each key, rules."""


def random_zeros(keys: int, levels: int, rules: int, rng: np.random.Generator) -> StructuralZeros:
    variables = tuple(KeyVariable(f"K{j}", tuple(f"{j}:{code}" for code in range(levels))) for j in range(keys))
    together = [variables[j] for j in rng.permutation(keys)]

    def rule(number: int) -> ZeroRule:
        first = int(rng.integers(keys - 2))
        about = rng.permutation(3)[: int(rng.integers(2, 4))]
        conditions = []
        for key in (together[first + int(near)] for near in about):
            # Level 0 stays free, so that somebody can exist.
            start = int(rng.integers(1, levels - 2))
            conditions.append(Labels(key.name, key.levels[start : start + int(rng.integers(1, 4))]))
        return ZeroRule(number, tuple(conditions))

    return StructuralZeros(variables, ZeroRules(tuple(rule(number) for number in range(1, rules + 1))))


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def measure(zeros: StructuralZeros, order: Literal["diagram", "small_diagram"], rng: np.random.Generator) -> str:
    diagram = getattr(zeros, order)
    cells = np.stack([rng.integers(0, levels, CELLS) for levels in zeros.levels], axis=1).astype(np.int8)
    marginals = [rng.dirichlet(np.ones(levels), CLASSES) for levels in zeros.levels]
    one = [marginal[0] for marginal in marginals]
    building = seconds(lambda: getattr(StructuralZeros(zeros.keys, zeros.rules), order), 3)
    testing = seconds(lambda: diagram.impossible(cells), 3)
    drawing = seconds(lambda: diagram.draw(one, CELLS // 10, rng), 3)
    summing = seconds(lambda: diagram.mass_and_gradient(marginals), 20)
    return (
        f"{diagram.node_count():8}{diagram.edge_count():8}{building:9.3f}"
        f"{CELLS / testing:13,.0f}{CELLS / 10 / drawing:11,.0f}{1e6 * summing / CLASSES:14.1f}"
    )


def main() -> None:
    header = ("size", "rules", "order", "nodes", "edges", "build s", "tests/s", "draws/s", "us per class")
    print("{:8}{:>7}{:>8}{:>8}{:>8}{:>9}{:>13}{:>11}{:>14}".format(*header))
    for name, (keys, levels, rules) in SIZES.items():
        rng = np.random.default_rng(1)
        zeros = random_zeros(keys, levels, rules, rng)
        print(f"{name:8}{rules:7}{'table':>8}{measure(zeros, 'diagram', rng)}")
        print(f"{name:8}{rules:7}{'small':>8}{measure(zeros, 'small_diagram', rng)}")


if __name__ == "__main__":
    main()
