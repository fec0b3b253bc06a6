"""A sample as the fits and criteria of a search see it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keyhole.arrays import Codes, Vector
from keyhole.inference.formula import Generators
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.criteria import Criteria, Expansion, criteria
from keyhole.models.loglinear.ipf import Fitted, fit_margins
from keyhole.models.loglinear.means import multiplier
from keyhole.population.sample import Sample
from keyhole.population.weights import product_of, pseudo_counts, weight_factors

MARGINS, RISKS, PASSES = 1e-4, 1e-4, 200
"""Tolerances of the fits on the way, and their longest; the chosen model is fitted to the end."""


@dataclass(frozen=True, eq=False)
class SearchedRecords:
    """The sample, what its cells count and how likely people were to be drawn.

    Attributes
    ----------
    counts
        What each occupied cell counts in a margin.
    multiplier
        What turns a fitted mean into the mean of the unsampled count, for each unique.
    factors
        What a person of any cell weighs, as a product over the keys; None without weights.
    """

    sample: Sample
    counts: Vector
    multiplier: Vector
    factors: tuple[Vector, ...] | None

    @classmethod
    def of(cls, sample: Sample) -> "SearchedRecords":
        table = sample.table
        factors = None if table.weights is None or not sample.unsampled_size else weight_factors(table)
        return cls(sample, pseudo_counts(sample), multiplier(sample), factors)

    def drawn(self, fitted: Vector, codes: Callable[[], Codes]) -> tuple[Vector, Vector]:
        """The means of cells in the sample, given those of the fit, and the chance of their people to be drawn.

        Parameters
        ----------
        codes
            The codes of the cells, one row per key; not asked for without weights.
        """
        sample = self.sample
        if self.factors is None or sample.table.weights is None:
            return fitted, np.array([sample.sampling_fraction])
        people = sample.population_size
        weight = product_of(self.factors, codes()) * (people / float(sample.table.weights.sum()))
        chance = 1.0 / np.maximum(weight, 1.0)
        return fitted * chance * (people / float(self.counts.sum())), chance

    def fit(self, cells: Cells, generators: Generators, start: Fitted | None) -> Fitted:
        """A fit on the way."""
        return fit_margins(
            cells,
            self.counts,
            generators,
            start=start,
            uniques=self.sample.table.uniques,
            multiplier=self.multiplier,
            tolerance=MARGINS,
            risk_tolerance=RISKS,
            most_passes=PASSES,
        )

    def fit_to_the_end(self, generators: Generators, start: Fitted) -> Fitted:
        """The fit to the tolerances of a final result."""
        cells, uniques = Cells.of(self.sample, generators), self.sample.table.uniques
        return fit_margins(
            cells, self.counts, generators, start=start, uniques=uniques, multiplier=self.multiplier
        )

    def judge(self, fitted: Fitted, expansion: Expansion) -> Criteria:
        cells = fitted.cells
        means, fraction = self.drawn(fitted.fitted, lambda: cells.codes)
        return criteria(means, cells.occupied, self.sample.table.counts, fraction, expansion=expansion)
