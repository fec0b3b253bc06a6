"""The two mixed membership models as risk models: settings and fit."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import cast

from numpy.random import Generator

from keyhole.errors import UnknownModel
from keyhole.inference.chain_settings import ChainSettings
from keyhole.inference.fit import Diagnostic
from keyhole.inference.ignored_weights import ignored_weights
from keyhole.inference.sampled_fit import SampledFit
from keyhole.inference.schedule import Schedule
from keyhole.inference.track_record import UNTRIED
from keyhole.models.membership.choice import ChosenFit, choose_components
from keyhole.models.membership.fitting import fit_sampler
from keyhole.models.membership.level_prior import PRIORS, Prior
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.numerics.concentration import GammaPrior
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

MOST_COMPONENTS = 1000

LEAST = 0.05
"""Smallest parameter of a gamma prior: below it nearly all of its mass is where numbers cannot be told from 0."""


@dataclass(frozen=True)
class _Membership(ChainSettings, ABC):
    """What both models can be told beside how long chains run: priors."""

    prior: str = "marginal"
    alpha_shape: float = 2.0
    alpha_rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior not in PRIORS:
            raise UnknownModel(f"The option prior must be {' or '.join(PRIORS)}, found {self.prior!r}.")
        for option in ("alpha_shape", "alpha_rate", "alpha0_shape", "alpha0_rate"):
            if not LEAST <= getattr(self, option, 1.0) < inf:
                raise UnknownModel(f"The option {option} must be at least {LEAST}, found {getattr(self, option)}.")

    def _sampler(self, sample: Sample, components: int, above: GammaPrior) -> MembershipSampler:
        prior, own = cast(Prior, self.prior), GammaPrior(self.alpha_shape, self.alpha_rate)
        return MembershipSampler(sample.table.levels, components, prior, own, above, sample.zeros)

    def _fit(
        self,
        sampler: MembershipSampler,
        sample: Sample,
        schedule: Schedule,
        remarks: tuple[Diagnostic, ...],
        rng: Generator,
        progress: Progress,
    ) -> SampledFit:
        checkpoint = self.checkpoint_of(f"{self.name}.{sampler.components or 'any'}", sample, rng)
        return fit_sampler(sampler, sample, schedule, remarks, checkpoint, rng=rng, progress=progress)

    @property
    @abstractmethod
    def name(self) -> str:
        """What the user types."""


@dataclass(frozen=True)
class GradeOfMembership(_Membership):
    r"""Profiles in fixed number; each key of a record comes from one of them, in shares of the record's own.

    .. math:: p(x) = E \prod_j \sum_k g_k\,\theta_{jk}[x_j], \qquad g \sim \mathrm{Dirichlet}(\alpha g_0)

    Parameters
    ----------
    components
        The number of profiles; 0 to choose it by how well records are predicted from the others.
    prior
        ``marginal`` learns how frequent levels are in new profiles, ``uniform`` takes them as alike, as the paper.
    alpha_shape, alpha_rate
        The Gamma prior of alpha.
    chains, warmup, target_ess, max_seconds, most_sweeps, checkpoint
        How chains run (see ``ChainSettings``).

    References
    ----------
    Manrique-Vallier & Reiter (2012), *Journal of the American Statistical Association* 107.
    """

    components: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.components <= MOST_COMPONENTS:
            raise UnknownModel(
                f"The option components must be from 0 to {MOST_COMPONENTS:,}, found {self.components}."
            )

    @property
    def name(self) -> str:
        return "gom"

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> SampledFit:
        _check(sample)

        def of(number: int) -> MembershipSampler:
            return self._sampler(sample, number, GammaPrior())

        if self.components:
            return self._fit(of(self.components), sample, self.schedule, (), rng, progress)
        choice = choose_components(
            of,
            sample,
            max_seconds=self.max_seconds,
            rng=rng,
            progress=progress,
            kept=self.checkpoint_of(f"{self.name}.choice", sample, rng),
            kept_try=lambda number: self.checkpoint_of(f"{self.name}.try-{number}", sample, rng),
        )
        if choice.interrupted is not None:
            remarks = (*choice.remarks, *ignored_weights(sample), UNTRIED)
            return ChosenFit(sample, choice.interrupted, remarks, path=choice.path)
        left = self.schedule.after(choice.seconds)  # the limit is for sampling, as it is within a run
        found = self._fit(of(choice.components), sample, left, choice.remarks, rng, progress)
        return ChosenFit(found.sample, found.chains, found.remarks, path=choice.path)


@dataclass(frozen=True)
class HierarchicalMembership(_Membership):
    r"""As many profiles as the records ask for: the hierarchical Dirichlet process.

    .. math:: g_i \sim \mathrm{DP}(\alpha_i, g_0), \qquad g_0 \sim \mathrm{GEM}(\alpha_0)

    Parameters
    ----------
    prior
        ``marginal`` learns how frequent levels are in new profiles, ``uniform`` takes them as alike, as the paper.
    alpha_shape, alpha_rate
        The Gamma prior of each record's alpha.
    alpha0_shape, alpha0_rate
        The Gamma prior of alpha_0.
    chains, warmup, target_ess, max_seconds, most_sweeps, checkpoint
        How chains run (see ``ChainSettings``).

    References
    ----------
    Battiston & Rimella, Disclosure risk assessment with Bayesian non-parametric hierarchical modelling.
    """

    alpha0_shape: float = 2.0
    alpha0_rate: float = 1.0

    @property
    def name(self) -> str:
        return "hdp"

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> SampledFit:
        _check(sample)
        sampler = self._sampler(sample, 0, GammaPrior(self.alpha0_shape, self.alpha0_rate))
        return self._fit(sampler, sample, self.schedule, (), rng, progress)


def _check(sample: Sample) -> None:
    if sample.zeros is not None:
        sample.zeros.check(sample.table)
