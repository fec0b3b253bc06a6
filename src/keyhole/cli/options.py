"""The options that several commands share, each described once."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from keyhole.randomness import DEFAULT_SEED


def whole_number(text: str) -> int:
    """A number of people as one is written, with separators between thousands or without.

    Examples
    --------
    >>> whole_number("299285"), whole_number("1,371,003"), whole_number("5_400_000")
    (299285, 1371003, 5400000)
    """
    if not re.fullmatch(r"[+-]?(\d+|\d{1,3}([,_]\d{3})+)", text.strip()):
        raise typer.BadParameter(f"{text!r} is not a whole number; write it like 299285 or 299,285.")
    return int(text.replace(",", "_"))


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV/TSV, Parquet, .sav, .dta, .sas7bdat, a DuckDB file, or a database URL with --table.",
        show_default=False,
    ),
]
Keys = Annotated[
    list[str],
    typer.Option(
        "--keys", metavar="A,B,C", help="Columns an intruder may know; quote a name with a comma: '\"a, b\",c'."
    ),
]
PopulationSize = Annotated[
    int | None,
    typer.Option(
        "--population-size",
        metavar="N",
        parser=whole_number,
        help="People in the population, sampled ones included.",
    ),
]
SamplingFraction = Annotated[
    float | None, typer.Option("--sampling-fraction", metavar="P", help="Sample size over population size.")
]
Weights = Annotated[
    str | None,
    typer.Option("--weights", metavar="COLUMN", help="Survey weights: people each record stands for."),
]
Table = Annotated[str | None, typer.Option("--table", metavar="NAME", help="Table of the database to read.")]
Zeros = Annotated[Path | None, typer.Option("--zeros", metavar="RULES.yaml", help="Combinations nobody can have.")]
Recode = Annotated[
    Path | None, typer.Option("--recode", metavar="RULES.yaml", help="Bands, groups, top-coding of the keys.")
]
Levels = Annotated[
    Path | None, typer.Option("--levels", metavar="CODEBOOK.yaml", help="All levels of each key, seen or not.")
]
Missing = Annotated[
    Literal["level", "drop"],
    typer.Option("--missing", help="Missing values: a level of their own, or drop the record."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**62, help="Same data, model and seed: same numbers.")]
ModelOptions = Annotated[
    list[str] | None,
    typer.Option("--model-option", metavar="NAME=VALUE", help="A setting of the model; may be repeated."),
]
Effort = Annotated[
    Literal["quick", "normal", "thorough"],
    typer.Option("--effort", help="Of auto: seconds, about a minute for 10,000 records, or as long as it takes."),
]
Chains = Annotated[int | None, typer.Option("--chains", min=1, help="Chains of models that sample.")]
Draws = Annotated[
    int | None, typer.Option("--draws", min=2, help="Draws of the parameters, of models that take a number.")
]
Warmup = Annotated[
    int | None, typer.Option("--warmup", min=0, help="Sweeps not used; 0 for the first half of each chain.")
]
TargetEss = Annotated[
    float | None, typer.Option("--target-ess", help="Effective draws of tau1 and tau2 at which chains end.")
]
MaxSeconds = Annotated[
    float | None, typer.Option("--max-seconds", help="Stop the chains of a model after this long, and say so.")
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="Go on with an interrupted run; results go to the same folder. auto keeps no chains to go on with.",
    ),
]
DrawsOut = Annotated[
    Path | None, typer.Option("--draws-out", metavar="FILE.nc", help="Draws of the chains, for ArviZ.")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write report.html and result.json into this folder.")
]
Json = Annotated[
    str | None, typer.Option("--json", metavar="PATH|-", help="Write the result as JSON; - is standard output.")
]
Records = Annotated[
    Path | None, typer.Option("--records", metavar="PATH", help="Risk of each record, CSV or Parquet.")
]
AllRecords = Annotated[
    bool, typer.Option("--all-records", help="With --records: E(1/F|f) also of records that are not unique.")
]
Report = Annotated[Path | None, typer.Option("--report", metavar="PATH", help="Write the HTML report here.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Kappa1 = Annotated[
    float, typer.Option("--kappa1", min=0, max=1, help="Sample uniques with r1 above this count as risky.")
]
Kappa2 = Annotated[
    float, typer.Option("--kappa2", min=0, max=1, help="Sample uniques with r1 below this count as safe.")
]

SEED = DEFAULT_SEED
