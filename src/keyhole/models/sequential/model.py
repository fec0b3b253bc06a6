"""The sequential logit as a risk model: settings, fit, laws of the unsampled counts."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.errors import UnknownModel
from keyhole.inference.dependence import Dependence
from keyhole.inference.fit import Diagnostic
from keyhole.inference.other_samples import mean_cells
from keyhole.inference.threads import processors
from keyhole.inference.track_record import UNLIKE, UNTRIED
from keyhole.models.sequential.cell_posterior import CellPosterior, joint_scores
from keyhole.models.sequential.checks import (
    CHECKED_EFFECT,
    LARGEST_POPULATION,
    LEVEL_SHARE,
    ByOrder,
    diagnose,
    record_at,
)
from keyhole.models.sequential.found_dependence import found_dependence
from keyhole.models.sequential.joint import JointLaw, Moment, fit_joint
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import Order, key_orders
from keyhole.models.sequential.scatter import UNIT, UNIT_DEVIATION, Scatter
from keyhole.models.sequential.screening import MOST_PAIRS
from keyhole.models.sequential.shift import Shift, shift_of
from keyhole.numerics.gamma_poisson_match import gamma_poisson_match
from keyhole.population.negative_binomial import NegativeBinomialUnsampled
from keyhole.population.sample import Sample
from keyhole.population.weights import design_effect, inclusion, inclusion_by_cell
from keyhole.progress import Progress, silent
from keyhole.table.contingency import ContingencyTable

MOST_ORDERS = 5
FEWEST_DRAWS, DRAWN_SCORES = 60, 40_000_000
"""Parameter draws are fewer when uniques are very many, never fewer than the first; 4 bytes each."""

LAWS_PER_DRAW, DRAWN_LAWS = 4, 20_000_000
"""Draws of shift and scatter for each of them, fewer when there are more probabilities than this in all."""


MORE = 8.0
"""Times the root of its records: what is drawn beyond them for another sample, since of those that are drawn some
become several where cells scatter, and some none."""


@dataclass(frozen=True)
class SequentialLogit:
    r"""The joint law of the keys by the chain rule, each factor a multinomial logit in the earlier keys.

    .. math:: p(x) = \prod_j p(x_j \mid x_1 \ldots x_{j-1}), \qquad p(x_j \mid \cdot) \propto
              \exp\Bigl(b_j + \sum_{l<j} W_{jl}[x_l] + \sum_{a<b<j} W_{jab}[x_a, x_b]\Bigr)

    Parameters
    ----------
    orders
        Orders of the keys to pool, 1 to 5.
    three_way
        Three-way terms that one factor may have.
    nested
        Subsamples that check the law on the sample itself; 0 for none, and the same answer.
    draws
        Draws of the parameters behind the intervals.
    """

    orders: int = 3
    three_way: int = MOST_PAIRS
    nested: int = 6
    draws: int = 200

    def __post_init__(self) -> None:
        if not 1 <= self.orders <= MOST_ORDERS:
            raise UnknownModel(f"The option orders must be from 1 to {MOST_ORDERS}, found {self.orders}.")
        for option, least in (("three_way", 0), ("nested", 0), ("draws", 2)):
            if getattr(self, option) < least:
                raise UnknownModel(f"The option {option} must be at least {least}, found {getattr(self, option)}.")

    @property
    def name(self) -> str:
        return "sequential-logit"

    @property
    def settings(self) -> Mapping[str, object]:
        return {
            "orders": self.orders,
            "three_way": self.three_way,
            "nested": self.nested,
            "draws": self.draws,
        }

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> "SequentialLogitFit":
        if sample.zeros is not None:
            sample.zeros.check(sample.table)
        observed = Observed.of(sample)
        orders = key_orders(observed, self.orders)
        laws = self._fit_orders(sample, observed, orders, rng, progress)
        shift = shift_of(
            sample,
            observed,
            self.nested,
            len(orders),
            most_pairs=self.three_way,
            rng=rng.spawn(1)[0],  # so that the answer is the same without the check
            progress=progress,
        )
        unique = sample.table.uniques
        draws = int(np.clip(DRAWN_SCORES // max(len(unique), 1), min(FEWEST_DRAWS, self.draws), self.draws))
        scores = joint_scores(laws, unique, draws, rng)
        size = len(scores) * int(np.clip(DRAWN_LAWS // max(scores.size, 1), 1, LAWS_PER_DRAW))
        shifts = shift.mean + shift.deviation * _stratified(size, rng)
        units = UNIT * np.exp(UNIT_DEVIATION * _stratified(size, rng))
        standard = replace(self, nested=SequentialLogit.nested) == SequentialLogit()
        return SequentialLogitFit(sample, observed, tuple(laws), shift, scores, shifts, units, standard)

    def _fit_orders(
        self, sample: Sample, observed: Observed, orders: Sequence[Order], rng: Generator, progress: Progress
    ) -> list[JointLaw]:
        """One law per order, side by side on threads; each has its own stream, so their number changes nothing."""

        stopped = threading.Event()

        def proceed() -> None:
            if stopped.is_set():
                raise CancelledError

        def one(order: Order, own: Generator) -> JointLaw:
            most = self.three_way
            return fit_joint(observed, order, sample.zeros, most_pairs=most, rng=own, proceed=proceed)

        laws = []
        with ThreadPoolExecutor(max_workers=processors()) as threads:
            waiting = [
                threads.submit(one, order, own) for order, own in zip(orders, rng.spawn(len(orders)), strict=True)
            ]
            try:
                for done, law in enumerate(waiting):
                    progress("orders of the keys", done, len(orders))
                    laws.append(law.result())
            except BaseException:
                # Ctrl-C comes to this thread; the others end at their next step.
                stopped.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        progress("orders of the keys", len(orders), len(orders))
        return laws


@dataclass(frozen=True, eq=False)
class SequentialLogitFit:
    """Fitted laws in several orders, pooled, and draws from their posterior.

    Attributes
    ----------
    laws
        The joint law in each order.
    shift
        By how much every log p may be off.
    scores
        Standard normal scores of log p (draws, uniques).
    shifts, units
        The shift of each law and the unit of its scatter, several for each draw.
    standard
        Whether the settings are those that were checked on real populations.
    """

    sample: Sample
    observed: Observed
    laws: tuple[JointLaw, ...]
    shift: Shift
    scores: NDArray[np.float32] = field(repr=False)
    shifts: Vector = field(repr=False)
    units: Vector = field(repr=False)
    standard: bool = True

    @property
    def interval_leaves_out(self) -> str:
        return ""

    @property
    def effective_draws(self) -> float:
        """Of the parameters; laws that share one differ in shift and scatter alone."""
        return float(len(self.scores))

    @cached_property
    def posterior(self) -> CellPosterior:
        """The posterior of the sample-unique cells' shares of the population, before scatter and shift."""
        unique = self.sample.table.uniques
        return CellPosterior.pooled([law.moments[unique] for law in self.laws]).tilted(self.tilt[unique])

    @property
    def posterior_of_all(self) -> CellPosterior:
        """Likewise of all occupied cells."""
        return CellPosterior.pooled([law.moments for law in self.laws]).tilted(self.tilt)

    @cached_property
    def tilt(self) -> Vector:
        """The logarithm of a cell's share of the population over its share of samples like this one.

        Records are drawn from the law q of the sample, to which the logits are fitted. A person of cell x is drawn
        with probability 1/w(x), so that the population's law is p(x) = q(x) w(x) n/N; zero without weights.
        """
        return np.asarray(np.log(self.sample.sampling_fraction) - np.log(inclusion_by_cell(self.sample)))

    @cached_property
    def sides(self) -> tuple[Vector, Vector]:
        """For each unique, the people in and outside of the sample who count for its cell.

        n and N - n in a simple random sample. With weights a person of the cell is in the sample with probability
        1/w, so that N p / w people of the cell are expected in it and N p (1 - 1/w) outside of it.
        """
        chance, people = inclusion(self.sample), self.sample.population_size
        return people * chance, people * (1.0 - chance)

    def unsampled(self) -> Iterator[NegativeBinomialUnsampled]:
        """Each draw of the parameters with several of the shift and of the scatter."""
        each = len(self.shifts) // max(len(self.scores), 1)
        for place, scores in enumerate(self.scores):
            log_p = self.posterior.log_draw(scores)
            own = slice(place * each, (place + 1) * each)
            for shift, unit in zip(self.shifts[own], self.units[own], strict=True):
                yield Scatter(unit).unsampled(log_p + shift, *self.sides)

    def mean_match_all(self) -> Vector:
        """E(1/F | f) of each occupied cell; of cells with several records at the mean of shift and scatter.

        The shift is that of cells with one record. Where f of them speak for themselves it is about 1/f of it.
        """
        counts, people = self.sample.table.counts, self.sample.population_size
        chance = inclusion_by_cell(self.sample)
        log_mean, shape = Scatter().around(self.posterior_of_all, people * chance, counts)
        mean = people * (1.0 - chance) * np.exp(log_mean + self.shift.mean / counts)
        match = gamma_poisson_match(counts, shape, mean)
        if self.sample.uniques:
            match[self.sample.table.uniques] = np.mean([law.mean_match() for law in self.unsampled()], axis=0)
        return match

    @cached_property
    def dependence(self) -> Dependence:
        return found_dependence(self.laws, [key.name for key in self.sample.table.keys])

    @cached_property
    def log_score(self) -> float:
        """The mean log probability that the fit without a record gives that record."""
        return float(np.mean(self._left_out @ self.observed.records) / self.observed.records.sum())

    @cached_property
    def log_by_cell(self) -> Vector:
        """log p(x | all records but one in x) by occupied cell x, the orders pooled."""
        return np.asarray(np.logaddexp.reduce(self._left_out) - np.log(len(self.laws)))

    @cached_property
    def _left_out(self) -> Vector:
        """log p of a record under the fit without it, by order and occupied cell."""
        return np.array([law.moments[:, Moment.LOG_P] - law.moments[:, Moment.LOSS] for law in self.laws])

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        checks = diagnose(self.sample, self.laws, self.shift, self.dependence, self.log_score, self._by_order())
        return (*checks, *self._record(checks))

    def _record(self, checks: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
        """That of samples like this one; of weights the checks have their own words, and of certainty none."""
        certain = not self.sample.uniques or not self.sample.unsampled_size
        if certain or design_effect(self.sample) >= CHECKED_EFFECT:
            return ()
        if not self.standard:
            return (UNTRIED,)
        odd = self.sample.population_size > LARGEST_POPULATION or self.shift.extrapolated
        odd |= any(check.name == LEVEL_SHARE and check.verdict != "good" for check in checks)
        return (UNLIKE if odd else record_at(self.sample.sample_size).diagnostic(),)

    def _by_order(self) -> ByOrder:
        """tau1 and tau2 of each order alone, at the mean of the posterior of the parameters.

        Their deviations hold what chance makes of the unsampled counts (for tau2 at most: 1/(1 + U) lies between 0
        and 1) and the common shift.
        """
        unique, (sampled, trials) = self.sample.table.uniques, self.sides
        found = []
        for law in self.laws:
            own = CellPosterior.pooled([law.moments[unique]]).tilted(self.tilt[unique])
            risks = Scatter().risks(own, sampled, trials, self.shift.mean)
            shifted = Scatter().risks(own, sampled, trials, self.shift.mean + self.shift.deviation)
            for risk, moved in zip(risks, shifted, strict=True):
                tau, chance = float(risk.sum()), float((risk * (1.0 - risk)).sum())
                found.append((tau, float(np.sqrt(chance + (float(moved.sum()) - tau) ** 2))))
        by_order = np.array(found).reshape(-1, 2, 2)
        return ByOrder(by_order[:, 0, 0], by_order[:, 1, 0], by_order[:, 0, 1], by_order[:, 1, 1])

    def expected_cells(self, sizes: IntVector, rng: Generator) -> Vector:
        """Cells with so many records each in another sample: the mean over draws of the posterior predictive law.

        As for the risk, coefficients are drawn from their posterior, and cells scatter.
        """
        keys, records = self.sample.table.keys, self.sample.sample_size
        enough = records + int(MORE * np.sqrt(records)) + 1

        def another(own: Generator) -> IntVector:
            laws = [law.drawn(own) for law in self.laws]
            dense, size = np.empty((0, len(keys)), dtype=np.int64), enough
            while len(dense) < records:
                drawn = _by_law(laws, size, own)
                log_p = np.concatenate(
                    [law.log_probability(cells) for law, cells in zip(laws, drawn, strict=True)]
                )
                dense = np.repeat(np.concatenate(drawn), Scatter().crowds(log_p, size, own), axis=0)
                size += records // 10 + 1  # where full cells scatter, there can be too few
            own.shuffle(dense)
            return ContingencyTable.from_codes(keys, self._table_codes(dense[:records])).counts

        return mean_cells(another, sizes, records, rng)

    def simulate(self, size: int, rng: Generator) -> Codes:
        """Records of a population like this one, as codes of the table's levels; each from one order's law."""
        dense = np.concatenate(_by_law(self.laws, size, rng))
        rng.shuffle(dense)
        return self._table_codes(dense)

    def _table_codes(self, dense: IntVector) -> Codes:
        columns = [levels[codes] for levels, codes in zip(self.observed.levels, dense.T, strict=True)]
        return np.stack(columns, axis=1)


def _by_law(laws: Sequence[JointLaw], size: int, rng: Generator) -> list[IntVector]:
    """Records in dense codes, as many from each law."""
    shares = np.array_split(np.arange(size), len(laws))
    return [law.simulate(len(share), rng) for law, share in zip(laws, shares, strict=True)]


def _stratified(size: int, rng: Generator) -> Vector:
    """Standard normal numbers with both signs, one in each of as many equally likely parts, in any order.

    What all cells share makes most of the interval of tau, whose ends are then hardly left to chance.
    """
    below = np.arange(size // 2)
    half = special.ndtri((below + rng.random(len(below))) / max(size, 1))
    return rng.permutation(np.concatenate([half, -half, np.zeros(size % 2)]))
