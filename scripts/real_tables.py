"""Real populations whose truth is known: which there are, their records, samples of them and the true risk."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np

from keyhole.keys.variable import KeyVariable
from keyhole.population.sample import Sample
from keyhole.risk.truth import Truth
from keyhole.table.packing import code_type
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
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

PEOPLE = {
    "kdd_CA10": 299_285,
    "kdd_NY10": 299_285,
    "kdd_NC12": 299_285,
    "eph_CA10": 1_371_003,
    "eph_NY10": 1_371_003,
    "eph_NC13": 1_244_423,
    "eph_CA10_adults18+": 972_897,
}
"""How many people each of them has, also where their records are not on this machine."""

WITH_ZEROS = " with zeros"
"""What follows a table's name where its structural zeros are declared."""

# Pairs of levels that nobody in the whole population has although both occur, where there is a reason for it. The
# fit checks them against the population. Left out: pairs without a reason, and reasons that some records break
# (a few of the youngest tenths are coded as married in kdd, or as widowed in eph).
ZEROS = {
    "kdd_CA10": """
- {AGE10: [1, 2], MARITAL7: [1, 2, 4, 6, 7]}     # children were never married (3: a few are coded so)
- {AGE10: [1, 2], EDUC5: {not: [1]}}             # and have no grade,
- {AGE10: [1, 2], EMP4: {not: [4]}}              # no employment status,
- {AGE10: [1, 2], INCOME2: 2}                    # no high income,
- {AGE10: [1, 2], VETBEN3: 2}                    # no veteran benefits
- {EDUC5: 1, AGE10: {not: [1, 2, 3]}}            # who is asked no grade is a child, with all that follows
- {EDUC5: 1, MARITAL7: [1, 2, 4, 6, 7]}
- {EDUC5: 1, EMP4: {not: [4]}}
- {EDUC5: 1, INCOME2: 2}
- {EDUC5: 1, VETBEN3: 2}
- {VETBEN3: 1, AGE10: {not: [1, 2, 3]}}          # likewise who is not asked about veteran benefits
- {VETBEN3: 1, EMP4: {not: [4]}}
- {VETBEN3: 1, INCOME2: 2}
- {VETBEN3: 1, EDUC5: [3, 4, 5]}
- {PARENT5: {not: [5]}, AGE10: {not: [1, 2, 3]}} # parents are recorded for those under 18
""",
    "eph_NY10": """
- {AGE10: 1, RELATION: [1, 2]}                   # children up to 6 head no household and are nobody's spouse,
- {AGE10: 2, RELATION: 2}                        # nor are those up to 12 a spouse
- {AGE10: 1, WORKCAT: {not: [0]}}                # they do not work,
- {AGE10: 1, EMP4: [1, 2]}                       # nor look for work,
- {AGE10: 1, EDUC7: [4, 6]}                      # and have finished neither secondary nor higher education
- {AGE10: [1, 2], MARITAL: 3}                    # nobody up to 12 is divorced
- {EMP4: 4, WORKCAT: {not: [0]}}                 # who is not interviewed has no work category
- {SCHOOL: 3, EDUC7: {not: [7]}}                 # who never attended a school has no level of education
""",
}


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


def named_population(name: str, folder: Path) -> KnownPopulation:
    """The population of a table by its name, with its structural zeros if the name ends so."""
    table = name.removesuffix(WITH_ZEROS)
    population = read_population(BY_NAME[table], folder)
    if table == name:
        return population
    rules = parse_zero_rules(ZEROS[table], f"the rules of {table}")
    return replace(population, zeros=StructuralZeros(population.keys, rules))


def is_here(name: str, folder: Path) -> bool:
    """Whether the population of a table is on this machine; tells when it is not."""
    path = folder / BY_NAME[name.removesuffix(WITH_ZEROS)].file
    if not path.is_file():
        print(f"{name} skipped: {path} is not on this machine.", file=sys.stderr)
    return path.is_file()
