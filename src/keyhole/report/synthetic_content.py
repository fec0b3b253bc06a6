"""The page on the risk of synthetic files as frozen data: everything it says, before any choice of screen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from keyhole.arrays import IntVector, Vector
from keyhole.inference.fit import Diagnostic
from keyhole.keys.variable import KeyVariable
from keyhole.report.origin import Origin, origin_of
from keyhole.report.synthetic_matches import MatchLine, match_lines
from keyhole.report.synthetic_verdict import IntruderView, importance_in_words, intruder_of, verdict_of
from keyhole.report.verdict import Verdict
from keyhole.report.words import clean
from keyhole.synthesis.importance import CopyWeights
from keyhole.synthesis.matched_records import MatchRisk
from keyhole.synthesis.risk_result import Combinations, CurvePoint, SyntheticRisk

BARS = 40
"""Ranks with a bar of their own; a longer list of candidates is shown by steps of several."""

STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.025)
"""Widths of the bars of probabilities: the first that needs no more than `BARS`."""

TOP = 3
"""A truth among so many is listed, as in Table 3 of Hu, Reiter & Wang."""

FEWEST_LISTED, MOST_LISTED = 10, 50


@dataclass(frozen=True, slots=True)
class RankHistogram:
    """``counts[i]`` combinations have a truth ranked from ``begins[i]`` on, ``step`` ranks together."""

    begins: tuple[int, ...]
    counts: tuple[int, ...]
    step: int


@dataclass(frozen=True, slots=True)
class ChanceHistogram:
    """``counts[i]`` combinations have a probability from ``edges[i]`` to ``edges[i + 1]``.

    ``before`` is the mean of what it was before the copies; ``alike`` if that was the same for all.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    before: float
    alike: bool


