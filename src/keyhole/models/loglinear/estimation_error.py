r"""The estimation error of fitted means that the information matrix implies.

**Poisson and multinomial.** Let :math:`Xa = 1`, so that :math:`Ia = X'm`. Given the sample size the score
loses its part along the total, its variance is :math:`I - X'm m'X/n`, and

.. math:: \mathrm{var}(\hat\theta) = I^{-1} - a a'/n, \qquad
          \mathrm{cov}(\log\hat m_c, \log\hat m_d) = x_c' I^{-1} x_d - 1/n:

the two laws differ by one common shift of variance 1/n. The sizes of sample and population are known, so the
multinomial one is right for risk. A draw :math:`\delta \sim N(0, I^{-1})` less :math:`m'X\delta/n`, its mean
over the fitted law, has it.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Vector
from keyhole.inference.formula import Generators
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.information import MOST_PARAMETERS, Coding, Design, thinned

MOST_SUMMED = 2_000_000
"""Cells beyond which the matrix is estimated from a part of them."""

CELLS_DRAWN = 400_000
"""Points of the systematic sample of the fitted law that the estimate is made from."""


@dataclass(frozen=True, eq=False)
class EstimationError:
    """Draws of the error of the logarithm of fitted means.

    Attributes
    ----------
    noise
        One row per draw, one column per cell asked for.
    parameters
        The number of effects that the data determine.
    cells_drawn
        Size of the sample of the fitted law that the information was estimated from; None if all cells were
        summed.
    """

    noise: Vector = field(repr=False)
    parameters: int
    cells_drawn: int | None


def estimation_error(
    cells: Cells,
    generators: Generators,
    fitted: Vector,
    places: IntVector,
    *,
    draws: int = 400,
    effective_size: float | None = None,
    most_summed: int = MOST_SUMMED,
    rng: Generator,
) -> EstimationError | None:
    """Draws of the estimation error of log fitted means at some cells; None with too many effects to factorise.

    Parameters
    ----------
    places
        The cells, as places among all that the fit visits.
    effective_size
        The sample size that the counts are worth; by default their sum. Weights that differ are worth less.
    most_summed
        Cells beyond which the information is estimated, without bias, from a systematic sample of the fitted law.
    """
    design = Design(cells, generators)
    if design.parameters > MOST_PARAMETERS:
        return None
    total = float(fitted.sum())
    drawn = CELLS_DRAWN if len(cells) > most_summed else None
    coding = Coding.of(design.information(fitted if drawn is None else thinned(fitted, drawn, rng.random())))
    delta = coding.draw(draws, design.parameters, rng)
    entries = design.entries_of(places)
    noise = np.zeros((draws, len(places)))
    for k in range(entries.shape[1]):
        noise += delta[:, entries[:, k]]
    # The mean over the fitted law, from its margins: each is a set of indicators that sum to one in every cell.
    noise -= (delta @ design.margins_of(fitted) / total)[:, None]
    if effective_size is not None:
        noise *= np.sqrt(total / effective_size)
    return EstimationError(noise, coding.rank, drawn)
