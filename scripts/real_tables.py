"""Real populations whose truth is known: which there are, their records, samples of them and the true risk."""

import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.risk.truth import Truth
from keyhole.table.packing import code_type
from keyhole.validation.designs import SimpleRandom
from keyhole.validation.population import KnownPopulation

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_FOLDER = ROOT.parent / "shared" / "data"


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

DECLARED = tuple(table.name for table in REAL_TABLES[:7])
"""The tables whose truth SOURCE.md states."""


def sampled(population: KnownPopulation, size: int, seed: int = 1) -> tuple[Sample, Truth]:
    """A simple random sample without replacement, drawn as SOURCE.md says, and its truth."""
    return population.sample(*SimpleRandom().draw(population, size, rng=np.random.default_rng(seed)))


def read_population(table: RealTable, folder: Path) -> KnownPopulation:
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
    return KnownPopulation.from_codes(tuple(keys), np.column_stack(codes))


def population_size(table: RealTable, folder: Path) -> int:
    """The number of people, without reading their keys."""
    with duckdb.connect() as connection:
        counted = connection.execute(
            f"SELECT count(*) FROM read_parquet(?) WHERE {table.where}", [str(folder / table.file)]
        ).fetchone()
    assert counted is not None
    return int(counted[0])


def is_here(name: str, folder: Path) -> bool:
    """Whether the population of a table is on this machine; tells when it is not."""
    path = folder / BY_NAME[name].file
    if not path.is_file():
        print(f"{name} skipped: {path} is not on this machine.", file=sys.stderr)
    return path.is_file()
