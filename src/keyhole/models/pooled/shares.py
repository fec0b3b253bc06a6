r"""Which share of a pool each model gets: how sure it is that it predicts unseen records best.

With held-out log probabilities :math:`\ell_{mi} = \log p_m(x_i \mid x_{-i})` of the n records, model m gets

.. math:: E \; \frac{\exp(n \sum_i u_i \ell_{mi})}{\sum_l \exp(n \sum_i u_i \ell_{li})}, \qquad u \sim
          \mathrm{Dirichlet}(1, \ldots, 1)

over Bayesian bootstraps u of the records (pseudo-BMA+, Yao et al. 2018, *Bayesian Analysis* 13). The truth of the
risk is not looked at, so there is nothing to tune. Stacking, which maximises the score of the mixture itself,
would give a share to whatever differs, and what differs most is the bias of the risk
(``docs/explanation/auto.md``).
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.inference.fit import Fit, ScoresRecords
from keyhole.population.sample import Sample

BOOTSTRAPS = 500

NEGLIGIBLE = 0.01
"""Shares below this are none: they would not move an estimate by a noticeable amount."""


def shares_of(
    fits: Sequence[Fit], sample: Sample, heard: Sequence[bool] | None = None, *, rng: Generator
) -> Vector:
    """The shares, adding up to one.

    Models that cannot score records get none, nor do others than the first whose own checks failed: draws of
    chains that have not met vary too little, and records left out then look as well predicted as those seen.

    Parameters
    ----------
    heard
        Which of them can have a share at all; everyone by default.
    """
    scored = {
        place: fit.log_by_cell
        for place, fit in enumerate(fits)
        if isinstance(fit, ScoresRecords) and (place == 0 or _trusted(fit)) and (heard is None or heard[place])
    }
    shares = np.zeros(len(fits))
    if len(scored) == 1:
        shares[0] = 1.0
        return shares
    shares[list(scored)] = bootstrapped_shares(
        np.array(list(scored.values())), sample.table.counts.astype(np.float64), rng=rng
    )
    shares[shares < NEGLIGIBLE] = 0.0
    return np.asarray(shares / shares.sum())


def gap_of(leader: Fit, other: Fit, sample: Sample, *, rng: Generator) -> float | None:
    """By how much the other gives all records a lower log probability, if it would get no share to speak of."""
    if not isinstance(leader, ScoresRecords) or not isinstance(other, ScoresRecords):
        return None
    counts = sample.table.counts.astype(np.float64)
    scores = np.array([leader.log_by_cell, other.log_by_cell])
    if bootstrapped_shares(scores, counts, rng=rng)[1] >= NEGLIGIBLE:
        return None
    first, second = scores @ counts
    return float(first - second)


def _trusted(fit: Fit) -> bool:
    return all(check.verdict != "untrusted" for check in fit.diagnostics)


def bootstrapped_shares(log_densities: Vector, counts: Vector, *, rng: Generator) -> Vector:
    """How often each model predicts best, over bootstraps of the records of each cell.

    Examples
    --------
    >>> alike = np.log([[0.5, 0.2], [0.2, 0.5]])
    >>> bootstrapped_shares(alike, np.array([40.0, 40.0]), rng=np.random.default_rng(1)).round(1).tolist()
    [0.5, 0.5]
    >>> worse = np.log([[0.5, 0.5], [0.1, 0.1]])
    >>> bootstrapped_shares(worse, np.array([3.0, 1.0]), rng=np.random.default_rng(1)).round(2).tolist()
    [1.0, 0.0]
    """
    records, total = counts.sum(), np.zeros(len(log_densities))
    for _ in range(BOOTSTRAPS):  # one by one: memory grows with the cells, not with the bootstraps
        weight = rng.standard_gamma(counts)
        score = records / weight.sum() * (log_densities @ weight)
        share = np.exp(score - score.max())
        total += share / share.sum()
    return np.asarray(total / BOOTSTRAPS)
