r"""Extended maximum likelihood of a hierarchical log-linear model by iterative proportional fitting.

The cell means are a product of effects, one for each generator g and each entry of its margin,

.. math:: m_c = \prod_g e^{\theta_g(c_g)},

and the likelihood equations say that every fitted margin of a generator is the observed one. One step scales the
cells to one margin; a pass takes all margins in turn. The fit is the limit of the passes (Darroch & Ratcliff 1972,
*Annals of Mathematical Statistics* 43). Cells with an empty margin are zero in the limit and are left out from the
start: the extended maximum likelihood estimate, which always exists.

A pass is one sweep of the tree of cells per margin (`passes`). Extrapolation and Newton steps make the passes
fewer (`acceleration`); the limit is the same.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import special

from keyhole.arrays import IntVector, Vector, read_only
from keyhole.errors import FitFailed
from keyhole.inference.formula import Generators
from keyhole.models.loglinear.acceleration import Course
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.information import Design
from keyhole.models.loglinear.passes import Passes
from keyhole.progress import Progress, silent

PATIENCE = 60
"""Passes without a smaller discrepancy after which the fit is given up."""

Ending = Literal["converged", "no progress", "pass limit"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit of the sufficient margins.

    Attributes
    ----------
    fitted
        The mean of each cell on the scale of the counts.
    effects
        theta_g of each generator, one axis per key; entries that nobody has are minus infinity. Only their
        sum in a cell has a meaning.
    passes
        How often all margins were taken, by a pass or by a Newton step.
    discrepancy
        The largest relative difference between a fitted and an observed entry of a margin that the last of
        them found.
    risk_change
        The largest relative change of tau1 and tau2 over the last pass.
    ending
        Why the passes stopped.
    """

    cells: Cells
    generators: Generators
    fitted: Vector = field(repr=False)
    effects: tuple[Vector, ...] = field(repr=False)
    passes: int
    discrepancy: float
    risk_change: float
    ending: Ending

    @property
    def converged(self) -> bool:
        return self.ending == "converged"

    @property
    def at_occupied(self) -> Vector:
        """The means of the occupied cells, in the order of the sample's table."""
        return self.fitted[self.cells.occupied]


def fit_margins(
    cells: Cells,
    counts: Vector | IntVector,
    generators: Generators,
    *,
    start: Fitted | None = None,
    uniques: IntVector | None = None,
    multiplier: Vector | float = 1.0,
    tolerance: float = 1e-6,
    risk_tolerance: float = 1e-4,
    most_passes: int = 2000,
    progress: Progress = silent,
) -> Fitted:
    r"""The maximum-likelihood means of the cells.

    Parameters
    ----------
    counts
        The count, or the sum of weights, of each occupied cell of the table.
    start
        A fit to begin with, of any terms over the same levels; those in no generator of this fit are left out.
    uniques, multiplier
        The sample uniques, as positions among the occupied cells, and what turns a fitted mean into the mean of
        the unsampled count: (N - n)/n if records are alike. Passes go on until tau1 and tau2 of these cells
        settle.
    tolerance
        Relative difference between fitted and observed margins below which the fit has converged.
    risk_tolerance
        Relative change of tau1 and tau2 over a pass below which it has.

    Raises
    ------
    FitFailed
        There is nothing to fit.
    """
    observed = np.asarray(counts, dtype=np.float64)
    if not generators or not len(cells) or not observed.sum() > 0:
        raise FitFailed(f"A fit needs records and terms; found {observed.sum():g} and {len(generators)}.")
    design = Design(cells, generators)
    state = Passes(design, observed)
    watched = design.entries_of(cells.occupied[uniques] if uniques is not None else np.empty(0, np.int64))
    course = Course(state, _theta_of(design, start))
    risk, best, since = np.zeros(2), np.inf, 0
    ending: Ending = "pass limit"
    for passes in range(1, most_passes + 1):
        theta, discrepancy = course.step()
        after = risk_of(np.exp(theta[watched].sum(axis=1)) * multiplier)
        change = float(np.max(np.abs(after - risk) / np.maximum(after, 1e-300), initial=0.0))
        risk = after
        progress("fitting margins", passes, None, f"margins within {discrepancy:.1g}")
        if discrepancy <= tolerance and change <= risk_tolerance:
            ending = "converged"
            break
        best, since = (discrepancy, 0) if discrepancy < 0.99 * best else (best, since + 1)
        if since == PATIENCE:
            ending = "no progress"
            break
    state.multiply_out(theta)
    return Fitted(
        cells,
        generators,
        read_only(state.values[-1]),
        _effects_of(state, theta),
        passes,
        discrepancy,
        change,
        ending,
    )


def risk_of(mean: Vector) -> Vector:
    r""":math:`\tau_1 = \sum e^{-\mu}` and :math:`\tau_2 = \sum (1 - e^{-\mu})/\mu`."""
    return np.array([np.exp(-mean).sum(), special.exprel(-mean).sum()])


def _theta_of(design: Design, start: Fitted | None) -> Vector:
    """The effects of a fit, each given to the first margin here that has all its keys; 0 without a fit."""
    theta = np.zeros(design.parameters)
    if start is None:
        return theta
    if start.cells.sizes != design.cells.sizes:
        raise ValueError("A fit can only start from one over the same levels.")
    for generator, effects in zip(start.generators, start.effects, strict=True):
        for k, margin in enumerate(design.margins):
            if set(generator) <= set(margin.generator):
                spread = effects.reshape(
                    [design.cells.sizes[j] if j in generator else 1 for j in margin.generator]
                )
                read = [margin.generator.index(j) for j in design.cells.order if j in margin.generator]
                spread = np.broadcast_to(spread.transpose(read), margin.shape)
                theta[design.begins[k] : design.begins[k + 1]] += np.nan_to_num(spread, neginf=0.0).ravel()
                break
    return theta


def _effects_of(passes: Passes, theta: Vector) -> tuple[Vector, ...]:
    """The effects of each generator, in the order in which they were given."""
    design = passes.design
    known = np.where(passes.target > 0, theta, -np.inf)
    found = {
        margin.generator: read_only(margin.in_table_order(known[begin:end], design.cells.order))
        for margin, begin, end in zip(design.margins, design.begins, design.begins[1:], strict=False)
    }
    return tuple(found[generator] for generator in design.generators)
