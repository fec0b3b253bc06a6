r"""Chains that found different modes are weighed by how well each predicts records it has not seen.

Stacking (Yao et al. 2022, *Journal of Machine Learning Research* 23) maximises
:math:`\sum_i \log \sum_m w_m\, p_m(x_i \mid x_{-i})` over the weights of the chains. The leave-one-out density
of a record is the harmonic mean of its probability over the draws, since
:math:`p(x_i \mid x_{-i})^{-1} = E[\,p(x_i \mid \theta)^{-1} \mid x\,]`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyhole.arrays import IntVector, Vector

ROUNDS = 500
"""Of the EM algorithm, which climbs to the one maximum."""


def leave_one_out(laws: Sequence[NDArray[np.float32]]) -> Vector:
    """log p(x_i | x_-i) of each occupied cell's records, from probabilities by draw."""
    total = np.full(len(laws[0]), -np.inf)
    for law in laws:
        np.logaddexp(total, -np.log(np.maximum(law.astype(np.float64), 1e-300)), out=total)
    return np.asarray(np.log(len(laws)) - total)


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
