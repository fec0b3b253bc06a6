"""The individual-risk estimator of Benedetti and Franconi: one negative binomial law per combination."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.numerics.negative_binomial_match import negative_binomial_match
from keyhole.population.negative_binomial import NegativeBinomialUnsampled
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

RECORD = TrackRecord(-99, -67, covered=0, samples=18)
"""Without weights, which these samples do not have."""


@dataclass(frozen=True)
class BenedettiFranconi:
    r"""F given f is negative binomial with the inclusion probability that the survey weights suggest.

    .. math:: P(F = h \mid f) = \binom{h - 1}{f - 1} p^f (1 - p)^{h - f}, \qquad
              \hat p_c = f_c \Big/ \sum_{i \in c} w_i

    For a sample unique U is geometric: :math:`r_1 = p`, :math:`r_2 = -p \log p / (1 - p)`. Without weights
    every cell has the sampling fraction n/N.

    References
    ----------
    Benedetti & Franconi (1998), Statistical and technological solutions for controlled data dissemination,
    Pre-proceedings of New Techniques and Technologies for Statistics.
    Franconi & Polettini (2004), Individual risk estimation in mu-Argus: a review, Privacy in Statistical
    Databases, Lecture Notes in Computer Science 3050.
    """

    @property
    def name(self) -> str:
        return "benedetti-franconi"

    @property
    def settings(self) -> Mapping[str, object]:
        return {}

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "IndividualRiskFit":
        weights = sample.table.weights
        if weights is None:
            return IndividualRiskFit(sample, np.full(sample.table.occupied, sample.sampling_fraction), 0)
        ratio = sample.table.counts / np.maximum(weights, np.finfo(float).tiny)
        return IndividualRiskFit(sample, np.minimum(ratio, 1.0), int(np.count_nonzero(ratio > 1.0)))


@dataclass(frozen=True)
class IndividualRiskFit:
    """A plug-in fit: the inclusion probabilities are taken as known.

    Attributes
    ----------
    inclusion
        p of each occupied cell.
    overweighted
        How many cells had weights that add up to fewer people than were sampled; their p is 1.
    """

    sample: Sample
    inclusion: Vector
    overweighted: int

    @property
    def interval_leaves_out(self) -> str:
        return "that the inclusion probability of each combination is itself estimated, from very few records"

    @property
    def effective_draws(self) -> None:
        return None

    def unsampled(self) -> Iterator[NegativeBinomialUnsampled]:
        unique = self.inclusion[self.sample.table.uniques]
        yield NegativeBinomialUnsampled(np.ones_like(unique), unique)

    def mean_match_all(self) -> Vector:
        """E(1/F | f) of each occupied cell, exact for every f."""
        return negative_binomial_match(self.sample.table.counts, self.inclusion)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        lines = []
        weights = self.sample.table.weights
        if weights is None:
            words = "No survey weights: every combination is given the overall sampling fraction."
            lines.append(Diagnostic("weights", "none", "caution", words))
        else:
            share = float(weights.sum()) / self.sample.population_size
            verdict = f"The survey weights add up to {share:.3g} times the size of the population."
            lines.append(Diagnostic("weights", share, "good" if 0.9 < share < 1.1 else "caution", verdict))
        if self.overweighted:
            words = f"{self.overweighted:,} combinations have weights below 1; they are taken as complete."
            lines.append(Diagnostic("weights_below_one", self.overweighted, "caution", words))
        if self.sample.uniques and self.sample.unsampled_size:
            lines.append(RECORD.diagnostic())
        return tuple(lines)
