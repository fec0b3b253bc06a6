"""How many profiles: short runs with a few numbers of them, judged by how well records predict each other.

What each number says of the risk is kept as a path: where tau1 no longer changes with more profiles the answer
does not depend on their number (Manrique-Vallier & Reiter 2012, section 4).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator

from keyhole.errors import FitFailed
from keyhole.inference.chain import Watched
from keyhole.inference.chains import Chains, run_chains
from keyhole.inference.checkpoint import Checkpoint
from keyhole.inference.fit import Diagnostic
from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.inference.sampled_fit import SampledFit
from keyhole.inference.schedule import Schedule
from keyhole.models.membership.fitting import records_of
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.models.membership.state import Memberships
from keyhole.population.sample import Sample
from keyhole.progress import Progress

TRIED = (2, 3, 5, 8, 12, 20, 30, 50, 80)
"""Numbers of profiles that are tried, in this order, until two in a row are no better."""

SHORT = Schedule(chains=2, target_ess=1e9, most_sweeps=600)
LOOKS = 10
"""A try, and the sweeps between two looks at its cells."""

PATIENCE = 2


@dataclass(frozen=True, eq=False)
class ChosenFit(SampledFit):
    """A fit with the number of profiles that was chosen, and what the others said in short runs."""

    path: ModelPath = field(kw_only=True, repr=False)


@dataclass(frozen=True)
class Tried:
    """What a short run with so many profiles said.

    Attributes
    ----------
    score
        The mean log probability of a record given the others.
    behind
        The standard error of the difference to the best score; 0 for the best.
    """

    tau1: float
    tau2: float
    score: float
    behind: float = 0.0

    @classmethod
    def of(cls, fit: SampledFit) -> "Tried":
        tau1, tau2 = (float(fit.weights @ fit.chains.values(name).mean(axis=1)) for name in ("tau1", "tau2"))
        return cls(tau1, tau2, fit.log_score)


@dataclass(frozen=True)
class Choice:
    """The number of profiles with the best score, and all that were tried.

    Attributes
    ----------
    interrupted
        The best run, where somebody stopped the tries.
    failed
        Why no more were tried, where the next one failed.
    seconds
        How long the tries sampled.
    """

    components: int
    tried: dict[int, Tried]
    interrupted: Chains[Memberships] | None = field(default=None, repr=False)
    failed: str = ""
    seconds: float = 0.0

    @property
    def path(self) -> ModelPath:
        """Risk and score by the number of profiles."""
        steps = tuple(
            PathStep(f"{number} profiles", number, one.tau1, one.tau2, {"log_score": one.score})
            for number, one in self.tried.items()
        )
        return ModelPath("number of profiles", steps, list(self.tried).index(self.components))

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        told = ", ".join(f"{number}: {one.score:.4f}" for number, one in self.tried.items())
        last = max(self.tried)
        at_end = self.components == last and last == TRIED[-1]
        best = self.tried[self.components]
        alike = [
            f"{number} (tau1 about {one.tau1:,.0f})"
            for number, one in self.tried.items()
            if number != self.components and best.score - one.score < one.behind
        ]
        words = f"{self.components} profiles predict records best from the others (mean log score of {told})."
        if alike:
            words += f" Not told apart from it, with tau1 about {best.tau1:,.0f}, are {', '.join(alike)}."
        if at_end:
            words += " More may be better still: set components."
        stopped = self.interrupted is not None
        if stopped:
            words += " The tries were interrupted."
        if self.failed:
            words += f" More could not be tried. {self.failed}"
        doubtful = at_end or stopped or bool(self.failed)
        return (Diagnostic("components", self.components, "caution" if doubtful else "good", words),)


def choose_components(
    sampler: Callable[[int], MembershipSampler],
    sample: Sample,
    *,
    max_seconds: float,
    rng: Generator,
    progress: Progress,
    kept: Checkpoint | None = None,
    kept_try: Callable[[int], Checkpoint | None] = lambda number: None,
) -> Choice:
    """The best number of profiles by the leave-one-out log score; with a time limit the tries take half of it.

    A choice that was ``kept`` is taken as it is, so that a resumed run goes on with the same chains. Before there
    is one each try is kept. One that was interrupted says too little to be compared with others.
    """
    before = None if kept is None else kept.kept()
    if before is not None:
        made = len(before["tried"]) + bool(before["failed"])
        rng.spawn(SHORT.chains * made)  # so that what follows has the streams it had
        known = {int(number): Tried(*one) for number, one in before["tried"].items()}
        return Choice(before["components"], known, failed=before["failed"])
    fits: dict[int, SampledFit] = {}
    limit = max_seconds / (2 * len(TRIED)) or None
    schedule = Schedule(SHORT.chains, None, SHORT.target_ess, limit, SHORT.most_sweeps)
    stopped, failed = False, ""
    for number in TRIED:
        try:
            chains = run_chains(
                sampler(number),
                records_of(sample),
                Watched(sample, LOOKS),
                schedule,
                rng=rng,
                progress=_trying(number, progress),
                checkpoint=kept_try(number),
            )
        except (FitFailed, KeyboardInterrupt) as error:
            if not fits:
                raise
            stopped = isinstance(error, KeyboardInterrupt)
            failed = "" if stopped else str(error)
            break
        stopped = chains.ending == "interrupted"
        if stopped and fits:
            break
        fits[number] = SampledFit(sample, chains)
        best = max(fits, key=lambda one: fits[one].log_score)
        if stopped or sum(one > best for one in fits) >= PATIENCE:
            break
    best = max(fits, key=lambda one: fits[one].log_score)
    tried = {number: replace(Tried.of(fit), behind=_error(fit, fits[best])) for number, fit in fits.items()}
    if kept is not None and not stopped:
        told = {number: [one.tau1, one.tau2, one.score, one.behind] for number, one in tried.items()}
        kept.keep({"components": best, "tried": told, "failed": failed})
        for own in filter(None, map(kept_try, TRIED)):
            own.path.unlink(missing_ok=True)  # the choice is all that is needed of them
    interrupted = replace(fits[best].chains, ending="interrupted") if stopped else None
    return Choice(best, tried, interrupted, failed, sum(fit.chains.seconds for fit in fits.values()))


def _trying(number: int, progress: Progress) -> Progress:
    def told(task: str, done: int, total: int | None = None, note: str = "") -> None:
        progress(f"trying {number} profiles: {task}", done, total, note)

    return told


def _error(one: SampledFit, best: SampledFit) -> float:
    """The standard error of the difference of two mean scores, record by record."""
    counts = one.sample.table.counts
    apart = one.log_by_cell - best.log_by_cell
    mean = counts @ apart / counts.sum()
    return float(np.sqrt(counts @ (apart - mean) ** 2) / counts.sum())
