"""How far are the models of the size index from the truth on real populations? Prints a Markdown table.

For every table of a real population whose truth is known, draws samples of three sizes as its SOURCE.md says and
prints each model's tau1 and tau2 beside the truth. Populations that are not on this machine are skipped.

    python scripts/superpopulation_on_real_tables.py [FOLDER]
"""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from keyhole.arrays import Codes
from keyhole.errors import NotConverged
from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import CATALOGUE, model_named
from keyhole.population.sample import Sample
from keyhole.risk.assess import assess_risk
from keyhole.table.contingency import ContingencyTable

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZES, FRACTION = (1000, 5000), 0.05


@dataclass(frozen=True)
class Table:
    """A population, its keys and the records that belong to it."""

    name: str
    file: str
    keys: str
    where: str = "true"


CENSUS, EPH = "census-income/kdd_keys.parquet", "eph/eph_keys.parquet"
TABLES = (
    Table("kdd_CA10", CENSUS, "PARENT5,AGE10,SEX,MARITAL7,RACE5,EDUC5,EMP4,INCOME2,CITIZEN5,VETBEN3"),
    Table("kdd_NY10", CENSUS, "HHREL8,FILER6,AGE10,SEX,MARITAL7,RACE5,EDUC17,WKSTAT8,CLASSWKR9,VETBEN3"),
    Table(
        "kdd_NC12", CENSUS, "SEX,AGE10,RACE5,EDUC5,MARITAL7,HISP10,BIRTH8,VETBEN3,EMP4,STUDENT3,CITIZEN5,WEEKS5"
    ),
    Table("eph_CA10", EPH, "NCHILD,AGE10,SEX,MARITAL,REGION,EDUC5,EMP4,INC10,HEALTH4,SCHOOL"),
    Table("eph_NY10", EPH, "RELATION,WORKCAT,AGE10,SEX,MARITAL,REGION,EDUC7,EMP4,HEALTH4,SCHOOL"),
    Table(
        "eph_NC13",
        EPH,
        "SEX,AGE10,MARITAL,REGION,EDUC7,BIRTH6,RES7,EMP4,WORKCAT,HEALTH4,SCHOOL,RELATION,LITERATE",
        "BIRTH6 > 0 AND RES7 > 0",
    ),
)


def main() -> None:
    """Print the table, one row per population and model."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER
    print("| table | n | uniques | model | tau1 | interval | truth | tau2 | interval | truth | misfit |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for table in TABLES:
        path = folder / table.file
        if path.is_file():
            report(table, path)
        else:
            print(f"{table.name} skipped: {path} is not on this machine.", file=sys.stderr)


def report(table: Table, path: Path) -> None:
    """Print the rows of one population."""
    people, keys = records(table, path)
    for size in (*SIZES, round(FRACTION * len(people))):
        report_sample(table, *sampled(people, keys, size))


def report_sample(table: Table, sample: Sample, truth: tuple[int, float]) -> None:
    """Print the rows of one sample."""
    for name in CATALOGUE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            found = assess_risk(model_named(name), sample, seed=1)
        assert found.tau1 is not None
        assert found.tau2 is not None
        misfit = "" if found.size_index_misfit is None else f"{found.size_index_misfit:,.1f}"
        print(
            f"| {table.name} | {sample.sample_size:,} | {sample.uniques:,} | {name}"
            f" | {found.tau1.estimate:,.0f} | {found.tau1.low:,.0f}-{found.tau1.high:,.0f} | {truth[0]:,}"
            f" | {found.tau2.estimate:,.0f} | {found.tau2.low:,.0f}-{found.tau2.high:,.0f} | {truth[1]:,.0f}"
            f" | {misfit} |",
            flush=True,
        )


def records(table: Table, path: Path) -> tuple[Codes, list[KeyVariable]]:
    """Everybody in the population, coded."""
    columns = table.keys.split(",")
    quoted = ", ".join(f'"{column}"' for column in columns)
    with duckdb.connect() as connection:
        fetched = connection.execute(
            f"SELECT {quoted} FROM (SELECT *, row_number() OVER () AS place FROM read_parquet(?)) "
            f"WHERE {table.where} ORDER BY place",
            [str(path)],
        ).fetchnumpy()
    keys, codes = [], []
    for column in columns:
        labels, code = np.unique(np.asarray(fetched[column]), return_inverse=True)
        keys.append(KeyVariable(column, tuple(str(label) for label in labels)))
        codes.append(code)
    return np.column_stack(codes), keys


def sampled(people: Codes, keys: list[KeyVariable], size: int) -> tuple[Sample, tuple[int, float]]:
    """A simple random sample without replacement, and its true tau1 and tau2."""
    population = ContingencyTable.from_codes(keys, people)
    chosen = np.random.default_rng(1).choice(len(people), size, replace=False)
    sample = ContingencyTable.from_codes(keys, people[chosen])
    sizes = population.counts[population.find(sample.cells[sample.uniques])]
    return Sample(sample, len(people)), (int((sizes == 1).sum()), float((1 / sizes).sum()))


if __name__ == "__main__":
    main()
