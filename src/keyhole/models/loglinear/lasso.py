r"""The lasso over pairs: the cells it is fitted on, a path of penalties, and the one that held-out records choose.

**Choice.** The mean log likelihood :math:`\log(m_c / \sum m)` of records held out, under the fits to the other
folds, is followed from :math:`\lambda_{\max}` downwards until it has fallen twice, with :math:`\lambda` in
proportion to the records fitted. Records with a level that none of the others has tell nothing about the pairs and
are left out of the score. With weights a record counts as `pseudo_counts` says, in margins and in scores.

**Cells of a large table.** A penalised fit gives every admissible cell a mean. Where these are too many, some of
them stand for all (`drawn_cells`). What the choice of cells adds to the error is measured by `Approximation`.
"""

from math import prod

import numpy as np
from numpy.random import Generator

from keyhole.arrays import IntVector, Mask, Vector, read_only
from keyhole.models.loglinear.drawn_cells import CELLS_DRAWN, draw_cells
from keyhole.models.loglinear.information import Design
from keyhole.models.loglinear.lasso_path import LassoPath, Rule, Tried, choose
from keyhole.models.loglinear.penalised import TOLERANCE, PenalisedFitting
from keyhole.models.loglinear.penalised_fit import PenalisedFit, penalised_design
from keyhole.population.sample import Sample
from keyhole.population.weights import pseudo_counts
from keyhole.progress import Progress, silent

MOST_CELLS = 500_000
"""Admissible cells of the levels that occur up to which all are visited: neighbours in a full tree cost little."""

ON_THE_WAY, WITH_DRAWN_CELLS = 5e-3, 1e-3
"""Violations of the conditions of the maximum that fits which only compare penalties may have, and final fits for
which the choice of cells is a larger error."""

LAMBDAS, SMALLEST = 10, 0.1
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
    cells_drawn: int = CELLS_DRAWN,
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
    tolerance
        Violation of the conditions of the maximum that the final fit may have.
    most_cells
        Admissible cells of the levels that occur up to which all are visited.
    cells_drawn
        Draws that choose the cells of a larger table.
    """
    table, counts, cells = sample.table, pseudo_counts(sample), occurring_cells(sample)
    if cells <= most_cells:
        room = PenalisedFitting(penalised_design(sample, most_cells=most_cells))
    else:
        progress("choosing cells", 0, None, f"{cells:,} are too many to visit")
        room = PenalisedFitting(*draw_cells(sample, cells_drawn, rng=rng))
        tolerance = max(tolerance, WITH_DRAWN_CELLS)
    held_out = divide(table.counts, min(folds, sample.sample_size), rng)
    a_record = counts / table.counts
    trainings = [(table.counts - held) * a_record for held in held_out]
    judged = [
        held * usable(room.design, room.margins_of(rest)) for held, rest in zip(held_out, trainings, strict=True)
    ]
    top = room.largest_penalty(counts)
    grid = np.geomspace(top, min(SMALLEST, top / 100), lambdas) if top > 0 else np.array([0.0])
    loose = max(tolerance, ON_THE_WAY)
    before: Vector | None = None
    found: list[Vector | None] = [None] * len(held_out)
    tried: list[Tried] = []
    for penalty in grid.tolist():
        whole = room.fit(counts, penalty, start=before, tolerance=loose)
        now = Tried.of(sample, whole)
        for fold, (rest, held) in enumerate(zip(trainings, judged, strict=True)):
            start = _moved(found[fold], before, whole.effects)
            fit = room.fit(rest, penalty * rest.sum() / counts.sum(), start=start, tolerance=loose)
            found[fold] = fit.effects
            now.scores.append(held_out_score(fit, held * a_record))
            now.converged.append(fit.converged)
        before = whole.effects
        tried.append(now)
        progress("fitting the path of penalties", len(tried), len(grid), f"lambda {penalty:.2g} records")
        if len(tried) > FALLS and (np.diff([sum(step.scores) for step in tried[-FALLS - 1 :]]) < 0).all():
            break
    sizes = np.array([held @ a_record for held in judged])
    steps, chosen = choose(tried, sizes, rule)
    fitted = room.fit(counts, steps[chosen].penalty, start=tried[chosen].effects, tolerance=tolerance)
    unscored = sample.sample_size - int(sum(held.sum() for held in judged))
    return LassoPath(steps, chosen, unscored, fitted, cells, read_only(room.margins_of(counts)))


def _moved(fold: Vector | None, before: Vector | None, now: Vector) -> Vector | None:
    """The effects of a fold at the last penalty, moved as those of all records have moved since."""
    return None if fold is None or before is None else fold + (now - before)


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


def held_out_score(fit: PenalisedFit, held: Vector | IntVector) -> float:
    """The log likelihood of records under the fitted law."""
    scored = np.flatnonzero(held)
    mean = fit.fitted[fit.cells.occupied[scored]]
    return float(held[scored] @ (np.log(mean) - np.log(fit.fitted.sum())))


def occurring_cells(sample: Sample) -> int:
    """The number of admissible cells of the levels that occur."""
    levels = [np.unique(column) for column in sample.table.cells.T]
    if sample.zeros is None:
        return prod(map(len, levels))
    occurs = [np.bincount(found, minlength=size) for found, size in zip(levels, sample.table.levels, strict=True)]
    return round(float(sample.zeros.diagram.mass([mask.astype(np.float64) for mask in occurs])))
