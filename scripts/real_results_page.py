"""The page of results on real populations: models by tables for each size, and where rows come from."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from real_results import EXPLAINED, HEAD, RULE, Row
from real_tables import DECLARED, PEOPLE, ROOT, WITH_ZEROS

from keyhole.models.catalogue import CATALOGUE

SIZES = (1_000, 5_000, 10_000)
"""Sizes that every table has, besides 5% of its people."""

PAGE = ROOT / "docs" / "reference" / "real-populations.md"

INTRODUCTION = """# Models on real populations

How far each model is from the truth on seven tables of two populations: people of the US Current
Population Survey (kdd) and of the household survey of Argentina (eph), by the keys that
`scripts/real_tables.py` lists. Sample r of a table is drawn with seed r = 1, 2, ...

`python scripts/validate_real_tables.py --keep` draws the samples, fits every model to them, puts
the rows into [`real-populations.csv`](real-populations.csv) and writes this page from them;
`--models`, `--tables` and `--sizes` do a part of it.
"""

SUMMARY = """All tables together, errors from the smallest to the largest of a table, and table by table:
"""

MATRICES = """Median absolute relative error, and the share of 95% intervals that hold the truth. † more than half
of the fits say that they are not to be trusted (chains that had not met); *none*: the model could
not be fitted; an empty place: not run. *Samples* is how many were fitted, the fewest and the most
over the tables; *seconds* the median processor time of a fit, likewise. `lasso` and `skinner-shlomo`,
which take up to six minutes a sample, are on
[a page of their own](../explanation/log-linear.md#on-real-populations)
on two of the tables, 20 samples of each size; of the mixed-effects models `np-i` is tried on [tables of
other sizes](../explanation/mixed-log-linear.md)."""

ZEROS = """Combinations that nobody in the population has, for a reason, declared or not. The rules are in
`scripts/real_tables.py`.
"""

ORIGINS = """By the commit whose code made them. Options are those that are not the model's own: limits of
chains, which would else have run for minutes on each sample, and under which `auto` and the sequential
logit say the same without what is shown beside it: models without a say, run to their end, and subsamples.
Seconds are those of the machine in the row; a busy one takes several times as long.
"""


def page(rows: Sequence[Row]) -> str:
    """Everything that is kept."""
    plain = [row for row in rows if row.table in DECLARED]
    sizes = sizes_of(plain)
    return "\n".join(
        [
            INTRODUCTION,
            EXPLAINED,
            "\n## auto\n",
            SUMMARY,
            *summary([row for row in plain if row.model == "auto"], sizes),
            "",
            *table([row for row in plain if row.model == "auto"]),
            "\n## Every model\n",
            MATRICES,
            *(line for title, records in sizes for line in matrices(title, records, plain)),
            "\n## With and without structural zeros\n",
            ZEROS,
            *table(with_and_without(rows)),
            "\n## Where the numbers come from\n",
            ORIGINS,
            *origins(rows),
            "",
        ]
    )


def summary(rows: Sequence[Row], sizes: Sequence[tuple[str, Mapping[str, int]]]) -> list[str]:
    """One model by size, over all tables: how many samples, between which errors, and how many intervals held."""
    lines = ["| n | samples | error of tau1 | covered | error of tau2 | covered |", "|---" * 6 + "|"]
    for title, records in sizes:
        own = [row for row in rows if records.get(row.table) == row.n]
        cells = [f"{sum(row.fitted for row in own):,}"]
        for tau in ("tau1", "tau2"):
            found = [(row, getattr(row, tau)) for row in own if getattr(row, tau) is not None]
            held = sum(round(value.covered * row.fitted) for row, value in found)
            cells += [span([value.error for _, value in found], "{:.1%}".format), f"{held:,}"]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def table(rows: Iterable[Row]) -> list[str]:
    """Rows with all of their columns."""
    return [HEAD, RULE, *(row.line for row in rows)]


def with_and_without(rows: Sequence[Row]) -> list[Row]:
    """Rows for which there are both: with structural zeros and without."""

    def plain(row: Row) -> tuple[str, int, str]:
        return row.table.removesuffix(WITH_ZEROS), row.n, row.model

    both = {plain(row) for row in rows if row.table.endswith(WITH_ZEROS)}
    chosen = [row for row in rows if plain(row) in both]
    return sorted(chosen, key=lambda row: (DECLARED.index(plain(row)[0]), row.n, row.model, row.table))


def sizes_of(rows: Sequence[Row]) -> list[tuple[str, dict[str, int]]]:
    """The sizes there are rows of, with the number of records that each stands for in every table."""
    every: list[tuple[str, dict[str, int]]] = [
        *((f"{size:,} records", dict.fromkeys(DECLARED, size)) for size in SIZES),
        ("5% of the population", {name: round(PEOPLE[name] / 20) for name in DECLARED}),
    ]
    return [(title, own) for title, own in every if any(own[row.table] == row.n for row in rows)]


def matrices(title: str, records: Mapping[str, int], rows: Sequence[Row]) -> list[str]:
    """Errors and coverage of tau1, then of tau2, for samples of one size: a line for each model."""
    at = {row.place: row for row in rows}
    lines = []
    for tau in ("tau1", "tau2"):
        lines += [f"\n### {title}: {tau}\n", f"| model | {' | '.join(DECLARED)} | samples | seconds |"]
        lines.append("|---" * (len(DECLARED) + 3) + "|")
        for model in CATALOGUE:
            found = [at.get((name, records.get(name, 0), model)) for name in DECLARED]
            ran = [row for row in found if row is not None]
            if not ran:
                continue
            seconds = [row.seconds for row in ran if row.seconds is not None]
            cells = [*(cell(row, tau) for row in found), span([row.fitted for row in ran], "{:.0f}".format)]
            lines.append(f"| {model} | {' | '.join(cells)} | {span(seconds, '{:.1f}'.format)} |")
    return lines


def cell(row: Row | None, tau: str) -> str:
    """One model on one table.

    Examples
    --------
    >>> cell(None, "tau1")
    ''
    """
    if row is None:
        return ""
    found = row.tau1 if tau == "tau1" else row.tau2
    if found is None:
        return "none"
    doubt = " †" if 2 * row.not_converged > row.fitted else ""
    return f"{found.error:.1%}, {found.covered:.0%}{doubt}"


def span(values: Sequence[float], shown: Callable[[float], str]) -> str:
    """The least and the most of some values, once if they look alike."""
    if not values:
        return ""
    ends = dict.fromkeys([shown(min(values)), shown(max(values))])
    return " to ".join(ends)


def origins(rows: Sequence[Row]) -> list[str]:
    """How many rows of each model which code made, when and where."""
    groups: dict[tuple[int, str, str, str, str, str], list[Row]] = {}
    place = {name: number for number, name in enumerate(CATALOGUE)}
    for row in rows:
        told = f"`{row.options}`" if row.options else ""
        group = (place[row.model], row.model, told, row.commit, row.date, row.machine)
        groups.setdefault(group, []).append(row)
    lines = ["| model | options | commit | date | machine | rows | samples |", "|---" * 7 + "|"]
    for (_, *told), own in sorted(groups.items()):
        lines.append(f"| {' | '.join(told)} | {len(own)} | {sum(row.replicates for row in own):,} |")
    return lines
