"""The models of a forward search, what each says of the risk, and what should be known of the chosen one."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import special

from keyhole.arrays import Vector
from keyhole.inference.formula import Generators
from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.models.loglinear.ipf import Fitted

Term = tuple[int, ...]
Criterion = Literal["b1", "b2"]
Ending = Literal["no evidence of underfitting", "nothing improves", "nothing left to add"]

SIGNIFICANT = 1.645
"""The one-sided 5% point of the normal law."""


@dataclass(frozen=True, slots=True)
class Step:
    """One model of the path.

    Attributes
    ----------
    term
        The keys of the term that was added; empty for independence.
    tau1, tau2
        The estimates.
    b1, b2
        Their biases in standard deviations.
    terms
        The generators of the model.
    converged
        Whether its fit converged.
    sd1, sd2
        Standard deviations of tau1 and tau2 in the population if the fitted means are right.
    """

    term: Term
    tau1: float
    tau2: float
    b1: float
    b2: float
    terms: Generators
    converged: bool
    sd1: float
    sd2: float

    def disagrees(self, other: "Step") -> bool:
        """Whether the 95% intervals of tau1, or those of tau2, are apart."""
        return abs(self.tau1 - other.tau1) > 1.96 * (self.sd1 + other.sd1) or abs(
            self.tau2 - other.tau2
        ) > 1.96 * (self.sd2 + other.sd2)


@dataclass(frozen=True, eq=False)
class SearchPath:
    """The models of a search, the one that was chosen, and its fit.

    Attributes
    ----------
    steps
        Independence, then one step for each term added, those beyond the choice included.
    chosen
        The position of the chosen model.
    criterion
        The statistic the search went by.
    ending
        Why it stopped where it did.
    fitted
        The fit of the chosen model.
    names
        The names of the keys.
    """

    steps: tuple[Step, ...]
    chosen: int
    criterion: Criterion
    ending: Ending
    fitted: Fitted = field(repr=False)
    names: tuple[str, ...]

    @property
    def jumps(self) -> tuple[int, ...]:
        """Positions of models that disagree with the one before by more than their intervals."""
        return tuple(i for i in range(1, len(self.steps)) if self.steps[i].disagrees(self.steps[i - 1]))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be known before the chosen model is believed."""
        found = []
        statistic = getattr(self.steps[self.chosen], self.criterion)
        if statistic > SIGNIFICANT:
            found.append(
                f"The search ended because {_WHY[self.ending]}, with a bias of {statistic:.1f} standard "
                "deviations: the chosen model has too few terms and overstates risk."
            )
        elif statistic < -SIGNIFICANT:
            found.append(
                f"The chosen model may follow the sample too closely and understate risk: its bias is "
                f"{statistic:.1f} standard deviations."
            )
        for i in self.jumps:
            if i in (self.chosen, self.chosen + 1):
                before, after = self.steps[i - 1], self.steps[i]
                found.append(
                    "Neighbouring models disagree by more than their intervals: with "
                    f"{self._label(after.term)} added tau1 goes from {before.tau1:.1f} to {after.tau1:.1f} and "
                    f"tau2 from {before.tau2:.1f} to {after.tau2:.1f}."
                )
        loose = [i for i, tried in enumerate(self.steps) if not tried.converged]
        if loose:
            found.append(f"The fits of {len(loose)} of {len(self.steps)} models of the path did not converge.")
        return tuple(found)

    @property
    def model_path(self) -> ModelPath:
        """The path for people to read."""
        return ModelPath(
            "term added",
            tuple(
                PathStep(
                    self._label(step.term),
                    None,
                    step.tau1,
                    step.tau2,
                    {"b1": step.b1, "b2": step.b2, "sd_tau1": step.sd1, "sd_tau2": step.sd2},
                )
                for step in self.steps
            ),
            self.chosen,
        )

    def _label(self, term: Term) -> str:
        return "*".join(self.names[key] for key in term) if term else "independence"


_WHY: dict[Ending, str] = {
    "no evidence of underfitting": "the bias is below the threshold",
    "nothing improves": "no term brings the estimated bias nearer to zero",
    "nothing left to add": "there is no term left to add",
}


def spread_of_risk(mean: Vector) -> tuple[float, float]:
    r"""Standard deviations of tau1 and tau2 if U is Poisson with these means in the sample uniques.

    .. math:: E (1 + U)^{-2} = \frac{e^{-\mu}}{\mu} \sum_{j \ge 1} \frac{\mu^j}{j! \, j}
              = \frac{e^{-\mu}}{\mu} (\mathrm{Ei}(\mu) - \gamma - \log\mu)

    Examples
    --------
    >>> spread_of_risk(np.array([0.0]))
    (0.0, 0.0)
    """
    r1, r2 = np.exp(-mean), special.exprel(-mean)
    near, far = np.clip(mean, 1e-3, 50.0), np.maximum(mean, 50.0)
    square = np.where(
        mean < 50.0,
        np.exp(-near) / near * (special.expi(near) - np.euler_gamma - np.log(near)),
        sum(special.factorial(k) / far ** (k + 2) for k in range(10)),
    )
    # To second order in mu: E(1 + U)^-2 = 1 - 3 mu/4 + 11 mu^2/36.
    square = np.where(mean < 1e-3, 1.0 - mean * (3 / 4 - 11 / 36 * mean), square)
    return float(np.sqrt((r1 * (1.0 - r1)).sum())), float(np.sqrt(np.maximum(square - r2 * r2, 0.0).sum()))
