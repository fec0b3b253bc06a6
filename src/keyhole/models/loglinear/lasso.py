r"""The lasso over pairs: a path of penalties, and the one that held-out records choose.

Records held out choose the penalty. The mean log likelihood :math:`\log(m_c / \sum m)` under the fits
to the other folds is followed from :math:`\lambda_{\max}` downwards until it has fallen twice, with
:math:`\lambda` in proportion to the records fitted. Records with a level that none of the others has tell nothing
about the pairs and are left out of the score.
"""

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Mask, Vector
from keyhole.models.loglinear.information import Design
from keyhole.models.loglinear.lasso_path import LassoPath, Rule, Tried, choose
from keyhole.models.loglinear.penalised import (
    MOST_CELLS,
    TOLERANCE,
    PenalisedFit,
    PenalisedFitting,
    penalised_design,
)
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

__all__ = ["LassoPath", "divide", "fit_lasso", "held_out_score", "usable"]

ON_THE_WAY = 1e-3
"""Violation of the conditions of the maximum that fits which only compare penalties may have."""

LAMBDAS, SMALLEST = 15, 0.1
"""Penalties of the path, evenly spaced on a log scale, and the smallest of them in records."""

FOLDS = 5

FALLS = 2
"""How often in a row the held-out score falls before the path ends."""


def fit_lasso(
    sample: Sample,
    *,
    lambdas: int = LAMBDAS,
    folds: int = FOLDS,
    rule: Rule = "best",
    tolerance: float = TOLERANCE,
    most_cells: int = MOST_CELLS,
    rng: Generator,
    progress: Progress = silent,
) -> LassoPath:
    """The path of penalties and the fit with the one that held-out records choose.

    Parameters
    ----------
    lambdas
        The most penalties that are tried.
    folds
        Parts that the records are divided into.
    rule
        How the penalty follows from the scores.
    """
    counts = sample.table.counts
    design = penalised_design(sample, most_cells=most_cells)
    room = PenalisedFitting(design)
    held_out = divide(counts, min(folds, sample.sample_size), rng)
    trainings = counts - held_out
    judged = [held * usable(design, room.margins_of(rest)) for held, rest in zip(held_out, trainings, strict=True)]
    top = room.largest_penalty(counts)
    grid = np.geomspace(top, min(SMALLEST, top / 100), lambdas) if top > 0 else np.array([0.0])
    starts: list[Vector | None] = [None] * (len(held_out) + 1)
    tried: list[Tried] = []
    for penalty in grid:
        whole = room.fit(counts, penalty, start=starts[-1], tolerance=max(tolerance, ON_THE_WAY))
        starts[-1] = whole.effects
        now = Tried.of(sample, whole)
        for fold, (rest, held) in enumerate(zip(trainings, judged, strict=True)):
            share = rest.sum() / counts.sum()
            fit = room.fit(rest, penalty * share, start=starts[fold], tolerance=max(tolerance, ON_THE_WAY))
            starts[fold] = fit.effects
            now.scores.append(held_out_score(fit, held))
            now.converged.append(fit.converged)
        tried.append(now)
        progress("fitting the path of penalties", len(tried), len(grid), f"lambda {penalty:.2g} records")
        if len(tried) > FALLS and (np.diff([sum(step.scores) for step in tried[-FALLS - 1 :]]) < 0).all():
            break
    sizes = np.array([int(held.sum()) for held in judged])
    steps, chosen = choose(tried, sizes, rule)
    fitted = room.fit(counts, steps[chosen].penalty, start=tried[chosen].effects, tolerance=tolerance)
    return LassoPath(steps, chosen, sample.sample_size - int(sizes.sum()), fitted)


def divide(counts: IntVector, folds: int, rng: Generator) -> IntVector:
    """The records of each cell in each fold, one row per fold; folds differ in size by at most one."""
    cell = np.repeat(np.arange(len(counts)), counts)
    fold = rng.permutation(np.arange(len(cell)) % folds)
    return np.bincount(fold * len(counts) + cell, minlength=folds * len(counts)).reshape(folds, len(counts))


def usable(design: Design, target: Vector) -> Mask:
    """The occupied cells all of whose levels somebody in the training records has."""
    entries = design.entries_of(design.cells.occupied)
    single = [k for k, margin in enumerate(design.margins) if len(margin.generator) == 1]
    return np.asarray((target[entries[:, single]] > 0).all(axis=1))


def held_out_score(fit: PenalisedFit, held: IntVector) -> float:
    """The log likelihood of records under the fitted law."""
    scored = np.flatnonzero(held)
    mean = fit.fitted[fit.cells.occupied[scored]]
    return float(held[scored] @ (np.log(mean) - np.log(fit.fitted.sum())))
