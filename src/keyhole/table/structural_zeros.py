r"""Combinations that nobody can have: which cells the rules declare impossible, how many, how likely.

All questions are answered by a decision diagram over the keys (``decision_diagram``), at a cost that does not
depend on the number of cells and whether or not rules overlap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.errors import ForbiddenRecords, InvalidKeys, InvalidRules
from keyhole.keys.variable import KeyVariable
from keyhole.table.contingency import ContingencyTable
from keyhole.table.decision_diagram import DecisionDiagram
from keyhole.table.diagram_builder import build_diagram
from keyhole.table.diagram_order import rule_order, sift
from keyhole.table.rule_meaning import Box, ZeroRules

MOST_CONDITIONS = 1_000_000
"""Disjoint conditions beyond which a list of them serves nobody."""

LISTED = 20
"""Rules named in a message before it says how many more there are."""


@dataclass(frozen=True)
class StructuralZeros:
    """The cells of a table that are impossible because they match all conditions of at least one rule.

    Attributes
    ----------
    keys
        The key variables of the table.
    rules
        What is impossible.

    Raises
    ------
    InvalidRules
        Rules that name unknown keys or labels, match nothing, or leave no cell admissible.

    Examples
    --------
    >>> from keyhole.table.zero_rules import parse_zero_rules
    >>> age, marital = KeyVariable("AGE", ("0-14", "15+")), KeyVariable("MARITAL", ("single", "married", "other"))
    >>> zeros = StructuralZeros((age, marital), parse_zero_rules("- {AGE: 0-14, MARITAL: {not: [single]}}"))
    >>> zeros.zero_cells, zeros.admissible_cells, zeros.contains(np.array([[0, 0], [0, 2]])).tolist()
    (2, 4, [False, True])
    """

    keys: tuple[KeyVariable, ...]
    rules: ZeroRules

    def __post_init__(self) -> None:
        if self.admissible_cells == 0:
            raise InvalidRules(f"The rules of {self.rules.source} together make every cell impossible.")

    @classmethod
    def read(cls, path: str | Path, keys: Sequence[KeyVariable]) -> "StructuralZeros":
        """The zeros that a rule file declares for these keys."""
        # The YAML reader and pydantic are slow to import, and most assessments have no rule file.
        from keyhole.table.zero_rules import read_zero_rules

        return cls(tuple(keys), read_zero_rules(path))

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """Each rule in codes."""
        return self.rules.boxes(self.keys)

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of each key."""
        return tuple(len(key) for key in self.keys)

    @cached_property
    def diagram(self) -> DecisionDiagram:
        """The diagram that reads the keys in the order of the table, or, if that is too large, in a better one."""
        return self._in_table_order or self.small_diagram

    @cached_property
    def small_diagram(self) -> DecisionDiagram:
        """A diagram with few nodes, in an order that was looked for: the one for repeated sums over all cells."""
        return self._best(DecisionDiagram.node_count)

    def diagram_in(self, order: Sequence[int]) -> DecisionDiagram:
        """The diagram that reads the keys, given by position, in this order.

        Raises
        ------
        InvalidRules
            The diagram would be too large in this order.
        """
        return build_diagram(self.levels, self.boxes, order)

    @cached_property
    def _in_table_order(self) -> DecisionDiagram | None:
        return self._attempt(tuple(range(len(self.keys))))

    @cached_property
    def _in_rule_order(self) -> DecisionDiagram | None:
        return self._attempt(rule_order(self.levels, self.boxes))

    def _attempt(self, order: tuple[int, ...]) -> DecisionDiagram | None:
        """The diagram in this order, if it is not too large."""
        boxes = self.boxes  # rules that do not fit the keys are no matter of order: their error comes from here
        try:
            return build_diagram(self.levels, boxes, order)
        except InvalidRules:
            return None

    def _best(self, cost: Callable[[DecisionDiagram], float]) -> DecisionDiagram:
        """The cheapest diagram, its order improved from that of the table and from one guessed from the rules."""
        starts = [diagram for diagram in (self._in_table_order, self._in_rule_order) if diagram is not None]
        if not starts:
            raise InvalidRules(
                f"The rules of {self.rules.source} combine in too many ways to be counted. Merge rules that "
                "differ in one key, or leave out the keys that tie many others together."
            )
        return min((sift(start, cost) for start in starts), key=cost)

    def contains(self, cells: Codes) -> Mask:
        """Whether each cell, a row of level codes, is impossible."""
        return self.diagram.impossible(cells)

    @cached_property
    def zero_cells(self) -> int:
        """The exact number of impossible cells."""
        return self.diagram.count(impossible=True)

    @cached_property
    def admissible_cells(self) -> int:
        """The exact number of cells that somebody could be in."""
        return prod(self.levels) - self.zero_cells

    def probability(self, marginals: Sequence[Vector]) -> Vector:
        r"""The probability of an impossible cell when the keys are independent with these marginals.

        .. math:: P\Bigl(\bigcup_r Z_r\Bigr) = \sum_{x \in \cup_r Z_r} \prod_j \theta_j(x_j)

        summed over the diagram, not as 1 minus the rest, so tiny probabilities are exact too. Marginals have
        shape (levels,), or (K, levels) for K classes at once; each is divided by its sum.
        """
        totals = np.prod([marginal.sum(axis=-1) for marginal in marginals], axis=0)
        return np.asarray(self.diagram.mass(marginals, impossible=True) / totals)

    def draw_uniform(self, size: int, rng: Generator) -> Codes:
        """Cells drawn uniformly from the admissible ones."""
        return self.diagram.draw([np.full(levels, 1.0 / levels) for levels in self.levels], size, rng)

    def draw_product(self, marginals: Sequence[Vector], size: int, rng: Generator) -> Codes:
        """Admissible cells drawn in proportion to the product of the marginals."""
        return self.diagram.draw(marginals, size, rng)

    def disjoint_conditions(self) -> tuple[tuple[IntVector, ...], ...]:
        """The impossible cells as disjoint marginal conditions, each a set of level codes for every key.

        A cell meets a condition when the level of each key is in the condition's set. No cell meets two, and
        the impossible ones are those that meet one. They are the paths of the diagram, after its keys are
        moved to where there are fewer.

        Raises
        ------
        InvalidRules
            More than a million conditions would be needed.
        """
        fewest = self._best(DecisionDiagram.path_count)
        if fewest.path_count() > MOST_CONDITIONS:
            raise InvalidRules(
                f"The rules of {self.rules.source} need {fewest.path_count():,} disjoint "
                f"conditions, more than {MOST_CONDITIONS:,}."
            )
        return tuple(fewest.paths())

    def violations(self, table: ContingencyTable) -> IntVector:
        """The number of records that break each rule; a record may break several."""
        if table.keys != self.keys:
            raise InvalidKeys("The table and the structural zeros are not over the same keys.")
        broken = np.flatnonzero(self.contains(table.cells))
        cells, counts = table.cells[broken], table.counts[broken]
        return np.array([counts[self._matches(box, cells)].sum() for box in self.boxes], dtype=np.int64)

    def _matches(self, box: Box, cells: Codes) -> Mask:
        matched = np.ones(len(cells), dtype=np.bool_)
        for j, chosen in box.items():
            named = np.zeros(len(self.keys[j]), dtype=np.bool_)
            named[list(chosen.codes)] = True
            matched &= (named ^ chosen.negated)[cells[:, j]]
        return matched

    def check(self, table: ContingencyTable) -> None:
        """Make sure that no record of the table is in an impossible cell.

        Raises
        ------
        ForbiddenRecords
            Says how many records are, and how many break each rule.
        """
        per_rule = self.violations(table)
        if not per_rule.any():
            return
        total = int(table.counts[self.contains(table.cells)].sum())
        broken = [
            f"rule {rule.number} ({rule.keys}): {count:,}"
            for rule, count in zip(self.rules.rules, per_rule.tolist(), strict=True)
            if count
        ]
        more = f"; and {len(broken) - LISTED:,} more rules" if len(broken) > LISTED else ""
        raise ForbiddenRecords(
            f"{total:,} record{' is' if total == 1 else 's are'} in cells that the rules of {self.rules.source} "
            f"declare impossible: {'; '.join(broken[:LISTED])}{more}."
        )
