"""What can go wrong with a log-linear fit, in words."""

from collections.abc import Sequence

import numpy as np

from keyhole.inference.fit import Diagnostic
from keyhole.models.loglinear.formula import in_words
from keyhole.models.loglinear.means import Means

MANY_PARAMETERS = 0.5
"""Effects per record beyond which a fit follows the sample rather than the population."""

SATURATED = 0.99
"""Share of the uniques fitted as themselves from which nothing is left to fit."""


def diagnose(means: Means) -> tuple[Diagnostic, ...]:
    """Every check of a fit, good or bad."""
    sample = means.sample
    found = [_model(means), _convergence(means)]
    if means.empty:
        found.append(_boundary(means))
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
    words = (
        f"Proportional fitting did not converge: after {means.passes:,} passes a margin is still off by "
        f"{means.discrepancy:.1%}."
    )
    return Diagnostic("margin_error", means.discrepancy, "untrusted", words)


def _boundary(means: Means) -> Diagnostic:
    words = (
        f"{means.empty:,} entries of the fitted margins are empty in the sample, so the maximum likelihood "
        "estimate does not exist: combinations with such an entry are taken as impossible, which overstates the "
        "others and understates risk."
    )
    return Diagnostic("empty_margins", means.empty, "caution", words)


def _parameters(means: Means) -> Diagnostic:
    assert means.parameters is not None
    records = means.sample.sample_size
    if means.parameters > MANY_PARAMETERS * records:
        words = (
            f"The model has {means.parameters:,} effects for {records:,} records: it follows the sample too "
            "closely and understates risk."
        )
        return Diagnostic("parameters", means.parameters, "caution", words)
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
