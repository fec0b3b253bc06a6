"""What can go wrong with a log-linear fit, in words."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from keyhole.inference.fit import Diagnostic
from keyhole.inference.formula import in_words
from keyhole.models.loglinear.estimation_error import CELLS_DRAWN, MOST_SUMMED
from keyhole.models.loglinear.means import FEW, MARGINS, RISKS, Means

MANY_PARAMETERS, TOO_MANY_PARAMETERS = 0.5, 1.0
"""Effects per record beyond which a fit follows the sample rather than the population, and says nothing of it."""

THIN = 0.2
"""Share of tau1 in thin margins from which the truth was seen to leave the interval."""

SATURATED = 0.99
"""Share of the uniques fitted as themselves from which nothing is left to fit."""


def diagnose(means: Means) -> tuple[Diagnostic, ...]:
    """Every check of a fit, good or bad."""
    sample = means.sample
    found = [_model(means), _convergence(means)]
    if missing := pairs_left_out(means):
        found.append(_few_terms(means, missing))
    if means.empty:
        found.append(_boundary(means, complete=not missing))
    elif means.existence != "exists":
        found.append(_existence(means))
    if thin := means.thin:
        found.append(_thin_margins(thin))
    if means.noise is not None and means.way == "active cells" and (means.visited or 0) > MOST_SUMMED:
        words = (
            "The estimation error in the interval comes from an information matrix that was estimated, without "
            f"bias, from {CELLS_DRAWN:,} points of the fitted law, not from all {means.visited or 0:,} cells."
        )
        found.append(Diagnostic("information_cells", CELLS_DRAWN, "good", words))
    if means.parameters is not None and sample.sample_size:
        found.append(_parameters(means))
    if _saturated(means):
        words = (
            "Every unique is fitted as itself: the model has a term for each and says nothing of the population."
        )
        found.append(Diagnostic("saturated", 1.0, "untrusted", words))
    return tuple(found)


def leaves_out(means: Means) -> str:
    """What the interval does not hold."""
    beyond = "what the terms of the model do not describe"
    return beyond if means.noise is not None else f"the estimation error of the fit, and {beyond}"


def _model(means: Means) -> Diagnostic:
    names = [key.name for key in means.sample.table.keys]
    formula = in_words(means.generators, names)
    where = {
        "closed form": "The model is decomposable: fitted in closed form.",
        "junction tree": "Fitted on a junction tree, without visiting cells.",
        "active cells": f"Fitted on {means.visited or 0:,} cells whose margins are not empty.",
    }[means.way]
    return Diagnostic("model", formula, "good", f"{where} Terms: {_shortened(formula)}.")


def _shortened(formula: str, most: int = 300) -> str:
    return formula if len(formula) <= most else f"{formula[:most].rsplit(' + ', 1)[0]} and more"


def _convergence(means: Means) -> Diagnostic:
    if means.converged:
        words = f"The fitted margins agree with the observed ones within {means.discrepancy:.1g}."
        return Diagnostic("margin_error", means.discrepancy, "good", words)
    trouble = (
        f"a margin is still off by {means.discrepancy:.2g} of itself"
        if means.discrepancy > MARGINS
        else f"the margins agree, but tau1 or tau2 still changes by more than {RISKS:g} of itself in a pass"
    )
    words = f"Proportional fitting did not converge: after {means.passes:,} passes {trouble}. Try fewer terms."
    return Diagnostic("margin_error", means.discrepancy, "untrusted", words)


def pairs_left_out(means: Means) -> int:
    """Pairs of keys without a term: the model takes them as independent given the others."""
    keys = range(len(means.sample.table.keys))
    return sum(not any({a, b} <= set(found) for found in means.generators) for a, b in combinations(keys, 2))


def _few_terms(means: Means, missing: int) -> Diagnostic:
    r"""Terms that are left out, and the direction in which that moves risk.

    Over the people of the population :math:`\sum_k \lambda_k \log(\lambda_k / \hat\lambda_k) \ge 0` for any fit of
    the same total, zero only at the truth: the combinations that people have are, on average, thought to be rarer
    than they are. With few terms no record has much to say about its own cell, and the sample uniques share this;
    with many, the fit has seen them and they look more frequent instead.
    """
    keys = len(means.sample.table.keys)
    words = (
        f"{missing} of {keys * (keys - 1) // 2} pairs of keys have no term: where they depend on each other, the "
        "combinations that people have look rarer than they are, and risk is overstated."
    )
    return Diagnostic("pairs_left_out", missing, "caution", words)


def _boundary(means: Means, *, complete: bool) -> Diagnostic:
    effect = (
        "makes the others look more frequent than they are and understates risk"
        if complete
        else "lowers risk, against what the pairs without a term do"
    )
    words = (
        f"{means.empty:,} entries of the fitted margins are empty in the sample, so the maximum likelihood "
        f"estimate does not exist: combinations with such an entry are taken as impossible, which {effect}."
    )
    return Diagnostic("empty_margins", means.empty, "caution", words)


def _existence(means: Means) -> Diagnostic:
    if means.existence == "not known":
        words = "Whether the maximum likelihood estimate exists was not checked: the table is too large for that."
        return Diagnostic("existence", means.existence, "good", words)
    words = (
        "No margin is empty in the sample, yet the maximum likelihood estimate does not exist: some combinations "
        "have a mean of zero in the limit, as if they were impossible, which understates risk."
    )
    return Diagnostic("existence", means.existence, "caution", words)


def _thin_margins(share: float) -> Diagnostic:
    words = (
        f"{share:.0%} of tau1 comes from uniques in an entry of a fitted margin with fewer than {FEW} records, "
        "whose means follow these few"
    )
    if share < THIN:
        return Diagnostic("thin_margins", share, "good", f"{words}.")
    words += ", which by itself understates risk, by more than the interval tells."
    return Diagnostic("thin_margins", share, "caution", words)


def _parameters(means: Means) -> Diagnostic:
    assert means.parameters is not None
    records = means.sample.sample_size
    if means.parameters > MANY_PARAMETERS * records:
        words = (
            f"The model has {means.parameters:,} effects for {records:,} records: it follows the sample too "
            "closely and understates risk."
        )
        hopeless = means.parameters > TOO_MANY_PARAMETERS * records
        return Diagnostic("parameters", means.parameters, "untrusted" if hopeless else "caution", words)
    words = f"The model has {means.parameters:,} effects for {records:,} records."
    return Diagnostic("parameters", means.parameters, "good", words)


def _saturated(means: Means) -> bool:
    """Whether nearly every unique has a fitted mean of its own one record."""
    if not means.sample.unsampled_size or len(means.fitted) < 2 or means.sample.table.weights is not None:
        return False
    return float(np.mean(np.abs(means.fitted - 1.0) < 1e-3)) >= SATURATED


def warned(name: str, warnings: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Warnings of a search as one cautious line each."""
    return tuple(Diagnostic(f"{name}_{i + 1}", words, "caution", words) for i, words in enumerate(warnings))