@dataclass(frozen=True, slots=True)
class CombinationLine:
    """One combination of the table; ``levels`` pairs keys with levels, and is None unless they may be shown.

    ``times`` is how often the probability holds what it was before, None if that was 0.
    """

    number: int
    levels: tuple[tuple[str, str], ...] | None
    rank: int
    records: int
    probability: float
    error: float
    before: float
    times: float | None
    needed: float
    trusted: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and maximum of a chance over the combinations, and its mean before the copies."""

    mean: float
    highest: float
    mean_before: float


@dataclass(frozen=True, slots=True)
class ImportanceLine:
    """What the published importance sampler has to go by, lowest and highest over the copies."""

    effective: tuple[float, float]
    khat: tuple[float, float]
    draws: int
    used: bool
    trusted: bool
    words: str


@dataclass(frozen=True, slots=True)
class SyntheticReport:
    """All that the page says.

    Attributes
    ----------
    trusted
        Whether the numbers as a whole are to be relied on.
    untrusted_combinations, untrusted_records
        Those whose own probability is not.
    chance
        The probability of the truth.
    by_chance
        How many truths a random order of the candidates would put first.
    alone
        Combinations to which there is no other candidate.
    listed_all
        Whether ``lines`` hold every combination with a truth among the first three.
    known
        The probability for somebody who knows the parameters that made the copies.
    learned, learned_keys
        The chance of the true levels of the keys to be learned, and their names if told.
    """

    title: str
    verdict: Verdict
    warnings: tuple[str, ...]
    trusted: bool
    external: bool
    shows_combinations: bool
    copies: int
    records: int
    combinations: int
    keys: tuple[tuple[str, int], ...]
    intruder: IntruderView
    chance: Spread
    top_ranked: int
    top_three: int
    above_twice: int
    by_chance: float
    alone: int
    untrusted_combinations: int
    untrusted_records: int
    ranks: RankHistogram
    chances: ChanceHistogram
    lines: tuple[CombinationLine, ...]
    listed_all: bool
    known: Spread | None
    learned: Spread | None
    learned_keys: tuple[str, ...]
    by_copies: tuple[CurvePoint, ...]
    by_records: tuple[CurvePoint, ...]
    importance: ImportanceLine
    target: str | None
    matches: tuple[MatchLine, ...]
    diagnostics: tuple[Diagnostic, ...]
    origin: Origin


def compose_synthetic(
    risk: SyntheticRisk,
    *,
    matches: MatchRisk | None,
    target: str | None,
    keys: Sequence[KeyVariable],
    source: str,
    copies_from: str,
    command: str,
    seed: int,
    show_combinations: bool,
    external: bool,
    warnings: Sequence[str] = (),
    learns: Sequence[str] = (),
    knows: Sequence[str] = (),
    when: datetime | None = None,
) -> SyntheticReport:
    """Turn the risk of synthetic files into a page.

    Parameters
    ----------
    matches, target
        What matches alone give away, and the key they are to reveal; None if that was not asked for.
    keys
        In the order of the columns of ``risk.combinations.cells``.
    source, copies_from
        Names of the confidential file and of the place of the copies.
    command
        The command line as run; passwords in it are left out.
    show_combinations
        Whether combinations may be named by their levels. They are people's, so by default they are numbered.
    external
        Whether the copies were made elsewhere, so that how they were made is an assumption.
    learns, knows
        Names of the keys that the intruder wants to learn, and of those he knows of the record, if any.
    when
        The time to print; now, by default.
    """
    found = risk.combinations
    origin = origin_of(source, copies_from, command, seed, when)
    lines, listed_all = _lines(risk, keys if show_combinations else None)
    return SyntheticReport(
        title=f"What synthetic copies tell about {origin.source}",
        verdict=verdict_of(risk, external=external, knows=[clean(name) for name in knows]),
        warnings=tuple(clean(warning) for warning in warnings),
        trusted=risk.trusted,
        external=external,
        shows_combinations=show_combinations,
        copies=risk.copies,
        records=risk.records,
        combinations=len(found),
        keys=tuple((clean(key.name), len(key)) for key in keys),
        intruder=intruder_of(risk),
        chance=_spread(found.probability, found.before),
        top_ranked=found.ranked(1),
        top_three=found.ranked(TOP),
        above_twice=found.above(2.0),
        by_chance=float((1.0 / found.candidates).sum()),
        alone=int((found.candidates == 1).sum()),
        untrusted_combinations=int(risk.untrusted.sum()),
        untrusted_records=int(found.counts[risk.untrusted].sum()),
        ranks=_rank_histogram(found.rank, int(found.candidates.max())),
        chances=_chance_histogram(found),
        lines=lines,
        listed_all=listed_all,
        known=None if found.known is None else _spread(found.known, found.before),
        learned=_learned(found),
        learned_keys=tuple(clean(name) for name in learns),
        by_copies=risk.by_copies,
        by_records=risk.by_records,
        importance=_importance(risk.weights, used=risk.estimator == "importance"),
        target=None if target is None else clean(target),
        matches=() if matches is None else match_lines(matches, risk.records),
        diagnostics=tuple(replace(check, words=clean(check.words)) for check in risk.diagnostics),
        origin=origin,
    )


def _spread(chance: Vector, before: Vector) -> Spread:
    return Spread(float(chance.mean()), float(chance.max()), float(before.mean()))


def _learned(found: Combinations) -> Spread | None:
    if found.learned is None or found.learned_before is None:
        return None
    return _spread(found.learned, found.learned_before)


def _rank_histogram(rank: IntVector, candidates: int) -> RankHistogram:
    last = max(candidates, int(rank.max()))
    step = -(-last // BARS)
    begins = range(1, last + 1, step)
    counts = np.bincount((rank - 1) // step, minlength=len(begins))
    return RankHistogram(tuple(begins), tuple(counts.tolist()), step)


def _chance_histogram(found: Combinations) -> ChanceHistogram:
    top = float(max(found.probability.max(), found.before.max()))
    step = next((step for step in STEPS if top <= BARS * step), STEPS[-1])
    bars = max(1, int(np.ceil(top / step - 1e-9)))
    # The last bar holds its upper edge; a probability is 1 at most, up to rounding.
    place = np.minimum((found.probability / step).astype(np.int64), bars - 1)
    return ChanceHistogram(
        edges=tuple(round(step * edge, 6) for edge in range(bars + 1)),
        counts=tuple(np.bincount(place, minlength=bars).tolist()),
        before=float(found.before.mean()),
        alike=bool(np.ptp(found.before) < 1e-9),
    )


def _lines(risk: SyntheticRisk, keys: Sequence[KeyVariable] | None) -> tuple[tuple[CombinationLine, ...], bool]:
    """The combinations whose truth ranks highest, and whether all among the first three are there.

    They are numbered by their place in the table: their place in the file would tell of their levels.
    """
    found, untrusted = risk.combinations, risk.untrusted
    among = found.ranked(TOP)
    shown = np.lexsort((-found.probability, found.rank))[: min(max(among, FEWEST_LISTED), MOST_LISTED)]
    lines = []
    for number, place in enumerate(shown.tolist(), 1):
        probability, before = float(found.probability[place]), float(found.before[place])
        lines.append(
            CombinationLine(
                number=number,
                levels=None if keys is None else _levels(found, place, keys),
                rank=int(found.rank[place]),
                records=int(found.counts[place]),
                probability=probability,
                error=float(found.error[place]),
                before=before,
                times=probability / before if before > 0 else None,
                needed=float(found.needed[place]),
                trusted=not untrusted[place],
            )
        )
    return tuple(lines), among <= len(lines)


def _levels(found: Combinations, place: int, keys: Sequence[KeyVariable]) -> tuple[tuple[str, str], ...]:
    codes = found.cells[place].tolist()
    return tuple((clean(key.name), clean(key.levels[code])) for key, code in zip(keys, codes, strict=True))


def _importance(weights: CopyWeights, *, used: bool) -> ImportanceLine:
    effective, khat = weights.effective, weights.khat
    line = ImportanceLine(
        effective=(float(effective.min()), float(effective.max())),
        khat=(float(khat.min()), float(khat.max())),
        draws=weights.log_weight.shape[1],
        used=used,
        trusted=weights.trusted,
        words="",
    )
    words = importance_in_words(line.effective, line.khat, line.draws, used=used, trusted=line.trusted)
    return replace(line, words=words)
