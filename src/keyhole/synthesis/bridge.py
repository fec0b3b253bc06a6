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
from dataclasses import dataclass, field

import numpy as np

from keyhole.arrays import Codes, IntVector, Mask, Vector
from keyhole.inference.pareto_weights import smoothed_weights
from keyhole.synthesis.class_draws import ClassDraw
from keyhole.synthesis.supports import Support

GROUPS = 8
"""Of consecutive draws; the spread of answers with one group left out tells the Monte Carlo error."""

AT_ONCE = 2_000_000
"""Probabilities of records, draws and candidates that are held together."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """Answers of a block of records: probabilities by place, from all copies and from the first few of them.

    Attributes
    ----------
    chance
        By number of copies (1 to m), record and place.
    error
        Monte Carlo standard error of the chance of the truth, all copies used.
    before
        The intruder's belief beforehand, by record and place.
    khat
        Of the worst set of weights, by record.
    known
        Chance of the truth for somebody who knows the parameters that made the copies: more no copy of any size
        can tell. None where they are not known.
    """

    chance: Vector = field(repr=False)
    error: Vector = field(repr=False)
    before: Vector = field(repr=False)
    khat: Vector = field(repr=False)
    known: Vector | None = field(repr=False)


def weigh(
    cells: Codes,
    support: Support,
    alone: Sequence[ClassDraw],
    stacked: Sequence[Sequence[ClassDraw]],
    places: IntVector,
    beliefs: Vector | None,
    *,
    model_prior: bool = False,
    generating: Sequence[ClassDraw] | None = None,
) -> Weighed:
    """The chances of the candidates of some records.

    Parameters
    ----------
    alone, stacked
        Draws of the file, and of the file with each copy.
    places
        Which of the combinations that the draws know the records are.
    beliefs
        The logarithm of what the intruder believed beforehand, by record and place; None if all is alike.
    model_prior
        Whether he believed what the model says of the others in the file.
    generating
        The parameters that made the copies, if they are known.
    """
    mask = support.mask(cells)
    first, khat = _grouped(cells, support, alone, places)
    sums = [first]
    for draws in stacked:
        found, own = _grouped(cells, support, draws, places)
        sums.append(found)
        khat = np.maximum(khat, own)

    def believed(alone_sums: Vector) -> Vector:
        log = np.zeros(mask.shape) if beliefs is None else beliefs
        if model_prior:
            log = np.log(np.maximum(alone_sums, 1e-300))
        return np.where(mask, log, -np.inf)

    whole = [one.sum(axis=0) for one in sums]
    log_before = believed(whole[0])
    chance = _chances(log_before, whole)

    def truth_by(groups: IntVector) -> Vector:
        """The chance of the truth from some groups of draws."""
        some = [one[groups].sum(axis=0) for one in sums]
        return np.asarray(_chances(believed(some[0]), some)[-1][:, 0])

    every = np.arange(GROUPS)
    left_out = np.array([truth_by(every[every != g]) for g in every])
    error = np.sqrt((GROUPS - 1) / GROUPS * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    # Chains that settled in classes of their own differ more than groups within them do.
    first_half, second_half = (truth_by(part) for part in np.array_split(every, 2))
    error = np.maximum(error, np.abs(first_half - second_half) / 2.0)
    known = None
    if generating is not None:
        nobody = np.full(len(cells), -1)
        made = [support.probabilities(cells, nobody, draw) for draw in generating]
        known = _chances(log_before, [whole[0], *made])[-1][:, 0]
    return Weighed(chance, error, _normal(log_before), khat, known)


def _grouped(
    cells: Codes, support: Support, draws: Sequence[ClassDraw], places: IntVector
) -> tuple[Vector, Vector]:
    """Sums of probabilities by group of draws, record and place, and the k-hat of each record's weights."""
    nobody = np.full(len(cells), -1)
    found = np.stack(
        [support.probabilities(cells, nobody if draw.own is None else draw.own[places], draw) for draw in draws]
    )
    log_weight = -np.log(np.maximum(found[:, :, 0], 1e-300)).T
    weight, khat = smoothed_weights(log_weight)
    found *= weight.T[:, :, None]
    groups = np.array_split(np.arange(len(draws)), GROUPS)
    return np.stack([found[group].sum(axis=0) for group in groups]), khat


def _chances(log_before: Vector, sums: Sequence[Vector]) -> Vector:
    """Normalised chances from the first copy, the first two, ..."""
    log_ratio = np.log(np.maximum(np.array(sums[1:]), 1e-300)) - np.log(np.maximum(sums[0], 1e-300))
    return np.array([_normal(log_before + upto) for upto in np.cumsum(log_ratio, axis=0)])


def _normal(log: Vector) -> Vector:
    shares = np.exp(log - log.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def ranks(chance: Vector, mask: Mask) -> IntVector:
    """The rank of the truth, which is in the first place: 1 if nothing is likelier."""
    return np.asarray(((chance > chance[:, :1]) & mask).sum(axis=1) + 1)


def blocks(records: int, draws: int, width: int) -> list[IntVector]:
    """Records that are weighed together."""
    each = max(1, AT_ONCE // max(draws * width, 1))
    return np.array_split(np.arange(records), max(1, -(-records // each)))
