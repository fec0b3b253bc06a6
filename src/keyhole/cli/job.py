"""A sample ready for the models, and what the user should be told of the input."""

import csv
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from keyhole.arrays import IntVector
from keyhole.errors import DisclosureRiskWarning, InputError
from keyhole.population.loading import LoadedSample
from keyhole.population.sample import Sample


@dataclass(frozen=True, slots=True)
class Job:
    """What the models work on; ``cells_of_records`` is None where there is no file of records."""

    source: str
    sample: Sample
    warnings: tuple[str, ...] = ()
    cells_of_records: Callable[[], IntVector] | None = None


def prepare(load: Callable[[], LoadedSample]) -> Job:
    """Load the sample and collect what should be told of it."""
    with noted() as told:
        loaded = load()
    if loaded.dropped:
        told.append(
            f"{loaded.dropped:,} of {loaded.microdata.records:,} records have a missing key and were dropped; a "
            "population size given by hand should count only people without missing keys."
        )
    return Job(loaded.microdata.source, loaded.sample, tuple(told), loaded.cells_of_records)


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collects what should be told of the input; the list is complete when the block ends."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DisclosureRiskWarning)
        yield told
    told += [str(note.message) for note in caught if issubclass(note.category, DisclosureRiskWarning)]


def names(*texts: str) -> list[str]:
    """Comma-separated names; a name with a comma in it stands in double quotes.

    Examples
    --------
    >>> names("age, sex", '"sex, legal"')
    ['age', 'sex', 'sex, legal']
    """
    rows = csv.reader(texts, skipinitialspace=True)
    return [name.strip() for row in rows for name in row if name.strip()]


def settings(pairs: Sequence[str] | None) -> dict[str, str]:
    """``NAME=VALUE`` options as a mapping."""
    found = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not (name.strip() and equals):
            raise InputError(f"--model-option takes NAME=VALUE; found {pair!r}.")
        if name.strip() in found:
            raise InputError(f"--model-option gives {name.strip()} twice; give it once.")
        found[name.strip()] = value.strip()
    return found
