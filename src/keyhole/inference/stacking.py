r"""Chains that found different modes are weighed by how well each predicts records it has not seen.

Stacking (Yao et al. 2022, *Journal of Machine Learning Research* 23) maximises
:math:`\sum_i \log \sum_m w_m\, p_m(x_i \mid x_{-i})` over the weights of the chains. The leave-one-out density
of a record is the harmonic mean of its probability over the draws, since
:math:`p(x_i \mid x_{-i})^{-1} = E[\,p(x_i \mid \theta)^{-1} \mid x\,]`: a mean with weights
:math:`1/p(x_i \mid \theta)`. Where a few draws weigh far more than the others the tail of the weights is smoothed
(Vehtari et al. 2024, *Journal of Machine Learning Research* 25).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import IntVector, Vector
from keyhole.inference.pareto_weights import smoothed_weights

UNEVEN = 10.0
"""A draw that weighs so many average ones calls for smoothing."""

AT_ONCE = 4096
"""Cells whose weights are smoothed together: those of all cells would need much memory."""

ROUNDS = 500
"""Of the EM algorithm, which climbs to the one maximum."""


def leave_one_out(laws: Sequence[NDArray[np.float32]]) -> Vector:
    """log p(x_i | x_-i) of each occupied cell's records, from probabilities by draw.

    Examples
    --------
    >>> leave_one_out([np.array([0.1, 0.2]), np.array([0.3, 0.2])]).round(3).tolist()
    [-1.897, -1.609]
    """
    total, most = np.full(len(laws[0]), -np.inf), np.full(len(laws[0]), -np.inf)
    for law in laws:
        weight = -_logs(law)
        np.logaddexp(total, weight, out=total)
        np.maximum(most, weight, out=most)
    found = np.log(len(laws)) - total
    heavy = np.flatnonzero(most - total > np.log(UNEVEN / len(laws)))
    for first in range(0, len(heavy), AT_ONCE):
        cells = heavy[first : first + AT_ONCE]
        logs = np.stack([_logs(law[cells]) for law in laws], axis=1)
        weights, _ = smoothed_weights(-logs)
        found[cells] = np.log((weights * np.exp(logs)).sum(axis=1))
    return np.asarray(found)


def _logs(law: NDArray[np.float32]) -> Vector:
    return np.log(np.maximum(law.astype(np.float64), 1e-300))


def stacking_weights(log_densities: Vector, counts: IntVector) -> Vector:
    """Weights of the chains, given log densities by chain and cell and the records of each cell.

    Examples
    --------
    >>> stacking_weights(np.log([[0.5, 0.5], [0.1, 0.1]]), np.array([3, 1])).round(3).tolist()
    [1.0, 0.0]
    """
    chains = len(log_densities)
    density = np.exp(log_densities - log_densities.max(axis=0))
    weights = np.full(chains, 1.0 / chains)
    for _ in range(ROUNDS):
        shares = weights[:, None] * density
        weights = (shares / shares.sum(axis=0)) @ counts / counts.sum()
    return weights
