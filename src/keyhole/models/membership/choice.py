"""How many profiles: short runs with a few numbers of them, judged by how well records predict each other."""

from collections.abc import Callable
from dataclasses import dataclass

from numpy.random import Generator

from keyhole.inference.chain import Watched
from keyhole.inference.chains import run_chains
from keyhole.inference.fit import Diagnostic
from keyhole.inference.sampled_fit import SampledFit
from keyhole.inference.schedule import Schedule
from keyhole.models.membership.fitting import EVERY, records_of
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

TRIED = (2, 3, 5, 8, 12, 20)
"""Numbers of profiles that are tried, in this order, until two in a row are no better."""

SHORT = Schedule(chains=2, target_ess=1e9, most_sweeps=400)

PATIENCE = 2


@dataclass(frozen=True)
class Choice:
    """The number of profiles with the best score, and the scores of all that were tried."""

    components: int
    scores: dict[int, float]

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        told = ", ".join(f"{number}: {score:.4f}" for number, score in self.scores.items())
        last = max(self.scores)
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
    scores: dict[int, float] = {}
    limit = max_seconds / (2 * len(TRIED)) or None
    schedule = Schedule(SHORT.chains, None, SHORT.target_ess, limit, SHORT.most_sweeps)
    for done, number in enumerate(TRIED):
        progress("numbers of profiles", done, len(TRIED))
        chains = run_chains(
            sampler(number), records_of(sample), Watched(sample, EVERY), schedule, rng=rng, progress=silent
        )
        scores[number] = SampledFit(sample, chains).log_score
        best = max(scores, key=lambda one: scores[one])
        if sum(one > best for one in scores) >= PATIENCE:
            break
    return Choice(best, scores)
