"""What an intruder makes of the copies for some records, by either estimator."""

from collections.abc import Sequence

import numpy as np

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.models.latent_class.state import LatentClasses
from keyhole.synthesis.bridge import predictions
from keyhole.synthesis.chances import Before, Weighed, chances, chances_with_error, normal
from keyhole.synthesis.class_draws import ClassDraw
from keyhole.synthesis.importance import CopyWeights, importance_sums
from keyhole.synthesis.supports import Support


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
    published: tuple[Sequence[LatentClasses], CopyWeights] | None = None,
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
    published
        States of the chains on the file and the weights that each copy gives them, for the published importance
        sampler; draws with a copy are not needed then.
    """
    predicted, khat = predictions(cells, support, alone, places)
    if published is None:
        found = [predictions(cells, support, draws, places) for draws in stacked]
        sums = [predicted, *(one for one, _ in found)]
        khat = np.max([khat, *(own for _, own in found)], axis=0)
    else:
        sums = importance_sums(cells, support, *published)
        khat = np.full(len(cells), published[1].khat.max())
    before = Before(support.mask(cells), beliefs, model_prior)
    chance, error, log_before = chances_with_error(sums, predicted, before)
    known = None
    if generating is not None:
        known = _knowing(cells, support, predicted.sum(axis=0), log_before, generating)
    return Weighed(chance, error, normal(log_before), khat, known)


def _knowing(
    cells: Codes, support: Support, predicted: Vector, log_before: Vector, generating: Sequence[ClassDraw]
) -> Vector:
    r"""The chance of the truth for somebody who knows the parameters that made the copies.

    .. math:: p(\theta_l \mid x, D_{-i}) \propto f(x \mid \theta_l) / p(x \mid D_{-i})
    """
    nobody = np.full(len(cells), -1)
    made = [support.probabilities(cells, nobody, draw) for draw in generating]
    return np.asarray(chances(log_before, [predicted, *made])[-1][:, 0])
