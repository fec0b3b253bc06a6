"""A validation from beginning to end: which samples and models, what came of them, and how each model did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from keyhole.errors import InputError
from keyhole.models.catalogue import CATALOGUE
from keyhole.randomness import DEFAULT_SEED
from keyhole.validation.assessor import assessors, settings_of
from keyhole.validation.designs import Design, SimpleRandom
from keyhole.validation.journal import Journal
from keyhole.validation.measures import Measures, measure
from keyhole.validation.population import KnownPopulation
from keyhole.validation.replicate import Replicate, Trial
from keyhole.validation.runner import Ended, Workers, in_turn, nobody, run_trials
from keyhole.validation.sizes import check_size

EVERYBODY = "the population"


@dataclass(frozen=True)
class Study:
    """What to validate: replicate r of each size is drawn with seed ``seed + r - 1``, and every model sees it.

    Attributes
    ----------
    sizes
        Of the samples; each counts once, smallest first.
    models
        Names, ``all`` for every model.
    options
        Options by name; each goes to the models that have it.
    """

    sizes: tuple[int, ...]
    models: tuple[str, ...]
    replicates: int = 100
    design: Design = field(default=SimpleRandom())
    seed: int = DEFAULT_SEED
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.replicates < 1 or not self.sizes or not self.models:
            raise InputError("A validation needs a sample size, a model and at least one replicate.")
        object.__setattr__(self, "sizes", tuple(sorted(set(self.sizes))))
        for name, value in self.options.items():
            if not isinstance(value, str | int | float):
                raise InputError(f"The option {name} must be a text or a number, found {type(value).__name__}.")

    @property
    def assessors(self) -> tuple[str, ...]:
        """The models by name, quick ones first."""
        return assessors(self.models)

    def settings_of(self, name: str) -> dict[str, object]:
        """The settings of one of the models, with the options that it has."""
        return settings_of(name, options_of(self.assessors, self.options)[name])

    def trials(self) -> list[Trial]:
        """Every sample with every model, in an order in which a part of them is useful.

        Raises
        ------
        UnknownModel
            A model that there is not, or an option that none of the models has.
        """
        own = options_of(self.assessors, self.options)
        return in_turn(
            Trial(EVERYBODY, size, seed, name, self.design, tuple(own[name].items()))
            for size in self.sizes
            for name in self.assessors
            for seed in range(self.seed, self.seed + self.replicates)
        )


@dataclass(frozen=True, eq=False)
class Validation:
    """What came of a study; ``planned`` is how many trials it has, which time may not have allowed."""

    study: Study
    population: KnownPopulation
    results: Mapping[Trial, Replicate]
    planned: int

    @property
    def complete(self) -> bool:
        return len(self.results) == self.planned

    @property
    def measures(self) -> tuple[Measures, ...]:
        """By size, then by model in the order of the catalogue."""
        place = {name: number for number, name in enumerate(CATALOGUE)}
        return tuple(sorted(measure(self.results), key=lambda one: (one.size, place[one.model])))

    @property
    def status(self) -> Literal["ok", "not-converged", "failed", "incomplete"]:
        """``ok`` if everything that was asked for has an answer that its model stands by; else what is worst."""
        if not self.complete:
            return "incomplete"
        if any(one.failed for one in self.measures):
            return "failed"
        return "not-converged" if any(one.not_converged for one in self.measures) else "ok"

    @property
    def trusted(self) -> bool:
        return self.status == "ok"


def validate(
    study: Study,
    population: KnownPopulation,
    *,
    journal: Journal | None = None,
    workers: Workers = Workers(),  # noqa: B008
    ended: Ended = nobody,
) -> Validation:
    """Draw the samples of a study, fit its models to them, and compare with the truth.

    Examples
    --------
    >>> import numpy as np
    >>> from keyhole.keys.variable import KeyVariable
    >>> key = KeyVariable("K", tuple("abcdefgh"))
    >>> codes = np.random.default_rng(1).binomial(7, 0.4, (500, 1))
    >>> people = KnownPopulation.from_codes((key,), codes)
    >>> found = validate(Study((50,), ("benedetti-franconi",), replicates=3), people)
    >>> found.measures[0].replicates, found.complete
    (3, True)
    """
    trials = study.trials()
    for size in study.sizes:
        check_size(size, len(population))
    results = run_trials(trials, {EVERYBODY: population}, journal=journal, workers=workers, ended=ended)
    return Validation(study, population, results, len(trials))


def options_of(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of each model: those that it has, and those that none of them has, which it will refuse."""
    known = {name: set(CATALOGUE[name].options) if name in CATALOGUE else set() for name in names}
    shared = {option for option in options if any(option in theirs for theirs in known.values())}
    own = {
        name: {option: value for option, value in options.items() if option not in shared or option in known[name]}
        for name in names
    }
    for name, given in own.items():
        settings_of(name, given)
    return own
