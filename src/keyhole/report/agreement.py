"""How far the models agree, and which of their answers count."""

from keyhole.report.words import clean, listed, rounded
from keyhole.risk.compare import Comparison
from keyhole.risk.estimate import RiskAssessment

CLOSE, APART = 1.25, 2.0
"""Largest over smallest estimate: up to the first, models agree; beyond the second, they do not."""

POOR_FIT, HOPELESS_FIT = 2.0, 10.0
"""Misfits of the size index from which a model is called poor, and from which its answer is left aside."""


def models_that_count(comparison: Comparison, chosen: RiskAssessment) -> dict[str, float]:
    """tau1 by the models that can be trusted and do not fit far worse than the recommended one."""
    limit = max(HOPELESS_FIT, 2 * (chosen.size_index_misfit or 0.0))
    return {
        found.model: found.tau1.estimate
        for found in comparison.assessments
        if found.status == "ok" and found.tau1 is not None and (found.size_index_misfit or 0.0) <= limit
    }


def are_apart(low: float, high: float) -> bool:
    """Whether two estimates of a number of people differ enough to lead to different decisions."""
    return high - low >= 1 and high > APART * low


def agreement(comparison: Comparison, chosen: RiskAssessment) -> str:
    """How far the models agree, in words; those that fit far worse than the recommended one are named apart."""
    estimates = models_that_count(comparison, chosen)
    aside = [
        f"{clean(found.model)} ({rounded(found.tau1.estimate)})"
        for found in comparison.assessments
        if found.status == "ok" and found.tau1 is not None and found.model not in estimates
    ]
    words = _alone(comparison) if len(estimates) == 1 else _spread(estimates)
    if len(estimates) > 1 and (chosen.size_index_misfit or 0.0) >= POOR_FIT:
        words += (
            " Even the best fitting does not reproduce the file well: where they agree, they may err together."
        )
    if aside:
        words += f" Left aside, for fitting the file far worse than {clean(chosen.model)}: {listed(aside)}."
    return words


def _alone(comparison: Comparison) -> str:
    alone = "Only one model was run" if len(comparison.assessments) == 1 else "Only one of the models run counts"
    return (
        f"{alone}, so nothing shows how much the answer depends on the choice of model. Run others beside it "
        "before a decision."
    )


def _spread(estimates: dict[str, float]) -> str:
    (least, low), *_, (most, high) = sorted(estimates.items(), key=lambda found: found[1])
    models = f"The {len(estimates)} models that count"
    span = f"from {rounded(low)} ({clean(least)}) to {rounded(high)} ({clean(most)})"
    if high - low < 1 or high <= CLOSE * low:
        return f"{models} agree closely: {span}."
    factor = f", a factor of {high / low:.1f}" if low > 0 else ""
    if not are_apart(low, high):
        return f"{models} agree roughly: {span}{factor}. That is more doubt than the interval of one model shows."
    return f"{models} disagree: {span}{factor}. Decide as if the highest could be true."
