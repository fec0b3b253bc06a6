"""How many profiles: short runs with a few numbers of them, judged by how well records predict each other.

What each number says of the risk is kept as a path: where tau1 no longer changes with more profiles the answer
does not depend on their number (Manrique-Vallier & Reiter 2012, section 4).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from numpy.random import Generator

from keyhole.inference.chain import Watched
from keyhole.inference.chains import run_chains
from keyhole.inference.fit import Diagnostic
from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.inference.sampled_fit import SampledFit
from keyhole.inference.schedule import Schedule
from keyhole.models.membership.fitting import EVERY, records_of
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

TRIED = (2, 3, 5, 8, 12, 20, 30, 50, 80)
"""Numbers of profiles that are tried, in this order, until two in a row are no better."""

SHORT = Schedule(chains=2, target_ess=1e9, most_sweeps=400)

PATIENCE = 2


@dataclass(frozen=True, eq=False)
class ChosenFit(SampledFit):
    """A fit with the number of profiles that was chosen, and what the others said in short runs."""

    path: ModelPath = field(kw_only=True, repr=False)


@dataclass(frozen=True)
class Tried:
    """What a short run with so many profiles said."""

    tau1: float
    tau2: float
    score: float

    @classmethod
    def of(cls, fit: SampledFit) -> "Tried":
        tau1, tau2 = (float(fit.weights @ fit.chains.values(name).mean(axis=1)) for name in ("tau1", "tau2"))
        return cls(tau1, tau2, fit.log_score)


@dataclass(frozen=True)
class Choice:
    """The number of profiles with the best score, and all that were tried."""

    components: int
    tried: dict[int, Tried]

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
        more = " More may be better still: set components." if at_end else ""
        words = (
            f"{self.components} profiles predict records best from the others (mean log score of {told}).{more}"
        )
        return (Diagnostic("components", self.components, "caution" if at_end else "good", words),)


def choose_components(
    sampler: Callable[[int], MembershipSampler],
    sample: Sample,
    *,
    max_seconds: float,
    rng: Generator,
    progress: Progress,
) -> Choice:
    """The best number of profiles by the leave-one-out log score; with a time limit the tries take half of it."""
    tried: dict[int, Tried] = {}
    limit = max_seconds / (2 * len(TRIED)) or None
    schedule = Schedule(SHORT.chains, None, SHORT.target_ess, limit, SHORT.most_sweeps)
    for done, number in enumerate(TRIED):
        progress("numbers of profiles", done, len(TRIED))
        chains = run_chains(
            sampler(number), records_of(sample), Watched(sample, EVERY), schedule, rng=rng, progress=silent
        )
        tried[number] = Tried.of(SampledFit(sample, chains))
        best = max(tried, key=lambda one: tried[one].score)
        if sum(one > best for one in tried) >= PATIENCE:
            break
    return Choice(best, tried)
