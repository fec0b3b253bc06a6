"""What can go wrong with the Lancaster additive model, in words."""

from typing import TYPE_CHECKING

import numpy as np

from keyhole.inference.fit import Diagnostic, Verdict
from keyhole.inference.track_record import TrackRecord, record_on
from keyhole.models.lancaster.held_out import MOST_MISSED
from keyhole.population.weights import design_effect

if TYPE_CHECKING:
    from keyhole.models.lancaster.model import LancasterFit

NEGATIVE_MASS = 0.1
"""Negative probability that speaks of lack of fit; Takemura calls 0.19 substantial."""


RECORD = TrackRecord(50, 219, covered=0, samples=18)
"""tau1 on the samples of the model guide: second order, lambda chosen by held-out records."""

SATURATED = 0.99
"""Share of the uniques with the probability of one record in the sample from which nothing is left to estimate."""


def diagnose(fit: "LancasterFit") -> tuple[Diagnostic, ...]:
    """Every check of a fit, good or bad."""
    found = [_shrinkage(fit), _renormaliser(fit), _without_probability(fit), _missed(fit)]
    if fit.sample.table.weights is not None:
        found.append(_weights(fit))
    found.append(Diagnostic("path", len(fit.shrinkage_path.shrinkage), "good", fit.shrinkage_path.in_words()))
    if fit.sample.uniques and fit.sample.unsampled_size:
        if _saturated(fit):
            words = (
                "Every unique has its share of the sample as its probability: nothing is said of the population."
            )
            found.append(Diagnostic("saturated", 1.0, "untrusted", words))
        found.append(record_on(fit.sample, RECORD if fit.order == 2 and fit.automatic else None))
    return tuple(found)


def _saturated(fit: "LancasterFit") -> bool:
    """Whether the law at the uniques is the table of relative frequencies, as with all interactions in full."""
    if fit.sample.table.weights is not None or fit.sample.uniques < 2:
        return False
    alone = np.abs(fit.probability * fit.sample.sample_size - 1.0) < 1e-3
    return float(alone.mean()) >= SATURATED


def _shrinkage(fit: "LancasterFit") -> Diagnostic:
    name, value = "lambda", fit.shrinkage
    path, held_out = fit.shrinkage_path, fit.shrinkage_path.held_out
    best, unbounded, asked = held_out.best(), held_out.best_if_all_were_eligible(), held_out.asked
    if len(fit.sample.table.keys) == 1:
        return Diagnostic(name, value, "good", "There is one key, so nothing to interact.")
    if asked == 0:
        words = "Every record has a level that nobody else has: no record can say which lambda is right."
        return Diagnostic(name, value, "caution", words)
    if not fit.automatic:
        words = f"lambda = {value:g} was given; held-out records would have chosen {path.shrinkage[best]:g}."
        return Diagnostic(name, value, "good", words)
    words = f"lambda = {value:g} foretells {asked:,} held-out records best."
    verdict: Verdict = "good"
    if unbounded != best:
        verdict = "caution"
        words = (
            f"lambda = {value:g} foretells {asked:,} held-out records best among those whose law gives a "
            f"probability to at least {1 - MOST_MISSED:.0%} of them. That bound decided: without it "
            f"lambda = {path.shrinkage[unbounded]:g}, with none for {held_out.missed[unbounded]:.1%}, scores best."
        )
    if value == 0.0:
        words += " That is an edge of the path: the interactions help not at all, the law is independence."
        return Diagnostic(name, value, "caution", words)
    if value == 1.0:
        words += " That is an edge of the path: the interactions are taken in full, and more was not tried."
        return Diagnostic(name, value, "caution", words)
    return Diagnostic(name, value, verdict, words)


def _renormaliser(fit: "LancasterFit") -> Diagnostic:
    c, g = fit.shrinkage_path.renormaliser, fit.shrinkage_path.place(fit.shrinkage)
    lost = abs(float(c.negative[g]))
    words = f"c = {c.value[g]:.4f}: cells with negative probability, set to zero, had {lost:.3f} together."
    verdict: Verdict = "good"
    if lost > NEGATIVE_MASS:
        verdict = "caution"
        words += " That is substantial: additive interactions do not fit these keys well."
    if not c.exact:
        words += (
            f" The table is beyond the budget of cells: c was estimated from {c.visited:,} sampled cells, "
            f"standard error {c.error[g]:.2g}."
        )
    return Diagnostic("renormaliser", float(c.value[g]), verdict, words)


def _without_probability(fit: "LancasterFit") -> Diagnostic:
    count = int(fit.shrinkage_path.without_probability[fit.shrinkage_path.place(fit.shrinkage)])
    name = "uniques_without_probability"
    if count:
        words = (
            f"The law gives {count:,} of the {fit.sample.uniques:,} sample-unique combinations no probability, "
            "although they were seen; they count as unique in the population."
        )
        return Diagnostic(name, count, "caution", words)
    return Diagnostic(name, 0, "good", "Every sample-unique combination has a positive probability.")


def _missed(fit: "LancasterFit") -> Diagnostic:
    held_out, g = fit.shrinkage_path.held_out, fit.shrinkage_path.place(fit.shrinkage)
    share = float(held_out.missed[g])
    words = f"{100 * share:.1f}% of held-out records fall into cells to which the law gives no probability."
    return Diagnostic("held_out_without_probability", share, "good" if held_out.eligible[g] else "caution", words)


def _weights(fit: "LancasterFit") -> Diagnostic:
    effect = design_effect(fit.sample)
    words = (
        "Survey weights enter the margins and each cell's chance of being in the sample (design effect "
        f"{effect:.2f}). Clustering is not accounted for."
    )
    return Diagnostic("design_effect", effect, "good" if effect < 3 else "caution", words)
