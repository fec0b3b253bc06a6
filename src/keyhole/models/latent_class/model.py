"""The latent class model, also known as DPMPM."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

from numpy.random import Generator

from keyhole.errors import UnknownModel
from keyhole.inference.chain import Watched
from keyhole.inference.chain_settings import ChainSettings
from keyhole.inference.chains import Chains, run_chains
from keyhole.inference.fit import Diagnostic
from keyhole.inference.ignored_weights import ignored_weights
from keyhole.inference.other_samples import redrawn_counts
from keyhole.inference.sampled_fit import SampledFit
from keyhole.inference.track_record import UNTRIED
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.models.latent_class.state import LatentClasses
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent

FEWEST_CLASSES, MOST_CLASSES, ENOUGH_RECORDS = 50, 400, 2000
"""Classes at first, twice as many for every fourfold of these records, and at most, if they are not given."""

NEAR = 0.9
"""Share of the classes which, once occupied, shows that the truncation binds."""

EVERY = 5
"""Sweeps between two looks at the cells' probabilities, which cost half a sweep."""

PRIORS = ("marginal", "uniform")


@dataclass(frozen=True)
class LatentClass(ChainSettings):
    """People of a class choose their levels independently; the number of classes is learned.

    Attributes
    ----------
    classes
        At most so many; 0 for enough: 50 or more by the size of the sample, doubled while nine tenths of them are
        occupied.
    prior
        Of a class's level probabilities: ``marginal``, around the learned marginal law of each key with a learned
        mass, or ``uniform``, as in the papers.
    """

    classes: int = 0
    prior: str = "marginal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior not in PRIORS:
            raise UnknownModel(f"The option prior must be {' or '.join(PRIORS)}, found {self.prior!r}.")
        if self.classes < 0 or self.classes == 1:
            raise UnknownModel(f"The option classes must be 0 or at least 2, found {self.classes}.")

    @property
    def name(self) -> str:
        return "latent-class"

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> SampledFit:
        if sample.zeros is not None:
            sample.zeros.check(sample.table)
        used = 0.0  # the limit is for sampling, as it is within a run
        tree = CellTree.of(sample.table.levels, sample.table.cells, sample.table.counts)
        classes = self.classes or first_classes(sample.sample_size)
        while True:
            found = run_chains(
                self._sampler(sample, classes),
                tree,
                Watched(sample, EVERY),
                self.schedule.after(used),
                rng=rng,
                progress=progress,
                checkpoint=self.checkpoint_of(f"{self.name}.{classes}", sample, rng),
            )
            binds = _most_occupied(found) >= NEAR * classes
            used += found.seconds
            left = self.schedule.after(used).max_seconds
            if self.classes or not binds or 2 * classes > MOST_CLASSES or found.ending in ("interrupted", "time"):
                break
            if left is not None and left < found.seconds:
                found = replace(found, ending="time")  # more classes take longer than these did
                break
            classes *= 2
        remarks = (
            *_remarks(found, classes, binds, self._way_on(found, classes)),
            *ignored_weights(sample),
            UNTRIED,
        )
        return SampledFit(
            sample, found, remarks, another=partial(redrawn_counts, self._sampler(sample, classes), sample)
        )

    def _way_on(self, found: Chains[LatentClasses], classes: int) -> str:
        """How to get more classes than these, in words."""
        if self.classes or 2 * classes > MOST_CLASSES:
            return f"set the option classes to more than {classes}"
        kept = self.checkpoint and found.ending != "converged"
        return (
            "let it go on (--resume), or set the option classes"
            if kept
            else "give it more time, or set the option classes"
        )

    def _sampler(self, sample: Sample, classes: int) -> LatentClassSampler:
        diagram = None if sample.zeros is None else sample.zeros.small_diagram
        prior = cast(Literal["uniform", "marginal"], self.prior)
        return LatentClassSampler(sample.table.levels, classes, prior, diagram=diagram)


def first_classes(records: int) -> int:
    """The truncation to begin with.

    Examples
    --------
    >>> [first_classes(records) for records in (500, 2_000, 8_000, 10_000, 10**6)]
    [50, 50, 100, 200, 400]
    """
    doublings = max(math.ceil(math.log(records / ENOUGH_RECORDS, 4)), 0) if records else 0
    return min(FEWEST_CLASSES << doublings, MOST_CLASSES)


def _most_occupied(found: Chains[LatentClasses]) -> int:
    return int(found.values("classes").max(initial=0.0))


def _remarks(found: Chains[LatentClasses], classes: int, binds: bool, way_on: str) -> tuple[Diagnostic, ...]:
    mean = float(found.values("classes").mean())
    words = f"About {mean:.0f} classes were occupied, never more than {_most_occupied(found)} of {classes}."
    if binds:
        words += f" More might be needed: {way_on}."
    return (Diagnostic("classes", mean, "caution" if binds else "good", words),)
