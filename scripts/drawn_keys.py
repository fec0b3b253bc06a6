"""Keys that nobody chose: tables of real populations by keys drawn at random from all their columns."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
from real_tables import CENSUS, EPH, RealTable

COLUMNS = {
    "kdd": (
        "AGE|AGE10,SEX,MARITAL7,RACE5,HISP10,EDUC17|EDUC5,WKSTAT8|EMP4,CLASSWKR9,CITIZEN5,BIRTH8,HHREL8,PARENT5,"
        "FILER6,VETBEN3,NOEMP7,INCOME2,STUDENT3,WEEKS5"
    ),
    "eph": (
        "AGE|AGE10,SEX,MARITAL,REGION|AGLO,EDUC7|EDUC5,EMP4,WORKCAT,INC10,HEALTH4,BIRTH6,RES7,RELATION,SCHOOL,"
        "LITERATE,HHSIZE8,NCHILD"
    ),
}
"""The columns of each population; of two with a bar between them, fine and coarse, only one is used."""

FILES = {"kdd": CENSUS, "eph": EPH}
FEWEST_KEYS, MOST_KEYS = 4, 10
LOWEST, HIGHEST = 0.003, 0.15
"""Shares of unique people between which keys are kept: below nobody is at risk, above everybody."""


def drawn_tables(source: str, count: int, seed: int, folder: Path) -> list[RealTable]:
    """So many tables of one population, the same for the same seed."""
    kept: list[RealTable] = []
    with duckdb.connect() as connection:
        for keys in _drawn_keys(source, np.random.default_rng(seed)):
            counted = f"SELECT count(*) AS people FROM read_parquet(?) GROUP BY {keys}"
            query = f"SELECT count(*) FILTER (people = 1) / sum(people) FROM ({counted})"
            (share,) = connection.execute(query, [str(folder / FILES[source])]).fetchone() or (0.0,)
            if LOWEST <= share <= HIGHEST:
                kept.append(RealTable(f"{source}_drawn_{seed}_{len(kept) + 1}", FILES[source], keys))
            if len(kept) == count:
                return kept
    raise AssertionError("keys are drawn for ever")


def _drawn_keys(source: str, rng: np.random.Generator) -> Iterator[str]:
    columns = [column.split("|") for column in COLUMNS[source].split(",")]
    while True:
        number = int(rng.integers(FEWEST_KEYS, MOST_KEYS + 1))
        chosen = rng.choice(len(columns), number, replace=False)
        yield ",".join(str(rng.choice(columns[place])) for place in chosen)
