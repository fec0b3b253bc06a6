"""What matches with synthetic records give away, each measure with what it means and what to hold it against."""

from dataclasses import dataclass

from keyhole.report.words import count, percent
from keyhole.synthesis.matched_records import MatchRisk


@dataclass(frozen=True, slots=True)
class MatchLine:
    """A measure: its name, its value and what to compare it with (both in words, or empty), and what it means."""

    name: str
    value: str
    compared: str
    meaning: str


def match_lines(found: MatchRisk, records: int) -> tuple[MatchLine, ...]:
    """The measures that are defined, of an original with so many records.

    Without a target that is replicated uniques and unmatched records alone.
    """
    lines = [
        MatchLine(
            "Replicated uniques",
            percent(found.replicated_uniques),
            f"{percent(found.uniques / records)} are unique in the file",
            "Records that are unique in the file, and whose combination a copy has exactly once. They look like "
            "somebody; whether the copy came from them the match does not tell.",
        ),
        MatchLine(
            "Unmatched records",
            percent(found.unmatched / records),
            "",
            "Records whose combination is nowhere in a copy: who looks for them finds nobody.",
        ),
    ]
    if found.disco is not None:
        lines.append(
            MatchLine(
                "DiSCO",
                percent(found.disco),
                "",
                "Disclosive in synthetic, correct in original: records whose matches in a copy all have the same "
                "level of the target, and it is their own.",
            )
        )
    if found.dcap is not None:
        lines.append(
            MatchLine(
                "DCAP",
                percent(found.dcap),
                _baseline(found.dcap_baseline, "by a draw from the target's distribution"),
                "Chance that the level of a match, picked at random, is the record's own; a record without a "
                "match counts 0. Much above the other number, the copies link the target to the known keys; so do "
                "true patterns of the population.",
            )
        )
    if found.disco is not None:
        lines.append(_tcap(found))
    return tuple(lines)


def _tcap(found: MatchRisk) -> MatchLine:
    meaning = "Of the records whose matches all have the same level of the target, the share whose level it is."
    if found.tcap is None:
        return MatchLine("TCAP", "not defined", "", f"{meaning} There are no such records.")
    compared = [
        words
        for value, how in (
            (found.tcap_modal, "by one guess for all of them"),
            (found.tcap_baseline, "by a draw from the target's distribution"),
        )
        if (words := _baseline(value, how))
    ]
    number = count(round(found.tcap_records or 0))
    return MatchLine(
        "TCAP",
        percent(found.tcap),
        "; ".join(compared),
        f"{meaning} Such are about {number} records. The draw is easily passed, the one guess, the most frequent "
        "level among them, is the fairer comparison.",
    )


def _baseline(value: float | None, how: str) -> str:
    return "" if value is None else f"{percent(value)} {how}"
