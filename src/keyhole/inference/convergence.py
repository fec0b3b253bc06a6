"""Do chains agree, and how much are they worth? R-hat and effective draws of tau1 and tau2 themselves."""

from dataclasses import dataclass

import numpy as np

from keyhole.arrays import Vector

AGREE, NEARLY = 1.01, 1.05
"""R-hat below which chains agree, and above which a result is not to be trusted."""

FEWEST_ESS = 100.0
"""Effective draws below which a result is not to be trusted."""

TAILS = (0.05, 0.95)
"""Where tails begin (Vehtari et al. 2021, section 4.3)."""

EXACT = 1e9
"""Effective draws of a number that does not vary."""

FEWEST_VALUES = 8
"""Values of a chain below which nothing is said of it."""


@dataclass(frozen=True, slots=True)
class Convergence:
    """Of one watched number: the rank-normalised split R-hat, and what its draws are worth.

    Attributes
    ----------
    ess
        The smaller of the bulk and the tail effective sample sizes: means and the ends of intervals both hold.
    enough
        Whether there were values enough to judge; without them R-hat is infinite and the draws are worth nothing.
    """

    rhat: float
    ess: float
    enough: bool = True

    @classmethod
    def of(cls, values: Vector) -> "Convergence":
        """From values by chain and draw (Vehtari et al. 2021, *Bayesian Analysis* 16)."""
        if len(values) == 1:  # its two halves
            values = values[:, values.shape[1] % 2 :].reshape(2, -1)
        if values.shape[1] < FEWEST_VALUES:
            return cls(float("inf"), 0.0, enough=False)
        if not np.isfinite(values).all():
            return cls(float("inf"), 0.0)
        if np.ptp(values) <= 1e-9 * np.abs(values).max():
            return cls(1.0, EXACT)  # a number that cannot vary is known
        # Imported here: it takes a second, which runs without chains should not pay.
        from arviz_stats.base import array_stats  # type: ignore[attr-defined]

        rhat = array_stats.rhat(values, chain_axis=0, draw_axis=1, method="rank")  # type: ignore[no-untyped-call]
        worth = [
            float(array_stats.ess(values, chain_axis=0, draw_axis=1, method=method, **more))  # type: ignore[no-untyped-call]
            for method, more in (("bulk", {}), ("tail", {"prob": TAILS}))
        ]
        return cls(float(np.nan_to_num(rhat, nan=np.inf)), float(np.nan_to_num(min(worth), nan=0.0)))
