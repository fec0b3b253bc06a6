"""How far the models agree, and which of their answers count."""

import math
from collections.abc import Collection

from keyhole.inference.track_record import was_tried
from keyhole.report.words import clean, listed, rounded
from keyhole.risk.compare import Comparison
from keyhole.risk.estimate import RiskAssessment

CLOSE, APART = 1.25, 2.0
"""Largest over smallest estimate: up to the first, models agree; beyond the second, they do not."""

POOR_FIT, HOPELESS_FIT = 2.0, 10.0
"""Misfits of the size index from which a model is called poor, and from which its answer is left aside."""

ABSURD = 100.0
"""A factor between models beyond which its size says nothing more."""


def misfit_figure(misfit: float) -> str:
    """A misfit with one decimal, or with two where one would put it on the wrong side of a limit.

    Examples
    --------
    >>> [misfit_figure(misfit) for misfit in (0.01, 0.8, 1.96, 1.999, 2.0, 2.04, 9.97, 10.0)]
    ['under 0.1', '0.8', '1.96', '1.99', '2.0', '2.04', '9.97', '10.0']
    """
    if misfit < 0.05:
        return "under 0.1"
    if any(0 < abs(misfit - limit) < 0.05 for limit in (POOR_FIT, HOPELESS_FIT)):
        # Cut, not rounded: 1.999 is below 2.
        return f"{math.floor(misfit * 100) / 100:.2f}"
    return f"{misfit:.1f}"


def models_that_count(comparison: Comparison, chosen: RiskAssessment) -> dict[str, float]:
    """tau1 by the models that can be trusted and do not fit far worse than the recommended one.

    Beside a pool, or a model with a good record on real populations, only others with a good record count. What a
    pool is made of is in it already.
    """
    limit = max(HOPELESS_FIT, 2 * (chosen.size_index_misfit or 0.0))
    return {
        found.model: found.tau1.estimate
        for found in comparison.assessments
        if found.status == "ok"
        and found.model not in _members(chosen)
        and found.tau1 is not None
        and (found.size_index_misfit or 0.0) <= limit
        and (found.record is not None or found is chosen or not _has_ground(chosen))
    }


def match_range(comparison: Comparison, chosen: RiskAssessment) -> tuple[float, float] | None:
    """Lowest and highest chance of a right match, by the models that count; None unless their tau1 are apart."""
    counting = models_that_count(comparison, chosen)
    if not are_apart(min(counting.values()), max(counting.values())):
        return None
    chances = [
        min(1.0, found.tau2.estimate / found.sample.uniques)
        for found in comparison.assessments
        if found.model in counting and found.tau2 is not None
    ]
    return min(chances), max(chances)


def are_apart(low: float, high: float) -> bool:
    """Whether two estimates of a number of people differ enough to lead to different decisions."""
    return high - low >= 1 and high > APART * low


def _are_close(low: float, high: float) -> bool:
    return high - low < 1 or high <= CLOSE * low


def agreement(comparison: Comparison, chosen: RiskAssessment) -> str:
    """How far the models agree, in words; those that do not count beside the recommended one are named apart."""
    estimates = models_that_count(comparison, chosen)
    aside = {
        found.model: found.tau1.estimate
        for found in comparison.assessments
        if found.status == "ok"
        and found.tau1 is not None
        and found.model not in estimates
        and found.model not in _members(chosen)
    }
    if _has_ground(chosen):
        return _within(chosen) + _beside_a_record(comparison, chosen, estimates, aside)
    spread = _alone(comparison) if len(estimates) == 1 else _spread(estimates, _those(comparison, estimates))
    words = _within(chosen) + spread
    if len(estimates) > 1 and (chosen.size_index_misfit or 0.0) >= POOR_FIT:
        words += (
            " Even the best fitting does not reproduce the file well: where they agree, they may err together."
        )
    if aside:
        words += f" Left aside, for fitting the file far worse than {clean(chosen.model)}: {_named(aside)}."
    return words


def _has_ground(chosen: RiskAssessment) -> bool:
    """Whether it was chosen for more than its fit: for its record, or because records left out weighed models."""
    return chosen.record is not None or bool(chosen.members)


