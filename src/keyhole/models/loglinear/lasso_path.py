"""The penalties that a lasso tried, how well each foretold held-out records, and the one that was chosen."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from keyhole.arrays import Vector
from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.models.loglinear.means import multiplier
from keyhole.models.loglinear.penalised_fit import PenalisedFit
from keyhole.population.sample import Sample

Rule = Literal["best", "one-standard-error"]
"""The penalty with the best score, or the largest that is not worse by more than the standard error."""


FAR = 0.5
"""Share by which tau1 of neighbouring penalties may differ before the path counts as too coarse."""

NOISY = 1.0
"""Simulation error of a margin, in proportion to its sampling error, from which more cells should be drawn."""


@dataclass(frozen=True, slots=True)
class Approximation:
    r"""What it means that part of the cells stood for all.

    With masses :math:`w_c m_c`, the fitted margin of an entry has the simulation variance :math:`\sum_c w_c (w_c -
    1) m_c^2` over its cells, nothing for cells that stand for themselves alone.

    Attributes
    ----------
    visited, cells
        The cells that were visited and those that there are.
    effective_size
        The square of a fitted margin over its simulation variance, the smallest over the entries with records: as
        many draws from the fitted law itself would have done as well.
    noise
        The simulation error of a fitted margin over the sampling error of its count, the largest over these.
    """

    visited: int
    cells: int
    effective_size: float
    noise: float

    @classmethod
    def of(cls, fit: PenalisedFit, observed: Vector, cells: int) -> "Approximation | None":
        """None if all cells were visited."""
        if fit.weights is None:
            return None
        variance = fit.design.margins_of(fit.fitted**2 * (1.0 - 1.0 / fit.weights))
        some = observed > 0
        fitted, variance, count = fit.design.margins_of(fit.fitted)[some], variance[some], observed[some]
        with np.errstate(divide="ignore"):
            size = float((fitted**2 / variance).min())
        return cls(len(fit.cells), cells, size, float(np.sqrt(variance / count).max()))

    @property
    def words(self) -> str:
        """The same for people."""
        heavy = " This is much: draw more cells." if self.noise > NOISY else ""
        return (
            f"The fit is approximate: {self.visited:,} of {self.cells:,} cells were visited and stand for all. "
            f"This adds to a margin at most {self.noise:.0%} of its sampling error; the least certain one has an "
            f"effective sample of {self.effective_size:,.0f} cells.{heavy}"
        )


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
    cells
        The admissible cells of the levels that occur.
    observed
        The margins of all records, in the order of the fit's design.
    """

    steps: tuple[LassoStep, ...]
    chosen: int
    unscored: int
    fitted: PenalisedFit = field(repr=False)
    cells: int
    observed: Vector = field(repr=False)

    @cached_property
    def approximation(self) -> Approximation | None:
        """How many cells stood for how many, and what that adds to the error; None if all were visited."""
        return Approximation.of(self.fitted, self.observed, self.cells)

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
        beside = [self.steps[near] for near in (self.chosen - 1, self.chosen + 1) if 0 <= near < len(self.steps)]
        here = self.steps[self.chosen].tau1
        if any(abs(step.tau1 - here) > max(FAR * max(step.tau1, here), 1.0) for step in beside):
            found.append(
                "tau1 of a penalty beside the chosen one differs by more than half: try more of them (lambdas)."
            )
        loose = sum(not step.converged for step in self.steps)
        if loose:
            found.append(f"Fits with {loose} of {len(self.steps)} penalties did not converge.")
        if self.approximation is not None:
            found.append(self.approximation.words)
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
        mean = fit.fitted[places] * multiplier(sample)
        tau1, tau2 = float(np.exp(-mean).sum()), float(special.exprel(-mean).sum())
        nonzero = sum(int(np.count_nonzero(fit.coefficients((a, b)))) for a, b in fit.pairs)
        pairs = len(fit.pairs)
        return cls(fit.penalty, fit.effects, tau1, tau2, pairs, nonzero, fit.violation, [fit.converged], [])


def choose(tried: list[Tried], sizes: Vector, rule: Rule) -> tuple[tuple[LassoStep, ...], int]:
    """The steps of the path with their scores, and the position of the chosen one."""
    scores = np.array([step.scores for step in tried])
    mean = scores.sum(axis=1) / max(float(sizes.sum()), 1.0)
    best = int(np.argmax(mean))
    deficit = (scores - scores[best]) / np.maximum(sizes, 1.0)
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
