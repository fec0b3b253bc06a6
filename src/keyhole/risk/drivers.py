"""Which key variables and which levels drive the risk, and what dropping or coarsening a key would do."""

from dataclasses import dataclass

import numpy as np

from keyhole.arrays import IntVector, Vector
from keyhole.keys.numbers import is_band
from keyhole.keys.variable import MISSING, KeyVariable
from keyhole.progress import Progress, silent
from keyhole.table.contingency import ContingencyTable


@dataclass(frozen=True, slots=True)
class Remedy:
    """What a change of one key takes away.

    ``uniques_lost`` counts the sample uniques that stop being unique, ``tau1_lost`` adds up their r1. The
    records that stay unique become safer too, which is not counted: the gain is at least this.
    """

    words: str
    uniques_lost: int
    tau1_lost: float


@dataclass(frozen=True, slots=True)
class KeyContribution:
    """What one key variable adds to the risk; ``coarsened`` is None for a key of two levels or fewer."""

    key: str
    levels: int
    dropped: Remedy
    coarsened: Remedy | None


@dataclass(frozen=True, slots=True)
class LevelContribution:
    """How much of the risk is carried by the records of one level.

    ``lift`` is the level's share of the expected tau1 over its share of the records.
    """

    key: str
    level: str
    records: int
    uniques: int
    tau1: float
    lift: float


def key_contributions(
    table: ContingencyTable, r1: Vector, *, progress: Progress = silent
) -> tuple[KeyContribution, ...]:
    """Each key's contribution: uniques, and expected population uniques, lost when it is dropped or coarsened.

    Parameters
    ----------
    r1
        Chance of population uniqueness of each sample unique, in the order of ``table.uniques``.
    """
    found = []
    for j, key in enumerate(table.keys):
        progress("contribution of each key", j, len(table.keys), key.name)
        merged, words = coarsening(key, _level_counts(table, j))
        joins = sum(label != MISSING for label in key.levels) > 2  # of two levels none is left to join
        found.append(
            KeyContribution(
                key=key.name,
                levels=len(key),
                dropped=_remedy(table, j, np.zeros(len(key), dtype=np.int64), "dropped", r1),
                coarsened=_remedy(table, j, merged, words, r1) if joins else None,
            )
        )
    progress("contribution of each key", len(table.keys), len(table.keys))
    return tuple(sorted(found, key=lambda key: (-key.dropped.tau1_lost, -key.dropped.uniques_lost)))


def level_contributions(table: ContingencyTable, r1: Vector) -> tuple[LevelContribution, ...]:
    """The levels that carry the risk, gravest first."""
    total = float(r1.sum())
    found = []
    for j, key in enumerate(table.keys):
        records = _level_counts(table, j)
        codes = table.cells[table.uniques, j]
        uniques = np.bincount(codes, minlength=len(key))
        tau1 = np.bincount(codes, weights=r1, minlength=len(key))
        for code in np.flatnonzero(uniques):
            share = tau1[code] / total if total > 0 else 0.0
            found.append(
                LevelContribution(
                    key=key.name,
                    level=key.levels[code],
                    records=int(records[code]),
                    uniques=int(uniques[code]),
                    tau1=float(tau1[code]),
                    lift=float(share * table.records / records[code]),
                )
            )
    return tuple(sorted(found, key=lambda level: (-level.tau1, level.key, level.level)))


def coarsening(key: KeyVariable, records: IntVector) -> tuple[IntVector, str]:
    """A mild coarsening of a key: the new code of each level, and the change in words.

    Levels that read as numbers or bands are ordered: neighbours are joined in pairs. Otherwise the rarer
    half of the levels becomes one. The level of missing values stays by itself.

    Examples
    --------
    >>> coarsening(KeyVariable("AGE", ("0-14", "15-29", "30-44", "45+")), np.array([5, 5, 5, 5]))
    (array([0, 0, 1, 1]), 'neighbouring levels joined in pairs')
    >>> coarsening(KeyVariable("EYES", ("blue", "brown", "green", "grey")), np.array([7, 9, 1, 2]))
    (array([0, 1, 2, 2]), 'its 2 rarest levels joined')
    >>> coarsening(KeyVariable("AGE", (MISSING, "0-14", "15-29")), np.array([5, 5, 5]))[0]
    array([2, 0, 0])
    """
    known = np.array([code for code, label in enumerate(key.levels) if label != MISSING], dtype=np.int64)
    if sum(is_band(key.levels[code]) for code in known) > len(known) / 2:
        return _joined(len(key), known, np.arange(len(known)) // 2), "neighbouring levels joined in pairs"
    rare = known[np.argsort(records[known], kind="stable")[: len(known) - len(known) // 2]]
    kept = np.setdiff1d(known, rare)
    codes = np.where(np.isin(known, rare), len(kept), np.searchsorted(kept, known))
    return _joined(len(key), known, codes), f"its {len(rare)} rarest levels joined"


def _joined(levels: int, known: IntVector, codes: IntVector) -> IntVector:
    """New codes of all levels: those of the known ones, and behind them that of the missing one."""
    merged = np.full(levels, levels - 1)
    merged[known] = codes
    return merged


def _remedy(table: ContingencyTable, j: int, merged: IntVector, words: str, r1: Vector) -> Remedy:
    cells = table.cells.copy()
    codes = merged[table.cells[:, j]]
    cells[:, j] = codes
    coarser = ContingencyTable.from_codes(table.keys, cells, table.counts)
    still = coarser.counts[coarser.find(cells[table.uniques])] == 1
    return Remedy(words, int((~still).sum()), float(r1[~still].sum()))


def _level_counts(table: ContingencyTable, j: int) -> IntVector:
    return np.bincount(table.cells[:, j], weights=table.counts, minlength=len(table.keys[j])).astype(np.int64)
