"""What do five synthetic copies of 10,000 adults give away, and what are they good for? Prints Markdown.

    python scripts/synthetic_adults.py [--records N] [--copies M] [--seed N] [--folder DIR]

A sample of the adults of the bundled Census-Income file by 14 keys with the numbers of levels of the file of Hu,
Reiter & Wang (2, 4, 6, 4, 5, 2, 7, 3, 3, 2, 2, 3, 3, 2): copies, their use in a logistic regression, and the risk
of every combination of the sample over changes of one key. The pages are written into the folder. Seconds are of
the run itself, on the clock and of all processors together.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np

from keyhole.data import census_income
from keyhole.report.synthesis_files import deliver_copies, deliver_judgement
from keyhole.synthesis.assess_copies import Inquiry, judge_copies
from keyhole.synthesis.make_copies import Order, make_copies

KEYS = {
    "SEX": "SEX",
    "AGE4": "CASE WHEN AGE < 30 THEN '18-29' WHEN AGE < 45 THEN '30-44' WHEN AGE < 60 THEN '45-59' ELSE '60+' END",
    "MARITAL6": "CASE WHEN MARITAL7 IN ('married with civilian spouse', 'married with armed forces spouse') "
    "THEN 'married' ELSE MARITAL7 END",
    "EDUC4": "EDUC5",  # no adult is a child
    "RACE5": "RACE5",
    "CITIZEN2": "CASE WHEN CITIZEN5 = 'foreign born not a citizen' THEN 'no citizen' ELSE 'citizen' END",
    "BIRTH7": "CASE WHEN BIRTH8 IN ('Mexico', 'other Latin America or Caribbean') THEN 'Latin America' "
    "ELSE BIRTH8 END",
    "FILER3": "CASE WHEN FILER6 = 'nonfiler' THEN FILER6 WHEN FILER6 LIKE 'joint%' THEN 'joint' ELSE 'alone' END",
    "WEEKS3": "CASE WHEN WEEKS5 = 'no weeks' THEN WEEKS5 WHEN WEEKS5 IN ('1-26 weeks', '27-47 weeks') "
    "THEN '1-47 weeks' ELSE '48-52 weeks' END",
    "INCOME2": "INCOME2",
    "VETBEN2": "VETBEN3",  # the question is put to all adults
    "HHREL3": "CASE WHEN HHREL8 = 'householder' THEN 'householder' WHEN HHREL8 = 'spouse of householder' "
    "THEN 'spouse' ELSE 'other' END",
    "STUDENT3": "STUDENT3",
    "HISP2": "CASE WHEN HISP10 IN ('not Hispanic', 'do not know', 'not answered') THEN 'no' ELSE 'yes' END",
}
"""The keys, from columns of the file."""

FORMULA, RICH = "INCOME2 ~ SEX + AGE4 + RACE5 + EDUC4", "50000 or more"


def write_sample(path: Path, records: int, seed: int) -> None:
    """Adults drawn at random, as CSV."""
    with duckdb.connect() as connection:
        columns = ", ".join(f"{sql} AS {name}" for name, sql in KEYS.items())
        adults = f"(SELECT {columns} FROM read_parquet('{census_income.path()}') AS file WHERE file.AGE >= 18)"
        (total,) = connection.execute(f"SELECT count(*) FROM {adults}").fetchall()[0]
        chosen = np.sort(np.random.default_rng(seed).choice(total, records, replace=False))
        connection.register("chosen", {"place": chosen})
        names = ", ".join(KEYS)
        connection.execute(
            f"COPY (SELECT {names} FROM (SELECT *, row_number() OVER () - 1 AS place FROM {adults}) "
            f"SEMI JOIN chosen USING (place)) TO '{path}' (HEADER)"
        )


@contextmanager
def timed(words: str) -> Iterator[None]:
    """Prints how long it took, on the clock and of the processors."""
    begun, used = time.perf_counter(), time.process_time()
    yield
    print(f"{words}: {time.perf_counter() - begun:.0f} s, {time.process_time() - used:.0f} s of processors\n")


def main() -> None:
    """Make, compare, judge."""
    parser = argparse.ArgumentParser(description="Synthetic adults and their risk.")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--copies", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("synthetic-adults"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    data, copies = options.folder / "adults.csv", options.folder / "copies"
    write_sample(data, options.records, options.seed)
    with timed(f"{options.copies} copies of {options.records:,} records"):
        made = make_copies(
            Order(str(data), tuple(KEYS), options.copies, formula=FORMULA, success=RICH, seed=options.seed)
        )
        deliver_copies(made, copies, quiet=True)
    print(f"levels {made.original.sizes}; {', '.join(one.words for one in made.diagnostics)}\n")
    assert made.regression is not None
    print("| coefficient | original | 95% interval | copies together | 95% interval | overlap |")
    print("|---|---|---|---|---|---|")
    for one in made.regression.coefficients:
        if one.original is not None and one.synthetic is not None and one.overlap is not None:
            a, b = one.original, one.synthetic
            print(
                f"| {one.name} | {a.estimate:.2f} | {a.low:.2f} to {a.high:.2f} | {b.estimate:.2f} | "
                f"{b.low:.2f} to {b.high:.2f} | {one.overlap:.0%} |"
            )
    print(
        f"\nlargest distance of a table of two keys {made.tables.distance.max():.3f}, pMSE ratio "
        f"{made.propensity.ratio.mean():.2f} (of another sample {made.propensity.sample_ratio.mean():.2f})\n"
    )
    with timed("risk of every combination over changes of one key"):
        found = judge_copies(Inquiry(str(data), copies, seed=options.seed))
    page = options.folder / "risk.html"
    deliver_judgement(
        found, page=page, json=str(options.folder / "risk.json"), command="", show_combinations=False, quiet=True
    )
    assert found.risk is not None
    risk, each, weights = found.risk, found.risk.combinations, found.risk.weights
    rows = {
        "combinations, of one record": f"{len(each):,}, {int((each.counts == 1).sum()):,}",
        "mean, largest chance of the truth": f"{each.probability.mean():.4f}, {each.probability.max():.3f}",
        "before the copies": f"{each.before.mean():.4f}",
        "truth first, among the first three": f"{each.ranked(1)}, {each.ranked(3)}",
        "chance more than twice that before": f"{each.above(2)}",
        "largest Monte Carlo error": f"{each.error.max():.4f}",
        "largest chance if the parameters were known": "-" if each.known is None else f"{each.known.max():.3f}",
        "not to be relied on": f"{int(risk.untrusted.sum())}",
        "importance sampler: effective draws, k-hat": f"{weights.effective.max():.1f}, {weights.khat.max():.1f}",
    }
    print("| | |\n|---|---|")
    for name, value in rows.items():
        print(f"| {name} | {value} |")
    print("\n| copies | mean chance | largest | truth first |\n|---|---|---|---|")
    for point in risk.by_copies:
        print(
            f"| {point.number} | {point.mean_probability:.4f} | {point.max_probability:.3f} | {point.top_ranked} |"
        )
    print(f"\n{found.matches}\n")
    for one_check in risk.diagnostics:
        print(f"* {one_check.words}")


if __name__ == "__main__":
    main()
