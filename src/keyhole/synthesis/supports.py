"""Which combinations an intruder weighs for a record, and how likely one draw makes each of them.

A support gives every record the same number of places; a place that is not a candidate of its own, because it
repeats another or is impossible, is masked. The first place is the record itself.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.errors import InputError
from keyhole.synthesis import _kernels as kernels
from keyhole.synthesis.class_draws import ClassDraw
from keyhole.table.structural_zeros import StructuralZeros

MOST_CELLS = 20_000
"""Of a support that lists combinations."""


class Support(Protocol):
    """A choice of candidates."""

    @property
    def name(self) -> str: ...

    def mask(self, cells: Codes) -> Mask:
        """Which places are candidates of their own, by record."""

    def candidates(self, cells: Codes) -> Codes:
        """The combination at each place, by record, place and key."""

    def probabilities(self, cells: Codes, own: IntVector, draw: ClassDraw) -> Vector:
        """Of the combination at each place, by record, with the record taken away."""


def begins_of(sizes: tuple[int, ...]) -> IntVector:
    """Where the levels of each key begin among all, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Near:
    """The record and all that differ from it in one key, or in at most two.

    Attributes
    ----------
    changes
        1 or 2.
    known
        Keys whose levels the intruder knows, so that no candidate differs in them.
    """

    sizes: tuple[int, ...]
    changes: int = 1
    zeros: StructuralZeros | None = field(default=None, repr=False)
    known: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return "one-change" if self.changes == 1 else "two-change"

    @cached_property
    def begins(self) -> IntVector:
        return begins_of(self.sizes)

    @cached_property
    def key_of(self) -> IntVector:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def pairs(self) -> tuple[IntVector, IntVector]:
        """Levels of two keys, each pair once."""
        first, second = np.triu_indices(len(self.key_of), 1)
        apart = self.key_of[first] != self.key_of[second]
        return first[apart], second[apart]

    def mask(self, cells: Codes) -> Mask:
        other = np.tile(~np.isin(self.key_of, self.known), (len(cells), 1))
        np.put_along_axis(other, cells.astype(np.int64) + self.begins[:-1], False, axis=1)
        itself = np.ones((len(cells), 1), dtype=bool)
        kept = [itself, other]
        if self.changes == 2:
            first, second = self.pairs
            kept.append(other[:, first] & other[:, second])
        mask = np.concatenate(kept, axis=1)
        return mask if self.zeros is None else mask & _possible(self.candidates(cells), self.zeros)

    def candidates(self, cells: Codes) -> Codes:
        level = np.arange(len(self.key_of)) - self.begins[self.key_of]
        one = np.repeat(cells[:, None, :].astype(np.int32), len(level), axis=1)
        one[:, np.arange(len(level)), self.key_of] = level
        parts = [cells[:, None, :].astype(np.int32), one]
        if self.changes == 2:
            first, second = self.pairs
            two = np.repeat(cells[:, None, :].astype(np.int32), len(first), axis=1)
            places = np.arange(len(first))
            two[:, places, self.key_of[first]] = level[first]
            two[:, places, self.key_of[second]] = level[second]
            parts.append(two)
        return np.concatenate(parts, axis=1)

    def probabilities(self, cells: Codes, own: IntVector, draw: ClassDraw) -> Vector:
        classes = draw.share.shape[1]
        part, ratio = np.empty((len(cells), classes)), np.empty((len(cells), len(self.key_of), classes))
        rows = (cells + self.begins[:-1]).astype(np.int64)
        kernels.class_parts(rows, own, draw.weight, draw.share, draw.total, self.begins, part, ratio)
        itself = part.sum(axis=1, keepdims=True)
        if self.changes == 1:
            return np.concatenate([itself, np.matmul(ratio, part[:, :, None])[:, :, 0]], axis=1)
        both = np.matmul(ratio * part[:, None, :], ratio.transpose(0, 2, 1))
        first, second = self.pairs
        one = np.matmul(ratio, part[:, :, None])[:, :, 0]
        return np.concatenate([itself, one, both[:, first, second]], axis=1)


@dataclass(frozen=True, eq=False)
class Listed:
    """The record, and combinations that are the same for all records; on known keys they are the record's own.

    Attributes
    ----------
    cells
        The combinations.
    known
        Keys whose levels the intruder knows.
    """

    name: str
    sizes: tuple[int, ...]
    cells: Codes = field(repr=False)
    known: tuple[int, ...] = ()
    zeros: StructuralZeros | None = field(default=None, repr=False)

    def mask(self, cells: Codes) -> Mask:
        there = self.candidates(cells)
        repeats = (there[:, 1:] == cells[:, None, :]).all(axis=2)
        mask = np.concatenate([np.ones((len(cells), 1), dtype=bool), ~repeats], axis=1)
        return mask if self.zeros is None else mask & _possible(there, self.zeros)

    def candidates(self, cells: Codes) -> Codes:
        there = np.repeat(self.cells[None].astype(np.int32), len(cells), axis=0)
        for key in self.known:
            there[:, :, key] = cells[:, None, key]
        return np.concatenate([cells[:, None, :].astype(np.int32), there], axis=1)

    def probabilities(self, cells: Codes, own: IntVector, draw: ClassDraw) -> Vector:
        begins = begins_of(self.sizes)[:-1]
        rows = (cells + begins).astype(np.int64)
        itself, found = np.empty((len(cells), 1)), np.empty((len(cells), len(self.cells)))
        law = (draw.weight, draw.share, draw.total)
        everything, some = np.ones(len(begins), dtype=bool), np.isin(np.arange(len(begins)), self.known)
        kernels.listed(rows, own, *law, rows[:1], everything, itself)
        kernels.listed(rows, own, *law, (self.cells + begins).astype(np.int64), some, found)
        return np.concatenate([itself, found], axis=1)


def all_cells(sizes: tuple[int, ...], zeros: StructuralZeros | None) -> Listed:
    """Every combination there can be.

    Raises
    ------
    InputError
        There are too many.
    """
    return Listed("all", sizes, _every(sizes, "all combinations"), zeros=zeros)


def known_part(sizes: tuple[int, ...], known: tuple[int, ...], zeros: StructuralZeros | None) -> Listed:
    """All combinations of the keys that the intruder does not know (eq. 16 of the paper).

    Raises
    ------
    InputError
        There are too many.
    """
    unknown = tuple(1 if key in known else size for key, size in enumerate(sizes))
    cells = _every(unknown, "combinations of what the intruder does not know")
    return Listed("known-part", sizes, cells, known, zeros)


def _every(sizes: tuple[int, ...], words: str) -> Codes:
    number = prod(sizes)
    if number > MOST_CELLS:
        raise InputError(
            f"There are {number:,} {words}, more than the {MOST_CELLS:,} that can be weighed one by one. Use the "
            "support one-change, two-change or search, or let the intruder know more keys."
        )
    return np.stack(np.unravel_index(np.arange(number), sizes), axis=1).astype(np.int32)


def _possible(candidates: Codes, zeros: StructuralZeros) -> Mask:
    flat = candidates.reshape(-1, candidates.shape[2])
    return np.asarray(~zeros.contains(flat).reshape(candidates.shape[:2]))
