"""Samples made from counts alone, and all size indices of a few records."""

from collections.abc import Iterator, Sequence

import numpy as np

from keyhole.inference.fit import RiskModel
from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import CATALOGUE, model_named
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from keyhole.table.size_index import SizeIndex

SIZE_INDEX_ALONE = [name for name, entry in CATALOGUE.items() if ".superpopulation." in entry.where]
"""Models that see nothing of the sample but how many cells hold one record, two records, ..."""

BY_LIKELIHOOD = [name for name in SIZE_INDEX_ALONE if name != "zayatz"]
"""Those of them that maximise a likelihood."""


FEW_DRAWS = {"draws": 60, "orders": 1, "nested": 0}
SHORT_CHAINS = {"chains": 2, "most_sweeps": 200, "components": 3}
OWN_LENGTH: dict[str, dict[str, object]] = {
    "auto": {"effort": "quick"},
    "gom": {"most_sweeps": 400},
    "hdp": {"most_sweeps": 400},
    "np-i": {"generators": "none"},
    "p-ii": {"generators": "main"},
}
"""Models that look at cells rarely need more sweeps; with effects of all levels the tables here have hundreds."""


def quick(name: str) -> RiskModel:
    """The model with options that make a fit fast, of those that it has."""
    return _with(name, FEW_DRAWS | SHORT_CHAINS)


def quick_chains(name: str) -> RiskModel:
    """The model with its own settings, but short chains."""
    return _with(name, SHORT_CHAINS)


def _with(name: str, options: dict[str, int]) -> RiskModel:
    given: dict[str, object] = {option: options[option] for option in CATALOGUE[name].options if option in options}
    return model_named(name, **given | OWN_LENGTH.get(name, {}))


def sample_of(counts: Sequence[int], population_size: int, keys: int = 2, levels: int = 100) -> Sample:
    """A sample with these cell counts in a table of ``levels ** keys`` cells."""
    variables = tuple(KeyVariable(f"K{j}", tuple(str(x) for x in range(levels))) for j in range(keys))
    place = np.arange(len(counts))
    digits = [(place // levels**j if levels**j < 2**62 else 0 * place) % levels for j in reversed(range(keys))]
    cells = np.stack(digits, axis=1)
    return Sample(ContingencyTable(variables, cells, np.asarray(counts, dtype=np.int64)), population_size)


def typical_sample(population_size: int = 30_000) -> Sample:
    """Three hundred uniques among a thousand records, with a tail of large cells."""
    return sample_of([1] * 300 + [2] * 80 + [3] * 35 + [5] * 20 + [12] * 10 + [35] * 4 + [75], population_size)


def partitions(records: int, largest: int | None = None) -> Iterator[list[int]]:
    """All ways to split the records into cells, as lists of counts."""
    if records == 0:
        yield []
    for first in range(min(records, largest or records), 0, -1):
        for rest in partitions(records - first, first):
            yield [first, *rest]


def index_of(counts: Sequence[int]) -> SizeIndex:
    return SizeIndex.of(np.asarray(counts, dtype=np.int64))
