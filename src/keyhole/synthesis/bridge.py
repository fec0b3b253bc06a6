r"""How much synthetic files tell of a record, to somebody who knows all the others.

With :math:`D_{-i}` known, the chance that the record is x is (Hu, Reiter & Wang, eqs 9 and 12)

.. math:: \rho_i^x \propto p(x \mid \text{before}) \prod_l P(Z_l \mid x, D_{-i})
    \propto p(x \mid \text{before}) \prod_l \frac{p(x \mid D_{-i}, Z_l)}{p(x \mid D_{-i})},

by Bayes' rule for x given :math:`D_{-i}` and :math:`Z_l`. Both predictive probabilities are means over draws of
the classes, with the record taken away: of a file alone, and of a file with a synthetic copy stacked under it.
Draws were made with the record in its place, so each counts as 1 over the record's own probability; these weights
are Pareto-smoothed.
"""

from collections.abc import Sequence

import numpy as np

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.inference.pareto_weights import smoothed_weights
from keyhole.synthesis.chances import SMALLEST, grouped
from keyhole.synthesis.class_draws import ClassDraw
from keyhole.synthesis.supports import Support


def predictions(
    cells: Codes, support: Support, draws: Sequence[ClassDraw], places: IntVector
) -> tuple[Vector, Vector]:
    """What draws of a file say of the candidates with the record taken away: p(x | the others), up to a constant.

    Parameters
    ----------
    places
        Which of the combinations that the draws know the records are.

    Returns
    -------
    tuple
        Sums by group of draws, record and place, and the k-hat of each record's weights.
    """
    nobody = np.full(len(cells), -1)
    found = np.stack(
        [support.probabilities(cells, nobody if draw.own is None else draw.own[places], draw) for draw in draws]
    )
    log_weight = -np.log(np.maximum(found[:, :, 0], SMALLEST)).T
    weight, khat = smoothed_weights(log_weight)
    found *= weight.T[:, :, None]
    return grouped(found), khat
