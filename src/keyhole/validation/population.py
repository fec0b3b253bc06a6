"""A population that is known in full: who is in which cell, samples of it, and their true risk."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.errors import InputError
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.risk.truth import Truth
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame


@dataclass(frozen=True, eq=False)
class KnownPopulation:
    """Everybody, in the row order of the file.

    Attributes
    ----------
    table
        The population's counts by key variables.
    cell_of
        The position in ``table.cells`` of each person's cell.
    zeros
        Combinations that nobody can have, which the models are told of.
    columns
        Codes of each person in columns that are no keys, for strata.

    Examples
    --------
    >>> sex = KeyVariable("SEX", ("f", "m"))
    >>> people = KnownPopulation.from_codes((sex,), np.array([[1], [0], [1]]))
    >>> sample, truth = people.sample(np.array([1, 2]))
    >>> sample.table.counts.tolist(), truth.tau1, truth.tau2
    ([1, 1], 1.0, 1.5)
    """

    table: ContingencyTable
    cell_of: IntVector = field(repr=False)
    zeros: StructuralZeros | None = None
    columns: Mapping[str, IntVector] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.zeros is not None:
            self.zeros.check(self.table)

    @classmethod
    def from_codes(
        cls, keys: Sequence[KeyVariable], people: Codes, zeros: StructuralZeros | None = None
    ) -> "KnownPopulation":
        """The population whose people have these codes, a row each."""
        table = ContingencyTable.from_codes(keys, people)
        return cls(table, table.find(people).astype(np.int64), zeros)

    def __len__(self) -> int:
        return len(self.cell_of)

    def __sizeof__(self) -> int:
        # A cluster sends what is large to its workers once, not with every task.
        return int(self.cell_of.nbytes + self.table.cells.nbytes)

    @property
    def keys(self) -> tuple[KeyVariable, ...]:
        return self.table.keys

    def sample(self, chosen: IntVector, weights: Vector | None = None) -> tuple[Sample, Truth]:
        """The sample of these people, given by row, and its true risk; weights are theirs, in the same order."""
        cells, everybody = self.cell_of[chosen], self.table.counts
        counts = np.bincount(cells, minlength=len(everybody))
        occupied = np.flatnonzero(counts)
        heavy, squares = (
            None if w is None else np.bincount(cells, w, len(everybody))[occupied].astype(np.float64)
            for w in (weights, None if weights is None else np.square(weights))
        )
        drawn = ContingencyTable(
            self.keys, self.table.cells[occupied], counts[occupied].astype(np.int64), heavy, squares
        )
        unique = np.asarray(everybody[occupied[drawn.uniques]])
        truth = Truth(float((unique == 1).sum()), float((1.0 / unique).sum()), unique)
        return Sample(drawn, len(self), self.zeros), truth

    def strata(self, names: Sequence[str]) -> IntVector:
        """The stratum of each person: a number for each combination of these keys or other loaded columns."""
        place = {key.name: j for j, key in enumerate(self.keys)}
        unknown = [name for name in names if name not in place and name not in self.columns]
        if unknown or not names:
            raise InputError(f"Strata need columns that were loaded; not loaded: {', '.join(unknown) or 'any'}.")
        stratum = np.zeros(len(self), dtype=np.int64)
        for name in names:
            codes = self.table.cells[self.cell_of, place[name]] if name in place else self.columns[name]
            # Numbered anew after each column: the numbers stay below the number of people.
            _, stratum = np.unique(stratum * (int(codes.max()) + 1) + codes, return_inverse=True)
        return np.asarray(stratum, dtype=np.int64)

    @cached_property
    def digest(self) -> str:
        """Changes when anything changes that a sample of this population depends on."""
        whole = hashlib.sha256()
        for key in self.keys:
            whole.update(repr((key.name, key.levels)).encode())
        for values in (self.table.cells, self.cell_of):
            whole.update(repr(values.shape).encode())
            whole.update(np.ascontiguousarray(values, dtype="<i8").tobytes())
        for name in sorted(self.columns):
            whole.update(name.encode())
            whole.update(np.ascontiguousarray(self.columns[name], dtype="<i8").tobytes())
        if self.zeros is not None:
            whole.update(repr(self.zeros.rules.rules).encode())
        return whole.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class LoadedPopulation:
    """A population, what its file is called, and how many of its records were left out for a missing key."""

    population: KnownPopulation
    source: str
    dropped: int


def load_population(
    source: "str | Path | IntoFrame",
    keys: Sequence[str],
    *,
    table: str | None = None,
    zeros: Path | str | None = None,
    recode: Path | str | None = None,
    levels: Path | str | None = None,
    missing: Literal["level", "drop"] = "level",
    strata: Sequence[str] = (),
) -> LoadedPopulation:
    """Read a file that holds everybody; the options are those of `load_sample`.

    Parameters
    ----------
    strata
        Columns to draw strata by; recodes act on them too, and missing values are a stratum.
    """
    from keyhole.keys.coding import code_keys
    from keyhole.keys.recode import read_recodes
    from keyhole.population.loading import load_sample
    from keyhole.table.tabulate import cells_of_records, tabulate

    loaded = load_sample(
        source,
        keys,
        sampling_fraction=1.0,
        table=table,
        zeros=zeros,
        recode=recode,
        levels=levels,
        missing=missing,
    )
    cell_of = loaded.cells_of_records()
    kept = np.flatnonzero(cell_of >= 0)
    columns = {}
    for name in strata:
        if name not in keys:
            recodes = None if recode is None else read_recodes(recode)
            coding = code_keys(loaded.microdata, [name], recodes=recodes)
            columns[name] = cells_of_records(loaded.microdata, coding, tabulate(loaded.microdata, coding))[kept]
    people = KnownPopulation(loaded.sample.table, cell_of[kept], loaded.sample.zeros, columns)
    return LoadedPopulation(people, loaded.microdata.source, loaded.dropped)
