"""Combinations that nobody can have."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StructuralZeros:
    """Under construction by the table builder."""

    admissible_cells: int