def _members(chosen: RiskAssessment) -> set[str]:
    return {member.model for member in chosen.members}


def _within(chosen: RiskAssessment) -> str:
    """What the models of a pool say by themselves, if there are several, and how near to each other that is."""
    inside = {member.model: member.tau1.estimate for member in chosen.members if member.tau1 is not None}
    if len(inside) < 2:
        return ""
    doubtful = {member.model for member in chosen.members if member.status != "ok"}
    low, high = min(inside.values()), max(inside.values())
    near = "closely" if _are_close(low, high) else "roughly" if not are_apart(low, high) else "not at all"
    return f"By themselves, {_named(inside, doubtful)} agree {near}. "


def _beside_a_record(
    comparison: Comparison, chosen: RiskAssessment, estimates: dict[str, float], aside: dict[str, float]
) -> str:
    """What the others say where the recommended model is a pool, or was right on real populations."""
    if not aside and len(estimates) == 1:
        alone = "was run" if len(comparison.assessments) == 1 else "of those run can be used"
        ground = "record on real populations" if chosen.record is not None else "fit to records left out"
        return f"Only one model {alone}. Its {ground}, not a comparison, says how far to believe it."
    words = []
    if len(estimates) > 1:
        words.append(_spread(estimates, f"The {len(estimates)} models with a good record"))
    if aside:
        first = clean(chosen.model if chosen.record is not None else chosen.members[0].model)
        untried = {
            found.model
            for found in comparison.assessments
            if found.model in aside and not was_tried(found.diagnostics)
        }
        words.append(_without_weight(aside, untried, first))
    return " ".join(words)


def _without_weight(aside: dict[str, float], untried: set[str], first: str) -> str:
    """The models that have no weight, and why: those tried on real populations apart from those that were not."""
    poor = {model: tau1 for model, tau1 in aside.items() if model not in untried}
    rest = {model: tau1 for model, tau1 in aside.items() if model in untried}
    why = [
        *([f"{_named(poor)} did worse on real populations than {first}"] if poor else []),
        *(
            [f"{_named(rest)} {'was' if len(rest) == 1 else 'were'} never tried on such samples of them"]
            if rest
            else []
        ),
    ]
    others, have = ("The other model", "has") if len(aside) == 1 else ("The other models", "have")
    return f"{others} {have} no weight in this verdict: {'; '.join(why)}."


def _named(estimates: dict[str, float], doubtful: Collection[str] = ()) -> str:
    """Models with their estimates, and with a word on those that are not to be trusted."""
    return listed(
        [
            f"{clean(model)} ({rounded(estimate)}{', not to be trusted' if model in doubtful else ''})"
            for model, estimate in estimates.items()
        ]
    )


def _alone(comparison: Comparison) -> str:
    alone = (
        "Only one model was run" if len(comparison.assessments) == 1 else "Only one of the models run can be used"
    )
    return (
        f"{alone}, so nothing shows how much the answer depends on the choice of model. Run others beside it "
        "before a decision."
    )


def _those(comparison: Comparison, estimates: dict[str, float]) -> str:
    models = f"The {len(estimates)} models"
    if len(estimates) == len(comparison.assessments):
        return models
    unchecked = any(found.model in estimates and found.size_index is None for found in comparison.assessments)
    return f"{models} that can be compared" if unchecked else f"{models} that fit well enough to compare"


def _spread(estimates: dict[str, float], models: str) -> str:
    (least, low), *_, (most, high) = sorted(estimates.items(), key=lambda found: found[1])
    span = f"from {rounded(low)} ({clean(least)}) to {rounded(high)} ({clean(most)})"
    if _are_close(low, high):
        return f"{models} agree closely: {span}."
    factor = _factor(low, high)
    if not are_apart(low, high):
        return f"{models} agree roughly: {span}{factor}. That is more doubt than the interval of one model shows."
    return f"{models} disagree: {span}{factor}. Decide as if the highest could be true."


def _factor(low: float, high: float) -> str:
    if high > ABSURD * low:
        return f", by more than a factor of {ABSURD:.0f}"
    return f", a factor of {high / low:.0f}" if high >= 9.95 * low else f", a factor of {high / low:.1f}"
