"""What synthetic files give away, in plain words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.inference.pareto_weights import HEAVY
from keyhole.report.verdict import Statement, Verdict
from keyhole.report.words import clean, count, listed, percent, plural, span
from keyhole.synthesis.importance import FEWEST
from keyhole.synthesis.risk_result import SyntheticRisk

SUPPORTS = {
    "one-change": "all combinations that differ from it in one key",
    "two-change": "all combinations that differ from it in one or two keys",
    "all": "all combinations there can be",
    "known-part": "all combinations with the levels that he knows",
    "search": "its neighbours, and the likely combinations that a search has found",
}
"""What the intruder weighs beside the truth, by the name of the support."""

PRIORS = {
    "uniform": "he held all of them for equally likely",
    "model": "he held them for as likely as a model of the other records says",
    "given": "he held them for as likely as the beliefs that were given say",
}

ESTIMATORS = {
    "bridge": "from chains on the file alone and with each copy",
    "importance": "by the published importance sampler",
}

SURE = 0.5
"""A probability above which nothing else can be likelier, nor all else together."""

EXTERNAL = (
    "The copies were made elsewhere. The chances assume that they were drawn from a latent class model of the "
    "file; if they were made in another way, only what matches give away holds."
)


@dataclass(frozen=True, slots=True)
class IntruderView:
    """How many candidates the intruder weighs, and the rest of his view in words."""

    candidates: tuple[int, int]
    weighs: str
    believed: str
    estimator: str


def intruder_of(risk: SyntheticRisk) -> IntruderView:
    """Whom the result is about."""
    candidates = risk.combinations.candidates
    return IntruderView(
        candidates=(int(candidates.min()), int(candidates.max())),
        weighs=SUPPORTS.get(risk.support, f"the candidates of the support {clean(risk.support)}"),
        believed=PRIORS[risk.prior],
        estimator=ESTIMATORS[risk.estimator],
    )


def verdict_of(risk: SyntheticRisk, *, external: bool, knows: Sequence[str] = ()) -> Verdict:
    """The verdict on synthetic copies: what is not to be relied on says so first.

    ``knows`` are names of keys that the intruder knows of the record.
    """
    trusted = risk.trusted
    headline = _headline(risk) if trusted else "These numbers are not to be relied on."
    summary = [clean(check.words) for check in risk.diagnostics if check.verdict == "untrusted"]
    if not trusted:
        summary.append("What follows is shown to find out why, not to decide by.")
    summary += [_ranks_and_chances(risk), *_doubtful(risk)]
    if external:
        summary.append(EXTERNAL)
    return Verdict(headline, tuple(summary), _points(risk, knows))


def _headline(risk: SyntheticRisk) -> str:
    found, number = risk.combinations, len(risk.combinations)
    sure = int(((found.probability > SURE) & (found.probability > found.before)).sum())
    if sure:
        return (
            f"For {count(sure)} of {plural(number, 'combination')} the copies make the truth more likely than not."
        )
    doubled = found.above(2.0)
    if doubled:
        return f"For {count(doubled)} of {plural(number, 'combination')} the copies more than double the chance."
    return "For no combination do the copies more than double the chance of the truth."


def _ranks_and_chances(risk: SyntheticRisk) -> str:
    found = risk.combinations
    first = found.ranked(1)
    highest = int(np.argmax(found.probability))
    same = np.ptp(found.before) < 1e-9
    return (
        f"Of {plural(len(found), 'combination')}, an intruder who knows every other record would put the true one "
        f"first for {count(first) if first else 'none'}; its chance is at most "
        f"{percent(float(found.probability[highest]))}, against {percent(float(found.before[highest]))}"
        + (" before the copies." if same else " for the same combination before the copies.")
    )


def _doubtful(risk: SyntheticRisk) -> list[str]:
    """What to leave out where single combinations are not to be relied on."""
    untrusted = risk.untrusted
    if not untrusted.any():
        return []
    combinations, records = int(untrusted.sum()), int(risk.combinations.counts[untrusted].sum())
    if combinations == len(untrusted):
        return ["The chance of no combination is to be relied on."]
    return [
        f"The chances of {plural(combinations, 'combination')}, held by {plural(records, 'record')}, are among "
        "these numbers but not to be relied on."
    ]


def _points(risk: SyntheticRisk, knows: Sequence[str]) -> tuple[Statement, ...]:
    found, view = risk.combinations, intruder_of(risk)
    low, high = (count(number) for number in view.candidates)
    copies = "synthetic copy" if risk.copies == 1 else f"{count(risk.copies)} synthetic copies"
    points = [
        Statement(
            "The intruder",
            f"He has the whole file but one record, and the {copies}. "
            f"{f'Of this one he knows {listed(knows)}. ' if knows else ''}For this record he weighs the truth and "
            f"{view.weighs}: {span(low, high)} in all. Before he saw the copies, {view.believed}.",
        ),
        Statement(
            "By luck alone",
            f"A random order of the candidates would put the truth first for about "
            f"{count(round(float((1 / found.candidates).sum())))} of {plural(len(found), 'combination')}.",
        ),
    ]
    alone = int((found.candidates == 1).sum())
    if alone:
        points.append(
            Statement(
                "No other candidate",
                f"For {plural(alone, 'combination')} the truth is the only candidate: it comes first with a "
                "chance of 100%, and the copies have no part in it.",
            )
        )
    return tuple(points)


def importance_in_words(
    effective: tuple[float, float], khat: tuple[float, float], draws: int, *, used: bool, trusted: bool
) -> str:
    """What the published importance sampler is worth here."""
    low, high = span(f"{effective[0]:.1f}", f"{effective[1]:.1f}"), span(*(shown_khat(one) for one in khat))
    words = (
        f"The published importance sampler goes by {low} effective draws of {count(draws)} for a copy, with a "
        f"k-hat of {high}; it needs more than {FEWEST:g} effective draws, and a k-hat below {HEAVY:g}."
    )
    if trusted:
        return f"{words} Here it has them{', and the chances on this page are its own' if used else ''}."
    if used:
        return f"{words} Its answers, and so the chances on this page, are not to be relied on."
    return f"{words} Its answers are not to be relied on, and nothing on this page comes from it."


def shown_khat(khat: float) -> str:
    """A k-hat as it is read.

    Examples
    --------
    >>> shown_khat(8.71), shown_khat(float("inf"))
    ('8.7', 'infinity')
    """
    return f"{khat:.1f}" if math.isfinite(khat) else "infinity"
