"""Why the pool is believed first: what its models, the sample and its subsamples say, in words."""

from collections.abc import Sequence

from keyhole.risk.estimate import RiskAssessment
from keyhole.risk.nested import LARGE, NESTED_ERROR

FITS, POOR = 2.0, 10.0
"""Misfits of the size index up to which a model is said to reproduce it, and from which not to."""


def why_the_pool(pool: RiskAssessment, assessments: Sequence[RiskAssessment]) -> str:
    """The shares, the checks on the sample alone and the record, one sentence each."""
    others = [found for found in assessments if found is not pool]
    sentences = [_shares(pool), _size_index(pool, others), _nested(pool.members)]
    if pool.record is not None:
        sentences.append(pool.record.words)
    return " ".join(filter(None, sentences))


def _shares(pool: RiskAssessment) -> str:
    return next((check.words for check in pool.diagnostics if check.name == "pool"), "")


def _size_index(pool: RiskAssessment, others: Sequence[RiskAssessment]) -> str:
    """Which models reproduce how many records share a combination, and which do not."""
    judged = {found.model: found.size_index_misfit for found in (pool, *others)}
    fit = [name for name, misfit in judged.items() if misfit is not None and misfit < FITS]
    unfit = [name for name, misfit in judged.items() if misfit is not None and misfit >= POOR]
    if not fit and not unfit:
        return ""
    what = "how many records share a combination"
    words = [f"{_listed(fit)} reproduce{'s' * (len(fit) == 1)} {what}"] if fit else []
    if unfit:
        does_not = f"{_listed(unfit)} {'does' if len(unfit) == 1 else 'do'} not"
        words.append(does_not if fit else f"{does_not} reproduce {what}")
    return "; ".join(words) + "."


def _nested(members: Sequence[RiskAssessment]) -> str:
    """How far off the models of the pool were where the sample played the population, and where that is chance."""
    errors = {found.model: check for found in members for check in found.diagnostics if check.name == NESTED_ERROR}
    if not errors:
        return ""
    shown = ", ".join(f"{float(check.value):+.0%} by {name}" for name, check in errors.items())
    words = f"By subsamples, as if the sample were the population, tau1 carried over to it is off by {shown}"
    chance = [
        name for name, check in errors.items() if abs(float(check.value)) > LARGE and check.verdict == "good"
    ]
    if chance:
        which = "this" if len(chance) == len(errors) else f"the error of {_listed(chance)}"
        words += f"; so few are unique in subsamples that {which} may be chance"
    return f"{words}."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
