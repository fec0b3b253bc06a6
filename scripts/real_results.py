"""Results on real populations: a row for each table, size and model, kept in a file."""

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from real_tables import DECLARED, ROOT, WITH_ZEROS

from keyhole.models.catalogue import CATALOGUE
from keyhole.validation.measures import Measures, TauMeasures

STORE = ROOT / "docs" / "reference" / "real-populations.csv"

MEDIAN_ERROR = 0.6745 / (2 * 1.96)
"""The median absolute error of a normal law, over the width of its 95% interval."""

HEAD = (
    "| table | n | model | replicates | failed | not converged"
    " | true tau1 | bias | error | due | covered | true tau2 | bias | error | due | covered | AUC | seconds |"
)
RULE = "|---" * 18 + "|"

EXPLAINED = (
    "*True*: median over the samples; *bias*: mean estimate over mean truth, minus 1; *error*: median absolute "
    "relative error; *due*: what it would be for normal errors that intervals of this width hold in 95%; "
    "*covered*: share of 95% intervals that hold the truth; *AUC*: of r1, mean; "
    "*seconds*: median processor time of a fit and its risk. Fits that did not converge are in all measures."
)


@dataclass(frozen=True, slots=True)
class TauRow:
    """tau1 or tau2 of one row; shares, not per cents. The last two are the extreme relative errors."""

    true: float
    bias: float
    error: float
    due: float
    covered: float
    lowest: float = math.nan
    highest: float = math.nan

    @classmethod
    def of(cls, tau: TauMeasures) -> "TauRow":
        due = MEDIAN_ERROR * tau.median_relative_width
        return cls(
            tau.median_truth,
            tau.relative_bias,
            tau.median_abs_relative_error,
            due,
            tau.coverage,
            *tau.extremes,
        )

    @property
    def columns(self) -> list[str]:
        return [
            f"{self.true:,.0f}",
            f"{self.bias:+.1%}",
            f"{self.error:.1%}",
            f"{self.due:.1%}",
            f"{self.covered:.0%}",
        ]


@dataclass(frozen=True, slots=True)
class Row:
    """One model on samples of one size of one table, and where the numbers come from.

    Attributes
    ----------
    tau1, tau2
        None where no sample could be fitted.
    said
        What fits that failed said, where all did.
    options
        Options of the model that are not its defaults, as ``name=value`` with blanks between them.
    """

    table: str
    n: int
    model: str
    replicates: int
    failed: int
    not_converged: int
    tau1: TauRow | None
    tau2: TauRow | None
    auc: float | None
    seconds: float | None
    said: str = ""
    options: str = ""
    commit: str = ""
    date: str = ""
    machine: str = ""

    @classmethod
    def of(cls, one: Measures, options: str, origin: Mapping[str, str]) -> "Row":
        return cls(
            one.population,
            one.size,
            one.model,
            one.replicates,
            one.failed,
            one.not_converged,
            None if one.tau1 is None else TauRow.of(one.tau1),
            None if one.tau2 is None else TauRow.of(one.tau2),
            one.auc_r1,
            one.processor_seconds_per_fit,
            " ".join(one.faults) if one.tau1 is None else "",
            options,
            origin.get("commit", ""),
            origin.get("when", ""),
            origin.get("machine", ""),
        )

    @property
    def place(self) -> tuple[str, int, str]:
        return self.table, self.n, self.model

    @property
    def fitted(self) -> int:
        """Samples with an estimate."""
        return self.replicates - self.failed

    @property
    def line(self) -> str:
        """The row in Markdown, under `HEAD`."""
        start = [self.table, f"{self.n:,}", self.model, str(self.replicates), str(self.failed)]
        if self.tau1 is None or self.tau2 is None:
            return f"| {' | '.join(start)} |" + " |" * 13
        auc = "" if self.auc is None else f"{self.auc:.3f}"
        cells = [*start, str(self.not_converged), *self.tau1.columns, *self.tau2.columns, auc]
        return f"| {' | '.join(cells)} | {self.seconds:.1f} |"


def read_rows(path: Path = STORE) -> list[Row]:
    """The rows that are kept; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [_row(stored) for stored in csv.DictReader(file)]


def keep_rows(rows: Iterable[Row], path: Path = STORE, *, told: Callable[[str], None] = print) -> list[Row]:
    """Put rows beside those that are kept, in the place of older ones from no more fits; gives all that are kept.

    Parameters
    ----------
    told
        Hears of rows that are left out because others from more fits are there.
    """
    kept = {row.place: row for row in read_rows(path)}
    for row in rows:
        before = kept.get(row.place)
        if before is None or before.fitted <= row.fitted:
            kept[row.place] = row
        else:
            told(f"{row.table}, n={row.n:,}, {row.model}: {before.fitted} fits are kept, not these {row.fitted}.")
    ordered = sorted(kept.values(), key=_order)
    if ordered:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(_flat(ordered[0])), lineterminator="\n")
            writer.writeheader()
            writer.writerows(_flat(row) for row in ordered)
    # Numbers are rounded in the file: a page made of it must not show others.
    return read_rows(path)


def _order(row: Row) -> tuple[int, str, int, int]:
    plain = row.table.removesuffix(WITH_ZEROS)
    place = DECLARED.index(plain) if plain in DECLARED else len(DECLARED)
    return place, row.table, row.n, list(CATALOGUE).index(row.model)


def _flat(row: Row) -> dict[str, Any]:
    """A row without rows in it, for a file; numbers with as many digits as mean anything."""
    flat: dict[str, Any] = {}
    for name, value in asdict(row).items():
        if name in ("tau1", "tau2"):
            flat |= {f"{name}_{one.name}": _short(value and value[one.name]) for one in fields(TauRow)}
        else:
            flat[name] = _short(value)
    return flat


def _short(value: Any) -> Any:
    return f"{value:.7g}" if isinstance(value, float) else value


def _row(stored: Mapping[str, str]) -> Row:
    def number(name: str) -> float | None:
        return float(stored[name]) if stored.get(name) else None

    def tau(name: str) -> TauRow | None:
        values = [number(f"{name}_{one.name}") for one in fields(TauRow)]
        # What older rows do not have is not known; a row without a truth has nothing.
        return None if values[0] is None else TauRow(*(math.nan if value is None else value for value in values))

    whole = {name: int(stored[name]) for name in ("n", "replicates", "failed", "not_converged")}
    taus = {name: tau(name) for name in ("tau1", "tau2")}
    numbers = {name: number(name) for name in ("auc", "seconds")}
    return Row(**{**stored_names(stored), **whole, **taus, **numbers})  # type: ignore[arg-type]


def stored_names(stored: Mapping[str, str]) -> dict[str, str]:
    """The columns of a row that are text."""
    return {name: stored[name] for name in ("table", "model", "said", "options", "commit", "date", "machine")}
