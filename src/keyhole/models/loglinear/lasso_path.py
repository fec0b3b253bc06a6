"""The penalties that a lasso tried, how well each foretold held-out records, and the one that was chosen."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.models.loglinear.penalised import PenalisedFit
from keyhole.population.sample import Sample

Rule = Literal["best", "one-standard-error"]
"""The penalty with the best score, or the largest that is not worse by more than the standard error."""


@dataclass(frozen=True, slots=True)
class LassoStep:
    """One penalty of the path.

    Attributes
    ----------
    penalty
        lambda, in records.
    tau1, tau2
        The estimates of the fit to all records.
    score, deficit_error
        The mean held-out log likelihood of a record, and the standard error, over the folds, of how much it is
        worse than the best of the path.
    pairs
        How many pairs of keys have a coefficient that is not zero.
    coefficients
        How many coefficients are not zero.
    violation, converged
        The largest violation of the conditions of the maximum, and whether all fits with this penalty met them.
    """

    penalty: float
    tau1: float
    tau2: float
    score: float
    deficit_error: float
    pairs: int
    coefficients: int
    violation: float
    converged: bool


@dataclass(frozen=True, eq=False)
class LassoPath:
    """The penalties that were tried, the one that was chosen, and its fit.

    Attributes
    ----------
    steps
        From the largest penalty downwards.
    chosen
        The position of the chosen one.
    unscored
        Records that no score could use: a level that nobody in the other folds has.
    fitted
        The fit to all records with the chosen penalty.
    """

    steps: tuple[LassoStep, ...]
    chosen: int
    unscored: int
    fitted: PenalisedFit = field(repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be known before the chosen fit is believed."""
        found = []
        if self.chosen == 0:
            found.append("The largest penalty was chosen: the lasso is the independence model here.")
        elif self.chosen == len(self.steps) - 1:
            found.append(
                f"The smallest penalty of the path, {self.steps[-1].penalty:.2g} records, was chosen; "
                "a smaller one might be better."
            )
        loose = sum(not step.converged for step in self.steps)
        if loose:
            found.append(f"Fits with {loose} of {len(self.steps)} penalties did not converge.")
        return tuple(found)

    @property
    def model_path(self) -> ModelPath:
        """The path for people to read."""
        steps = tuple(
            PathStep(
                f"lambda {step.penalty:.3g}",
                step.penalty,
                step.tau1,
                step.tau2,
                {"held_out_score": step.score, "pairs": step.pairs, "coefficients": step.coefficients},
            )
            for step in self.steps
        )
        return ModelPath("lambda", steps, self.chosen)


class Tried(NamedTuple):
    """What is kept of the fits with one penalty."""

    penalty: float
    effects: Vector
    tau1: float
    tau2: float
    pairs: int
    coefficients: int
    violation: float
    converged: list[bool]
    scores: list[float]

    @classmethod
    def of(cls, sample: Sample, fit: PenalisedFit) -> "Tried":
        places = fit.cells.occupied[sample.table.uniques]
        mean = fit.fitted[places] * sample.unsampled_size / sample.sample_size
        tau1, tau2 = float(np.exp(-mean).sum()), float(special.exprel(-mean).sum())
        nonzero = sum(int(np.count_nonzero(fit.coefficients((a, b)))) for a, b in fit.pairs)
        pairs = len(fit.pairs)
        return cls(fit.penalty, fit.effects, tau1, tau2, pairs, nonzero, fit.violation, [fit.converged], [])


def choose(tried: list[Tried], sizes: IntVector, rule: Rule) -> tuple[tuple[LassoStep, ...], int]:
    """The steps of the path with their scores, and the position of the chosen one."""
    scores = np.array([step.scores for step in tried])
    mean = scores.sum(axis=1) / max(int(sizes.sum()), 1)
    best = int(np.argmax(mean))
    deficit = (scores - scores[best]) / np.maximum(sizes, 1)
    error = deficit.std(axis=1, ddof=1) / np.sqrt(len(sizes))
    chosen = best if rule == "best" else int(np.flatnonzero(mean >= mean[best] - error)[0])
    steps = tuple(
        LassoStep(
            step.penalty, step.tau1, step.tau2, float(mean[place]), float(error[place]), step.pairs,
            step.coefficients, step.violation, all(step.converged),
        )
        for place, step in enumerate(tried)
    )  # fmt: skip
    return steps, chosen
