"""From a file, a database table or a frame to a sample: read, code the keys, tabulate, check the rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from keyhole.arrays import IntVector
from keyhole.io import Microdata, read
from keyhole.keys.codebook import read_codebook
from keyhole.keys.coding import KeyCoding, code_keys
from keyhole.keys.recode import read_recodes
from keyhole.population.sample import Sample
from keyhole.population.size import population_size as size_of_population
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.tabulate import cells_of_records, tabulate
from keyhole.table.zero_rules import read_zero_rules

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame


@dataclass(frozen=True, slots=True)
class LoadedSample:
    """A sample, and the way back to the records it was tabulated from."""

    sample: Sample
    microdata: Microdata
    codings: tuple[KeyCoding, ...]

    @property
    def dropped(self) -> int:
        """The number of records left out for a missing key."""
        return self.microdata.records - self.sample.sample_size

    def cells_of_records(self) -> IntVector:
        """The cell of each record of the input, in input order; -1 for a record left out."""
        return cells_of_records(self.microdata, self.codings, self.sample.table)


def load_sample(
    source: "str | Path | IntoFrame",
    keys: Sequence[str],
    *,
    population_size: int | None = None,
    sampling_fraction: float | None = None,
    weights: str | None = None,
    table: str | None = None,
    zeros: Path | str | None = None,
    recode: Path | str | None = None,
    levels: Path | str | None = None,
    missing: Literal["level", "drop"] = "level",
) -> LoadedSample:
    """Tabulate the key columns of ``source`` and say what population they were sampled from.

    Parameters
    ----------
    source
        A path, a database URL (with ``table``), or a pandas, Polars or Arrow frame.
    keys
        The columns an intruder may know.
    population_size, sampling_fraction, weights
        Exactly one of them: N, n/N, or the column of survey weights.
    zeros, recode, levels
        YAML files: combinations nobody can have, recodes of the keys, all levels of each key.
    missing
        Whether a missing value is a level of its own or the record is dropped.
    """
    microdata = read(source, table=table)
    codings = code_keys(
        microdata,
        keys,
        recodes=None if recode is None else read_recodes(recode),
        codebook=None if levels is None else read_codebook(levels),
        missing=missing,
    )
    tabulated = tabulate(microdata, codings, weights=weights)
    size = size_of_population(tabulated, size=population_size, fraction=sampling_fraction)
    impossible = None
    if zeros is not None:
        impossible = StructuralZeros(tabulated.keys, read_zero_rules(zeros))
        impossible.check(tabulated)
    return LoadedSample(Sample(tabulated, size, impossible), microdata, tuple(codings))
