"""A fit made of posterior draws: their laws, and what is to be said of the chains that made them."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import IntVector, Vector
from keyhole.inference.cell_law import CellLaw, MultinomialCells
from keyhole.inference.chains import Chains
from keyhole.inference.convergence import AGREE, FEWEST_ESS, NEARLY, Convergence
from keyhole.inference.fit import Diagnostic, Verdict
from keyhole.inference.other_samples import mean_cells
from keyhole.inference.stacking import leave_one_out, stacking_weights
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts

MATCHED_LAWS = 200
"""Laws over which the match of every record is averaged, at most twice as many."""

ENDINGS = {
    "time": "The time limit ended the run",
    "limit": "The limit of sweeps ended the run",
    "interrupted": "The run was interrupted",
}


@dataclass(frozen=True, eq=False)
class SampledFit:
    """Posterior draws of the cells' probabilities.

    Attributes
    ----------
    remarks
        What the model itself has to say of its fit.
    law
        What probabilities of cells say of the unsampled counts.
    leaves_out
        What the interval of tau does not account for, in words.
    another
        The counts of the cells of another sample, given a state, which may change; None if there is no such.
    """

    sample: Sample
    chains: Chains[Any]
    remarks: tuple[Diagnostic, ...] = field(default=())
    law: CellLaw = field(default=MultinomialCells())
    leaves_out: str = ""
    another: Callable[[Any, Generator], IntVector] | None = field(default=None, repr=False)

    @property
    def interval_leaves_out(self) -> str:
        return self.leaves_out

    @property
    def effective_draws(self) -> float:
        return max(min(self.convergence[name].ess for name in ("tau1", "tau2")), 1.0)

    @cached_property
    def convergence(self) -> dict[str, Convergence]:
        return {name: self.chains.convergence(name) for name in ("tau1", "tau2")}

    @property
    def modes_differ(self) -> bool:
        """Whether chains are seen to disagree so much that they cannot be averaged as they are."""
        judged = [one.rhat for one in self.convergence.values() if one.enough]
        return len(self.chains.chains) > 1 and max(judged, default=0.0) > NEARLY

    @cached_property
    def log_densities(self) -> Vector:
        """log p(x_i | x_-i) by chain and occupied cell."""
        return np.array([leave_one_out(laws) for laws in self.chains.laws])

    @cached_property
    def weights(self) -> Vector:
        """What each chain counts for: alike where they agree, by stacking where they do not."""
        chains = len(self.chains.chains)
        if not self.modes_differ:
            return np.full(chains, 1.0 / chains)
        return stacking_weights(self.log_densities, self.sample.table.counts)

    @cached_property
    def log_by_cell(self) -> Vector:
        """log p(x_i | x_-i) by occupied cell, over all chains."""
        return np.asarray(np.log(np.maximum(self.weights @ np.exp(self.log_densities), 1e-300)))

    @cached_property
    def log_score(self) -> float:
        """The mean log probability of a record given the others."""
        return float(self.sample.table.counts @ self.log_by_cell / self.sample.table.records)

    def _draws(self) -> list[NDArray[np.float32]]:
        """The kept laws, as many of each chain as it counts for, chains taking turns."""
        kept = self.chains.laws
        share = self.weights / self.weights.max()
        numbers = [max(round(len(laws) * part), 1) for laws, part in zip(kept, share, strict=True) if part > 0.01]
        used = [laws for laws, part in zip(kept, share, strict=True) if part > 0.01]
        spread = [
            [laws[i] for i in np.linspace(0, len(laws) - 1, number).round().astype(int)]
            for laws, number in zip(used, numbers, strict=True)
        ]
        order = sorted(
            ((i + 0.5) / len(laws), chain, i) for chain, laws in enumerate(spread) for i in range(len(laws))
        )
        return [spread[chain][i] for _, chain, i in order]

    def unsampled(self) -> Iterator[UnsampledCounts]:
        """One law per kept draw."""
        unique = self.sample.table.uniques
        for law in self._draws():
            yield self.law.unsampled(law[unique].astype(np.float64), self.sample.unsampled_size)

    def expected_cells(self, sizes: IntVector, rng: Generator) -> Vector | None:
        """Cells with so many records each in other samples, drawn given the last states of the chains."""
        if self.another is None:
            return None
        redrawn, chains = self.another, self.chains.chains

        def another(own: Generator) -> IntVector:
            chain = chains[own.choice(len(chains), p=self.weights)]
            return redrawn(deepcopy(chain.state), own)

        return mean_cells(another, sizes, self.sample.sample_size, rng)

    def draws(self) -> dict[str, Vector]:
        """The watched numbers by chain and look, after the warm-up."""
        return {name: self.chains.values(name) for name in self.chains.chains[0].values}

    def mean_match_all(self) -> Vector:
        """E(1/F | f) of each occupied cell."""
        draws = self._draws()[:: max(len(self._draws()) // MATCHED_LAWS, 1)]
        counts, people = self.sample.table.counts, self.sample.unsampled_size
        total = np.zeros(len(counts))
        for law in draws:
            total += self.law.mean_match(counts, law.astype(np.float64), people)
        return total / len(draws)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (*self._of_chains(), *self.remarks)

    def _of_chains(self) -> Iterator[Diagnostic]:
        chains = self.chains
        yield _side_by_side(len(chains.chains))
        yield Diagnostic("sweeps", chains.sweeps, "good", f"Each chain made {chains.sweeps:,} sweeps.")
        if chains.ending != "converged":
            early = "" if chains.converged else " before it converged"
            yield Diagnostic("ending", chains.ending, "caution", f"{ENDINGS[chains.ending]}{early}.")
        for name, found in self.convergence.items():
            who = "Chains from opposite starts" if len(chains.chains) > 1 else "The halves of the one chain"
            yield Diagnostic(f"rhat_{name}", found.rhat, _agreement(found.rhat), _in_words(who, name, found))
            worth = _worth(found.ess, chains.schedule.target_ess)
            yield Diagnostic(f"ess_{name}", found.ess, worth, _worth_in_words(name, found))
        if self.modes_differ:
            worst = max(self.convergence, key=lambda name: self.convergence[name].rhat)
            yield Diagnostic(
                "modes",
                len(chains.chains),
                "untrusted",
                f"Chains have not met: {_apart(worst, chains.values(worst).mean(axis=1))}; they are weighed by "
                "how well each predicts records it has not seen.",
            )


def _agreement(rhat: float) -> Verdict:
    return "good" if rhat < AGREE else "caution" if rhat < NEARLY else "untrusted"


def _side_by_side(chains: int) -> Diagnostic:
    if chains > 1:
        return Diagnostic("chains", chains, "good", f"{chains} chains ran side by side.")
    words = "Only one chain ran: nothing shows that another, from elsewhere, would agree."
    return Diagnostic("chains", chains, "caution", words)


def _apart(name: str, means: Vector) -> str:
    """Where chains are, with the decimals that it takes to see that they are apart.

    Examples
    --------
    >>> _apart("tau1", np.array([1204.0, 1250.0])), _apart("tau2", np.array([4.31, 4.27]))
    ('the mean of tau1 is from 1,204 to 1,250 by chain', 'the mean of tau2 is from 4.27 to 4.31 by chain')
    >>> _apart("tau1", np.array([4.0, 4.0]))
    'tau1 varies in them differently about the same mean'
    >>> _apart("tau1", np.array([4.0, np.nan]))
    'tau1 is not a number in some of them'
    """
    if not np.isfinite(means).all():
        return f"{name} is not a number in some of them"
    low, high = float(means.min()), float(means.max())
    for decimals in (0, 1, 2):
        # A difference of one in the last figure may be rounding.
        if round(high, decimals) - round(low, decimals) > 1.5 * 10**-decimals:
            return f"the mean of {name} is from {low:,.{decimals}f} to {high:,.{decimals}f} by chain"
    return f"{name} varies in them differently about the same mean"


def _in_words(who: str, name: str, found: Convergence) -> str:
    if not found.enough:
        return f"There are too few draws to judge whether {who[0].lower()}{who[1:]} agree on {name}."
    if found.rhat < AGREE:
        return f"{who} agree on {name} (R-hat {rhat_in_figures(found.rhat)})."
    return f"{who} do not agree on {name} well enough (R-hat {rhat_in_figures(found.rhat)})."


def rhat_in_figures(rhat: float) -> str:
    """R-hat with the decimals that it takes to see on which side of what is asked for it is.

    Examples
    --------
    >>> [rhat_in_figures(rhat) for rhat in (1.0021, 1.0098, 1.00997, 1.0102, 1.2, float("inf"))]
    ['1.002', '1.0098', '1.00997', '1.0102', '1.200', 'infinite']
    """
    if not np.isfinite(rhat):
        return "infinite"
    return next((told for decimals in (3, 4, 5) if float(told := f"{rhat:.{decimals}f}") != AGREE), f"{rhat:.6f}")


def _worth(ess: float, target: float) -> Verdict:
    return "good" if ess >= target else "caution" if ess >= FEWEST_ESS else "untrusted"


def _worth_in_words(name: str, found: Convergence) -> str:
    if not found.enough:
        return f"There are too few draws of {name} to say what they are worth."
    return f"The draws of {name} are worth {found.ess:,.0f} independent ones."
