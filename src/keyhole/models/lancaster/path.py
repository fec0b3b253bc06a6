"""The whole path from independence to the full additive model: what each lambda says, how well it foretells."""

from dataclasses import dataclass

import numpy as np

from keyhole.arrays import IntVector, Vector
from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.models.lancaster.held_out import HeldOut
from keyhole.models.lancaster.renormaliser import Renormaliser

STEP = 0.05
"""Between neighbouring lambda of the path."""

TOLD = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""The lambda that are told in words, those of Takemura's table."""


def shrinkage_grid(chosen: float | None = None) -> Vector:
    """0, 0.05, ..., 1, and the lambda that the user gave.

    Examples
    --------
    >>> len(shrinkage_grid()), len(shrinkage_grid(0.33)), len(shrinkage_grid(0.35))
    (21, 22, 21)
    """
    steps = round(1 / STEP)
    grid = np.arange(steps + 1) / steps
    return grid if chosen is None else np.unique(np.append(grid, np.float64(chosen)))


@dataclass(frozen=True, eq=False)
class LancasterPath:
    """One entry per lambda.

    Attributes
    ----------
    shrinkage
        lambda.
    renormaliser
        c(lambda), with its standard error if cells were sampled, and the sum of negative p.
    held_out
        The log score of held-out records and the share of them in cells without probability.
    tau1, tau2
        With p / c.
    tau1_plain, tau2_plain
        With negative p set to zero and nothing renormalised.
    without_probability
        The number of sample uniques with p <= 0.
    """

    shrinkage: Vector
    renormaliser: Renormaliser
    held_out: HeldOut
    tau1: Vector
    tau2: Vector
    tau1_plain: Vector
    tau2_plain: Vector
    without_probability: IntVector

    def place(self, shrinkage: float) -> int:
        """The place of a lambda of the path."""
        return int(np.abs(self.shrinkage - shrinkage).argmin())

    def as_model_path(self, chosen: float, *, given: bool) -> ModelPath:
        """The path in the terms that all models share."""
        c, held_out = self.renormaliser, self.held_out
        steps = tuple(
            PathStep(
                f"lambda = {shrinkage:g}",
                float(shrinkage),
                float(self.tau1[g]),
                float(self.tau2[g]),
                {
                    "held_out_score": float(held_out.score[g]),
                    "held_out_without_probability": float(held_out.missed[g]),
                    "renormaliser": float(c.value[g]),
                    "negative_probability": float(c.negative[g]),
                    "tau1_not_renormalised": float(self.tau1_plain[g]),
                    "tau2_not_renormalised": float(self.tau2_plain[g]),
                },
            )
            for g, shrinkage in enumerate(self.shrinkage)
        )
        return ModelPath("lambda", steps, self.place(chosen), given)

    def in_words(self) -> str:
        """The path at a few lambda, in one sentence."""
        told = [self.place(shrinkage) for shrinkage in TOLD]
        at = ", ".join(f"{self.shrinkage[g]:.1f}" for g in told)
        tau1 = ", ".join(f"{self.tau1[g]:.1f}" for g in told)
        plain = ", ".join(f"{self.tau1_plain[g]:.1f}" for g in told)
        c = ", ".join(f"{self.renormaliser.value[g]:.3f}" for g in told)
        score = ", ".join(f"{self.held_out.score[g]:.3f}" for g in told)
        return (
            f"At lambda {at}: tau1 {tau1} (not renormalised {plain}), c(lambda) {c}, "
            f"mean log probability of a held-out record {score}."
        )
