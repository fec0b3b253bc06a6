r"""How well each lambda foretells a record that the margins have not seen.

Leaving one record out changes each of its margins by its own weight, so the law without it is known in closed form
at its own cell: :math:`p^-(\lambda) = q^-(1 + \lambda S^-)`. The renormaliser is that of all records: the changes
of c by leaving out one record after the other cancel to first order, because influences sum to zero.

A record whose cell gets :math:`p^- \le 0` would make any such lambda impossible. The hole of the law, the cells
without probability, is therefore filled in the way that needs nothing new, by independence:

.. math:: \tilde p = (1 - \varepsilon)\, p / c \;\text{ where } p > 0, \qquad
    \tilde p = \varepsilon\, q / Q \;\text{ in the hole}, \qquad Q = \sum_{\text{hole}} q,

a law that sums to one for every lambda. :math:`\varepsilon` is the share of held-out records that fall into the
hole, its maximum likelihood estimate, so that a lambda pays for each of them. Where the cell is in the hole only
without its record, its q is added to Q.

The law of the risk has no such part, so the score speaks for it only where :math:`\varepsilon` is small: a lambda
with more than 5% of the held-out records in the hole is not eligible, however well its filled law scores. With two
independent keys and lambda = 1 the sample's own cells and, outside of them, independence would often score best.

A record with a level that nobody else has cannot be foretold at any lambda and is not asked.
"""

from dataclasses import dataclass

import numpy as np

from keyhole.arrays import IntVector, Mask, Vector
from keyhole.models.lancaster.margins import Margins
from keyhole.models.lancaster.renormaliser import Renormaliser

MOST_MISSED = 0.05
"""Share of held-out records to which the law of an eligible lambda may give no probability."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What held-out records say of each lambda.

    Attributes
    ----------
    score
        The mean log probability of a held-out record; zeros if no record could be asked.
    missed
        The share of held-out records in cells without probability.
    asked
        The number of records that were held out.
    """

    score: Vector
    missed: Vector
    asked: int

    @property
    def eligible(self) -> Mask:
        """Whether the law gives some probability to nearly all held-out records; at lambda = 0 to each of them."""
        return np.asarray(self.missed.round(9) <= MOST_MISSED)  # a sum of shares, so up to rounding

    def best(self) -> int:
        """The place of the best score of an eligible lambda, the first of ties; 0 if nobody was asked."""
        return int(np.argmax(np.where(self.eligible, self.score, -np.inf)))

    def best_if_all_were_eligible(self) -> int:
        """The place of the best score, whatever its law leaves out."""
        return int(np.argmax(self.score))


def hold_out(
    margins: Margins, cells: IntVector, counts: IntVector, weight: Vector, grid: Vector, c: Renormaliser
) -> HeldOut:
    """Hold out every record once.

    Parameters
    ----------
    cells, counts, weight
        Occupied cells as dense codes, their records and the weight of these.
    """
    holders = np.stack([np.bincount(column, counts)[column] for column in cells.T])
    asked = (holders > 1).all(axis=0)
    if not asked.any():
        return HeldOut(np.zeros(len(grid)), np.zeros(len(grid)), 0)
    cells, counts, weight = cells[asked], counts[asked], weight[asked]
    without, whole = margins.at(cells, weight / counts), margins.at(cells)
    share = weight / weight.sum()
    score, missed = np.empty((2, len(grid)))
    for g, shrinkage in enumerate(grid):
        ratio = without.ratio(shrinkage)
        out = ratio <= 0.0
        own = np.exp(whole.log_independence[out])
        newly = whole.ratio(shrinkage)[out] > 0.0
        hole = np.maximum(c.hole[g] + own * newly, own)
        inside = without.log_independence[~out] + np.log(ratio[~out] / c.value[g])
        outside = without.log_independence[out] - np.log(hole)
        missed[g] = share[out].sum()
        score[g] = share[~out] @ inside + share[out] @ outside - _entropy(missed[g])
    return HeldOut(score, missed, int(counts.sum()))


def _entropy(share: float) -> float:
    """-(e log e + (1 - e) log(1 - e)), which is 0 at both ends."""
    parts = np.array([share, 1.0 - share])
    parts = parts[parts > 0.0]
    return float(-(parts @ np.log(parts)))
