r"""Forward search for the terms of a log-linear model by the bias criteria of Skinner and Shlomo.

The search starts from independence. At each step every term that could be added is tried, and the one whose fit
has the smallest standardised bias :math:`|\hat B / \sqrt v|` (see `criteria`) is added: pairs first and, where
asked, triples with everything inside them. A model with far too few terms has a large positive statistic, one that
is right a value of about one standard deviation around a mean somewhat below zero, since fitting follows the
sample. The search goes on while the statistic is positive and some term brings it nearer to zero. This adds terms
that are not needed along with those that are; a one-sided test at 5% (threshold 1.645) adds fewer and left more
bias in tau in simulated samples.

**Trying a term.** Full fits of all candidates would cost as many passes over the cells as there are terms times
candidates. A candidate is first judged by one step of proportional fitting, the current fit scaled to the new
margin (which is the fit itself if the model was independence), on a systematic sample of cells where they are
many; only the best few are fitted, each from the current fit. Cells that an empty new margin rules out are dropped
once they are a good part of the whole.

**The path** keeps every model on the way and goes a little beyond the chosen one. With few records the criteria
can be content with a bad model, so what neighbours of the chosen model say is part of the answer.

**Weights.** Margins are sums of `pseudo_counts`, and tau takes the inclusion probability of each unique. The
criteria compare plain counts with the fit times the chance to be drawn, which `weight_factors` gives every cell.

References
----------
Skinner & Shlomo (2008), Assessing identification risk in survey microdata using log-linear models, Journal of the
American Statistical Association 103, section 5, https://doi.org/10.1198/016214507000001328
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special

from keyhole.arrays import IntVector, Vector
from keyhole.inference.formula import Generators, preset, with_term
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.criteria import Criteria, Expansion, criteria_of
from keyhole.models.loglinear.information import Design, thinned
from keyhole.models.loglinear.ipf import Fitted
from keyhole.models.loglinear.search_path import Criterion, Ending, SearchPath, Step, Term, spread_of_risk
from keyhole.models.loglinear.searched_records import SearchedRecords
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

THRESHOLD = 0.0
"""The statistic of a model with enough terms: fitting makes it negative more often than not."""

REFITS = 3
"""Candidates of a step that are fitted in full."""

POINTS = 300_000
"""Cells that candidates are first judged on: many times the records, so that their choice adds little noise."""

BEYOND = 2
"""Steps that the path goes on after the choice."""

WORTH_KEEPING = 0.7
"""Share of the cells with a positive mean below which the others are dropped."""


def search_terms(
    sample: Sample,
    *,
    criterion: Criterion = "b2",
    expansion: Expansion = "published",
    largest: int = 2,
    threshold: float = THRESHOLD,
    refits: int = REFITS,
    beyond: int = BEYOND,
    progress: Progress = silent,
) -> SearchPath:
    """Search forward from independence.

    Parameters
    ----------
    criterion
        The statistic to bring to zero: that of tau1 or of tau2.
    expansion
        How the bias is estimated.
    largest
        Keys of the largest terms to be tried: 2, or 3 to go on with triples.
    threshold
        The statistic below which there is no evidence of underfitting.
    refits
        How many candidates of each step are fitted in full.
    beyond
        How many steps the path goes on after the choice.
    """
    names = tuple(key.name for key in sample.table.keys)
    trial = _Trial.of(SearchedRecords.of(sample), criterion, expansion)
    steps, chosen, found = [trial.step(())], 0, trial
    ending: Ending | None = None
    order, after = 2, 0
    while after < beyond or ending is None:
        if ending is None and trial.statistic <= threshold:
            ending = "no evidence of underfitting"
            continue
        left = candidates(trial.fitted.generators, len(names), order)
        if not left and order < largest and ending is None:
            order += 1
            continue
        if not left:
            ending = "nothing left to add" if ending is None else ending
            break
        progress("searching terms", len(steps) - 1, None, f"{len(left)} candidates, bias {trial.statistic:.2f} sd")
        term, best = trial.best_of(left, refits)
        if ending is None and abs(best.statistic) >= abs(trial.statistic):
            if order < largest:
                order += 1
                continue
            ending = "nothing improves"
        trial = best
        steps.append(trial.step(term))
        if ending is None:
            chosen, found = len(steps) - 1, trial
        else:
            after += 1
    return SearchPath(tuple(steps), chosen, criterion, ending, found.finished(), names)


def candidates(generators: Generators, keys: int, order: int) -> list[Term]:
    """Terms of so many keys that are not in the model.

    Examples
    --------
    >>> candidates(((0, 1), (2,)), 3, 2)
    [(0, 2), (1, 2)]
    """
    present = [set(generator) for generator in generators]
    return [
        term for term in combinations(range(keys), order) if not any(found.issuperset(term) for found in present)
    ]


@dataclass(frozen=True, eq=False)
class _Trial:
    """A model that has been fitted, and what the criteria say of it."""

    records: SearchedRecords
    fitted: Fitted
    found: Criteria
    criterion: Criterion
    expansion: Expansion

    @classmethod
    def of(cls, records: SearchedRecords, criterion: Criterion, expansion: Expansion) -> "_Trial":
        """Independence."""
        generators = preset(1, len(records.sample.table.keys))
        fitted = records.fit(Cells.of(records.sample, generators), generators, None)
        return cls(records, fitted, records.judge(fitted, expansion), criterion, expansion)

    @property
    def statistic(self) -> float:
        return float(getattr(self.found, self.criterion))

    def step(self, term: Term) -> Step:
        uniques, found = self.records.sample.table.uniques, self.found
        mean = self.fitted.at_occupied[uniques] * self.records.multiplier
        tau1, tau2 = float(np.exp(-mean).sum()), float(special.exprel(-mean).sum())
        sd1, sd2 = spread_of_risk(mean)
        generators, converged = self.fitted.generators, self.fitted.converged
        return Step(term, tau1, tau2, found.b1, found.b2, generators, converged, sd1, sd2)

    def best_of(self, terms: Sequence[Term], refits: int) -> tuple[Term, "_Trial"]:
        """The term whose fit has the smallest statistic, among those that look best after one step."""
        screened = self._screen(terms)
        likely = sorted(terms, key=lambda term: (screened[term], term))[:refits]
        tried = [(term, self._with(term)) for term in likely]
        term, best = min(tried, key=lambda pair: (abs(pair[1].statistic), pair[0]))
        return term, best._pruned()

    def finished(self) -> Fitted:
        """The fit to the tolerances of a final result."""
        return self.records.fit_to_the_end(self.fitted.generators, self.fitted)

    def _with(self, term: Term) -> "_Trial":
        return self._refitted(self.fitted.cells, with_term(self.fitted.generators, term))

    def _pruned(self) -> "_Trial":
        """The same without the cells that have become zero, if they are many."""
        if np.count_nonzero(self.fitted.fitted) >= WORTH_KEEPING * len(self.fitted.cells):
            return self
        generators = self.fitted.generators
        return self._refitted(Cells.of(self.records.sample, generators), generators)

    def _refitted(self, cells: Cells, generators: Generators) -> "_Trial":
        fitted = self.records.fit(cells, generators, self.fitted)
        found = self.records.judge(fitted, self.expansion)
        return _Trial(self.records, fitted, found, self.criterion, self.expansion)

    def _screen(self, terms: Sequence[Term]) -> dict[Term, float]:
        """The size of the statistic when the fit is scaled to each new margin, and to nothing else."""
        cells, records = self.fitted.cells, self.records
        fitted = self.fitted.fitted
        design = Design(cells, tuple(terms))
        now = design.margins_of(fitted)
        entries = design.entries_of(cells.occupied)
        target = np.bincount(entries.T.ravel(), np.tile(records.counts, len(terms)), design.parameters)
        factor = np.divide(target, now, out=np.zeros(design.parameters), where=now > 0)
        places, weights = sampled_cells(fitted)
        everywhere, occupied = cells.codes_at(places).T, cells.codes_at(cells.occupied).T
        means, fraction = records.drawn(fitted[places], lambda: everywhere)
        of_occupied, fraction_of_occupied = records.drawn(fitted[cells.occupied], lambda: occupied)
        size = {}
        for margin, begin in zip(design.margins, design.begins, strict=False):
            by_key = margin.in_table_order(factor[begin : begin + margin.entries], cells.order)
            found = criteria_of(
                means * by_key[tuple(everywhere[list(margin.generator)])],
                weights,
                fraction,
                of_occupied * by_key[tuple(occupied[list(margin.generator)])],
                records.sample.table.counts,
                fraction_of_occupied,
                expansion=self.expansion,
            )
            size[margin.generator] = abs(float(getattr(found, self.criterion)))
        return size


def sampled_cells(fitted: Vector, points: int = POINTS) -> tuple[IntVector, Vector]:
    """Places of cells, and how many cells each stands for: a systematic sample of the law if they are many."""
    if len(fitted) <= points:
        return np.arange(len(fitted)), np.ones(len(fitted))
    kept = thinned(fitted, points)
    places = np.flatnonzero(kept)
    return places, kept[places] / fitted[places]
