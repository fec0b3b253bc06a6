"""Which levels the report may name, and which of them carry more than their share of the risk."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from keyhole.arrays import Vector
from keyhole.report.words import clean
from keyhole.risk.drivers import LevelContribution, level_contributions
from keyhole.table.contingency import ContingencyTable

FEW_RECORDS = 5
"""A level with fewer records is not named: in a report that travels, its label may point at a person."""

SHOWN = 15


@dataclass(frozen=True, slots=True)
class LevelLine:
    """One level, or all the rarely held levels of one key together.

    Attributes
    ----------
    level
        The label; None for the rarely held levels of the key, ``joined`` of them.
    records, uniques, tau1, lift
        As in `LevelContribution`; None where fewer than `FEW_RECORDS` records stand behind the line.
    """

    key: str
    level: str | None
    joined: int
    records: int | None
    uniques: int | None
    tau1: float | None
    lift: float | None


def level_lines(table: ContingencyTable, r1: Vector) -> tuple[tuple[LevelLine, ...], int]:
    """The levels that carry the most risk beyond their share of the records, and how many were left out.

    A level that half the records have carries half the risk without driving it. So levels are ranked by
    their tau1 less what their share of the records explains. Combinations of levels are never shown.
    """
    ranked: list[tuple[float, LevelLine]] = []
    rare: dict[str, list[LevelContribution]] = defaultdict(list)
    total = float(r1.sum())
    for found in level_contributions(table, r1):
        if found.records < FEW_RECORDS:
            rare[found.key].append(found)
        else:
            excess = found.tau1 - total * found.records / table.records
            line = LevelLine(
                clean(found.key), clean(found.level), 1, found.records, found.uniques, found.tau1, found.lift
            )
            ranked.append((excess, line))
    ranked.extend(_joined(key, levels, total, table.records) for key, levels in rare.items())
    ranked.sort(key=lambda pair: -pair[0])
    driving = [line for excess, line in ranked if excess > 0]
    return tuple(driving[:SHOWN]), len(ranked) - len(driving[:SHOWN])


def _joined(
    key: str, levels: Sequence[LevelContribution], total: float, all_records: int
) -> tuple[float, LevelLine]:
    records = sum(level.records for level in levels)
    tau1 = sum(level.tau1 for level in levels)
    expected = total * records / all_records
    if records < FEW_RECORDS:
        return tau1 - expected, LevelLine(clean(key), None, len(levels), None, None, None, None)
    lift = tau1 / expected if expected > 0 else 0.0
    uniques = sum(level.uniques for level in levels)
    return tau1 - expected, LevelLine(clean(key), None, len(levels), records, uniques, tau1, lift)
