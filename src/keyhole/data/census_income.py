"""Where is the bundled population of 299,285 people, and which of its columns make a telling example?

The file holds the person records of Census-Income (KDD): labelled key variables, one row per record, in the order
of the source. ``docs/reference/DATA.md`` lists every column, label and caveat; ``scripts/make_census_income.py``
makes the file.
"""

from importlib.resources import files
from pathlib import Path
from typing import Final

TITLE: Final = "Census-Income (KDD), US Current Population Survey, March 1994 and 1995"
ATTRIBUTION: Final = (
    "Census-Income (KDD), UCI Machine Learning Repository, 2000, https://doi.org/10.24432/C5N30T, CC BY 4.0; "
    "recoded and labelled. The underlying US Current Population Survey is in the public domain."
)

POPULATION_SIZE: Final = 299_285

# What a neighbour or a colleague may well know. A 5% sample has enough uniques to model and a clear minority of
# them are unique in the population; none of the seven keys tells the two survey years apart, as EMP4 would.
DEMO_KEYS: Final[tuple[str, ...]] = ("AGE10", "SEX", "MARITAL7", "RACE5", "EDUC5", "CLASSWKR9", "CITIZEN5")


def path() -> Path:
    """The Parquet file on this machine.

    Examples
    --------
    >>> path().name
    'census_income.parquet'
    """
    return Path(str(files("keyhole.data").joinpath("census_income.parquet")))
