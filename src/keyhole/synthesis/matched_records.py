"""What synthetic files give away to somebody who only looks for matches in them.

The intruder knows some columns of a person in the original file, finds the synthetic records with the same
combination, and reads off their target column. Nothing is asked of the generator: only the two files count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean
from typing import Any

import numpy as np

from keyhole.arrays import Codes, IntVector
from keyhole.errors import InvalidKeys
from keyhole.table.packing import Packing, rank_rows


@dataclass(frozen=True, slots=True)
class MatchRisk:
    r"""What the matches give away, as shares of the records of the original file.

    Write :math:`d_{qt}` for the original and :math:`s_{qt}` for the synthetic records with the combination
    :math:`q` of the known columns and the target level :math:`t`; a dot stands for a sum, and :math:`N` for
    the records of the original file. A combination is *sure* if all its synthetic records, at least one,
    have the same target level: :math:`s_{qt} = s_{q\cdot} > 0` for one :math:`t`.

    .. math::

        \text{replicated uniques} &= \#\{q : d_{q\cdot} = s_{q\cdot} = 1\} / N \\
        \text{DiSCO} &= \sum_{qt} d_{qt}\,[s_{qt} = s_{q\cdot} > 0] / N \\
        \text{DCAP} &= \sum_{qt} d_{qt}\,(s_{qt}/s_{q\cdot}) / N, \quad 0/0 = 0 \\
        \text{TCAP} &= \sum_{qt} d_{qt}\,[s_{qt} = s_{q\cdot} > 0] \Big/ \sum_{q\ \text{sure}} d_{q\cdot} \\
        \text{baseline} &= \sum_t (d_{\cdot t}/N)^2

    so that DiSCO is TCAP times the share of the original records with a sure combination.

    Attributes
    ----------
    replicated_uniques
        Share of the original records whose combination is unique in the original and in the synthetic file.
    uniques
        Number of the original records with a unique combination.
    unmatched
        Number of the original records whose combination is not in the synthetic file.
    disco
        "Disclosive in synthetic, correct in original": share of the original records with a sure combination
        whose level is their own.
    dcap
        "Differential correct attribution probability": mean over the original records of the share of their
        own level among their synthetic matches. A record without a match counts 0; over the matched records
        alone the mean is ``dcap * N / (N - unmatched)``.
    dcap_baseline
        The same when the intruder draws each level from the target's distribution in the original file.
    tcap
        "Targeted correct attribution probability": of the original records with a sure combination, the
        share whose level is the one found; None if there are no such records.
    tcap_baseline
        The published baseline of TCAP: a draw from the target's distribution for every original record, hence
        the same number as ``dcap_baseline``. It is easily passed. Several synthetic records agree on a
        frequent level more often than on a rare one, so that TCAP tends to lie above it even where the
        synthetic target was drawn by itself, without a look at the known columns.
    tcap_modal
        A stricter comparison, ours: of the original records with a sure combination, the share that have the
        level most frequent among them. One guess for all of them would do as well.
    tcap_records
        Number of the original records with a sure combination.

    Notes
    -----
    Without a target only ``replicated_uniques``, ``uniques`` and ``unmatched`` are defined, the rest is None.
    Counts are whole for one synthetic file, and means over several.

    References
    ----------
    Raab, Nowok & Dibben, "Practical privacy metrics for synthetic data", a vignette of the R package synthpop
    (1.9), Appendix: replicated uniques (repU), DiSCO, DCAP_d, its baseline baseCAPd, and TCAP.

    Raab (2024), "Privacy risk from synthetic data: practical proposals", https://arxiv.org/abs/2409.04257.

    Elliot (2014), "Final report on the disclosure risk associated with the synthetic data produced by the SYLLS
    team"; Taub, Elliot, Pampaka & Smith (2018), "Differential correct attribution probability for synthetic
    data: an exploration", Privacy in Statistical Databases: CAP and DCAP.

    Taub & Elliot (2019), "The synthetic data challenge", UNECE; Little, Allmendinger & Elliot (2025), Journal of
    Official Statistics 41(1), https://doi.org/10.1177/0282423X241266523: TCAP.
    """

    replicated_uniques: float
    uniques: float
    unmatched: float
    disco: float | None = None
    dcap: float | None = None
    dcap_baseline: float | None = None
    tcap: float | None = None
    tcap_baseline: float | None = None
    tcap_modal: float | None = None
    tcap_records: float | None = None


def match_risk(
    original: Codes, synthetic: Codes, sizes: tuple[int, ...], known: Sequence[int], target: int | None
) -> MatchRisk:
    """What one synthetic file gives away about the records of the original.

    Parameters
    ----------
    original, synthetic
        Rows of level codes with the same columns and the same coding; the numbers of rows may differ.
    sizes
        Number of levels of each column.
    known
        The columns that the intruder knows.
    target
        The column that the intruder wants to learn, if any.

    Raises
    ------
    InvalidKeys
        Columns that do not fit the files or each other, or an original without records.

    Examples
    --------
    The first two people are found and their level with them, the third is not in the synthetic file.

    >>> original = np.array([[0, 0], [1, 1], [2, 0]])
    >>> synthetic = np.array([[0, 0], [1, 1], [1, 1]])
    >>> risk = match_risk(original, synthetic, (3, 2), known=[0], target=1)
    >>> risk.unmatched, risk.tcap, round(risk.disco, 3), round(risk.replicated_uniques, 3)
    (1, 1.0, 0.667, 0.333)
    """
    _check(original, synthetic, sizes, known, target)
    records = len(original)
    packing = Packing(tuple(sizes[j] for j in known))
    packed = [packing.pack(codes[:, list(known)]) for codes in (original, synthetic)]
    first, combination = rank_rows(np.concatenate(packed))
    here, there = _counts(combination, records, len(first))
    unique = here == 1
    risk = MatchRisk(
        replicated_uniques=int(np.count_nonzero(unique & (there == 1))) / records,
        uniques=int(np.count_nonzero(unique)),
        unmatched=int(here[there == 0].sum()),
    )
    if target is None:
        return risk
    level = np.concatenate([original[:, target], synthetic[:, target]]).astype(np.int64)
    return _add_target(risk, combination, level, here, there)


def mean_match_risk(
    original: Codes, copies: Sequence[Codes], sizes: tuple[int, ...], known: Sequence[int], target: int | None
) -> MatchRisk:
    """The mean of `match_risk` over the synthetic copies of one original.

    A measure that only some copies define, as TCAP may be, is the mean over those; if none does it stays None.
    """
    if not len(copies):
        raise InvalidKeys("No synthetic file was given: at least one copy is needed.")
    risks = [match_risk(original, copy, sizes, known, target) for copy in copies]
    means: dict[str, Any] = {}
    for field in fields(MatchRisk):
        values = [value for risk in risks if (value := getattr(risk, field.name)) is not None]
        means[field.name] = fmean(values) if values else None
    return MatchRisk(**means)


def _add_target(
    risk: MatchRisk, combination: IntVector, level: IntVector, here: IntVector, there: IntVector
) -> MatchRisk:
    """The risk with the measures of the target, from the occupied cells of combination by level.

    ``combination`` and ``level`` are of the original records and then of the synthetic ones; ``here`` and
    ``there`` count the records of each combination in the one file and the other.
    """
    records = int(here.sum())
    packing = Packing((len(here), int(level.max()) + 1))
    first, cell = rank_rows(packing.pack(np.stack([combination, level], axis=1)))
    own, found = _counts(cell, records, len(first))
    of_cell = combination[first]
    matches = there[of_cell]
    sure_cell = (found > 0) & (found == matches)
    sure = np.zeros(len(here), dtype=np.bool_)
    sure[of_cell[sure_cell]] = True
    correct, sure_records = int(own[sure_cell].sum()), int(here[sure].sum())
    by_level = np.bincount(level[first], weights=own * sure[of_cell])
    baseline = float(np.square(np.bincount(level[:records]) / records).sum())
    return replace(
        risk,
        disco=correct / records,
        dcap=float(own @ (found / np.maximum(matches, 1))) / records,
        dcap_baseline=baseline,
        tcap=correct / sure_records if sure_records else None,
        tcap_baseline=baseline,
        tcap_modal=float(by_level.max()) / sure_records if sure_records else None,
        tcap_records=sure_records,
    )


def _counts(rank: IntVector, records: int, ranks: int) -> tuple[IntVector, IntVector]:
    """How many of the first ``records``, and of the others, have each rank."""
    return np.bincount(rank[:records], minlength=ranks), np.bincount(rank[records:], minlength=ranks)


def _check(
    original: Codes, synthetic: Codes, sizes: tuple[int, ...], known: Sequence[int], target: int | None
) -> None:
    columns = len(sizes)
    if original.shape[1:] != (columns,) or synthetic.shape[1:] != (columns,):
        raise InvalidKeys(
            f"The original has shape {original.shape} and the synthetic file {synthetic.shape}, but the numbers "
            f"of levels are those of {columns} columns: both files need these columns, one row a record."
        )
    if not len(original):
        raise InvalidKeys("The original file has no records.")
    if not len(known):
        raise InvalidKeys("No column is known to the intruder: name at least one.")
    used = [*known] if target is None else [*known, target]
    if not all(0 <= j < columns for j in used):
        raise InvalidKeys(f"Columns {', '.join(map(str, used))} are not all among 0 to {columns - 1}.")
    if len(set(known)) < len(known):
        raise InvalidKeys(f"Each known column may be named once, not {', '.join(map(str, known))}.")
    if target in known:
        raise InvalidKeys(f"Column {target} cannot be both known and the target: it is known already.")
    for words, codes in (("original", original), ("synthetic", synthetic)):
        for j in used if len(codes) else ():
            if codes[:, j].min() < 0 or codes[:, j].max() >= sizes[j]:
                raise InvalidKeys(
                    f"Column {j} of the {words} file has codes outside its {sizes[j]} levels: code both files "
                    "alike, and give the number of levels of that coding."
                )
