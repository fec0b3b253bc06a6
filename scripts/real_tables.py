"""Real populations whose truth is known: which there are, their records, samples of them and the true risk."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np

from keyhole.arrays import Codes, IntVector
from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from keyhole.table.packing import code_type
from keyhole.table.structural_zeros import StructuralZeros

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class RealTable:
    """A population's file, its keys, the records that belong to it, and keys made of others, in SQL."""

    name: str
    file: str
    keys: str
    where: str = "true"
    derived: str = ""


CENSUS, EPH = "census-income/kdd_keys.parquet", "eph/eph_keys.parquet"
EPH_CA10 = "NCHILD,AGE10,SEX,MARITAL,REGION,EDUC5,EMP4,INC10,HEALTH4,SCHOOL"
AGE_CLASSES = ", least((AGE - 21) // 6, 9) AS AGE_CLASS"
"""Ten classes of six years each from 21 on."""

REAL_TABLES = (
    RealTable("kdd_CA10", CENSUS, "PARENT5,AGE10,SEX,MARITAL7,RACE5,EDUC5,EMP4,INCOME2,CITIZEN5,VETBEN3"),
    RealTable("kdd_NY10", CENSUS, "HHREL8,FILER6,AGE10,SEX,MARITAL7,RACE5,EDUC17,WKSTAT8,CLASSWKR9,VETBEN3"),
    RealTable(
        "kdd_NC12", CENSUS, "SEX,AGE10,RACE5,EDUC5,MARITAL7,HISP10,BIRTH8,VETBEN3,EMP4,STUDENT3,CITIZEN5,WEEKS5"
    ),
    RealTable("eph_CA10", EPH, EPH_CA10),
    RealTable("eph_NY10", EPH, "RELATION,WORKCAT,AGE10,SEX,MARITAL,REGION,EDUC7,EMP4,HEALTH4,SCHOOL"),
    RealTable(
        "eph_NC13",
        EPH,
        "SEX,AGE10,MARITAL,REGION,EDUC7,BIRTH6,RES7,EMP4,WORKCAT,HEALTH4,SCHOOL,RELATION,LITERATE",
        "BIRTH6 > 0 AND RES7 > 0",
    ),
    RealTable("eph_CA10_adults18+", EPH, EPH_CA10, "AGE >= 18"),
    RealTable(
        "eph_90k", EPH, "NCHILD,AGE_CLASS,SEX,MARITAL,REGION,EMP4,EDUC5", "AGE >= 21 AND EMP4 <= 3", AGE_CLASSES
    ),
    RealTable(
        "eph_840k", EPH, "SEX,AGE_CLASS,REGION,EDUC7,WORKCAT,INC10,HEALTH4,MARITAL", "AGE >= 21", AGE_CLASSES
    ),
)
BY_NAME = {table.name: table for table in REAL_TABLES}


@dataclass(frozen=True, eq=False)
class Truth:
    """What only the population knows: how many people share each sample-unique cell, in the table's order."""

    population_counts: IntVector

    @cached_property
    def tau1(self) -> int:
        return int((self.population_counts == 1).sum())

    @cached_property
    def tau2(self) -> float:
        return float((1 / self.population_counts).sum())


@dataclass(frozen=True, eq=False)
class Population:
    """Everybody, coded, in the row order of the file."""

    people: Codes
    keys: tuple[KeyVariable, ...]

    @cached_property
    def table(self) -> ContingencyTable:
        return ContingencyTable.from_codes(self.keys, self.people)

    def sampled(self, size: int, seed: int = 1, zeros: StructuralZeros | None = None) -> tuple[Sample, Truth]:
        """A simple random sample without replacement, drawn as SOURCE.md says, and its truth."""
        chosen = np.random.default_rng(seed).choice(len(self.people), size, replace=False)
        table = ContingencyTable.from_codes(self.keys, self.people[chosen])
        return Sample(table, len(self.people), zeros), self._truth(table)

    def stratified(self, size: int, seed: int, stratum: str) -> tuple[Sample, Truth]:
        """A sample with equally many records from every level of a key, weighted by people per record."""
        rng = np.random.default_rng(seed)
        of_key = self.people[:, [key.name for key in self.keys].index(stratum)]
        levels, counts = np.unique(of_key, return_counts=True)
        taken = np.minimum(counts, size // len(levels))
        chosen = [
            rng.choice(np.flatnonzero(of_key == level), n, replace=False)
            for level, n in zip(levels, taken, strict=True)
        ]
        weights = np.repeat(counts / taken, taken)
        table = ContingencyTable.from_codes(self.keys, self.people[np.concatenate(chosen)], weights=weights)
        return Sample(table, len(self.people)), self._truth(table)

    def _truth(self, table: ContingencyTable) -> Truth:
        return Truth(self.table.counts[self.table.find(table.cells[table.uniques])])


def read_population(table: RealTable, folder: Path) -> Population:
    """The population of a table."""
    columns = table.keys.split(",")
    quoted = ", ".join(f'"{column}"' for column in columns)
    with duckdb.connect() as connection:
        fetched = connection.execute(
            f"SELECT {quoted} FROM (SELECT *, row_number() OVER () AS place {table.derived} FROM read_parquet(?)) "
            f"WHERE {table.where} ORDER BY place",
            [str(folder / table.file)],
        ).fetchnumpy()
    keys, codes = [], []
    for column in columns:
        labels, code = np.unique(np.asarray(fetched[column]), return_inverse=True)
        keys.append(KeyVariable(column, tuple(str(label) for label in labels)))
        codes.append(code.astype(code_type((len(labels),))))
    return Population(np.column_stack(codes), tuple(keys))


def population_size(table: RealTable, folder: Path) -> int:
    """The number of people, without reading their keys."""
    with duckdb.connect() as connection:
        counted = connection.execute(
            f"SELECT count(*) FROM read_parquet(?) WHERE {table.where}", [str(folder / table.file)]
        ).fetchone()
    assert counted is not None
    return int(counted[0])
