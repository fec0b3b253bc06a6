r"""The estimation error of a lasso fit: that of the effects which the penalty left.

With A the main effects and the coefficients that are not zero, the conditions of the maximum are those of a
Poisson model with these effects, their scores moved by a constant :math:`\pm\lambda`. As long as the set and the
signs stay the same a constant has no variance, so

.. math:: \mathrm{var}(\hat\theta_A) = I_{AA}^{-1}, \qquad I = X' \mathrm{diag}(m) X,

less the common shift of a known sample size, as in `information`. That another sample would have left other
effects, and the bias that the penalty brings, are not in it.
"""

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.models.loglinear.information import MOST_PARAMETERS, Coding
from keyhole.models.loglinear.means import draws_for
from keyhole.models.loglinear.penalised_fit import PenalisedFit
from keyhole.population.sample import Sample

DRAWS = 400


def lasso_noise(sample: Sample, fit: PenalisedFit, *, draws: int = DRAWS, rng: Generator) -> Vector | None:
    """Draws of the error of log means of the uniques, a row per draw; None with too many effects to factorise."""
    design = fit.design
    if design.parameters > MOST_PARAMETERS:
        return None
    sizes = [margin.entries for margin in design.margins]
    main = np.repeat([len(margin.generator) == 1 for margin in design.margins], sizes)
    left = np.isfinite(fit.effects) & (main | (fit.effects != 0))
    information = design.information(fit.fitted)
    # Indicators without information are left out by the coding.
    information[~left], information[:, ~left] = 0.0, 0.0
    delta = Coding.of(information).draw(draws_for(sample, draws), design.parameters, rng)
    entries = design.entries_of(fit.cells.occupied[sample.table.uniques])
    noise = np.zeros((len(delta), len(entries)))
    for column in entries.T:
        noise += delta[:, column]
    # The mean over the fitted law, from its margins: each is a set of indicators that sum to one in every cell.
    noise -= (delta @ design.margins_of(fit.fitted) / float(fit.fitted.sum()))[:, None]
    return noise
