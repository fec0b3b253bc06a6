"""What do five synthetic copies of 10,000 adults give away, and what are they good for? Prints Markdown.

    python scripts/synthetic_adults.py [--records N] [--copies M] [--seed N] [--folder DIR]

A sample of the adults of the bundled Census-Income file by 14 keys, like the file of Hu, Reiter & Wang: copies,
their use in a logistic regression, and the risk of every combination of the sample over changes of one key. The
page of the risk is written into the folder. Seconds are of the run itself.
"""

import argparse
import time
from pathlib import Path

import duckdb
import numpy as np

from keyhole.data import census_income
from keyhole.report.synthesis_files import deliver_copies, deliver_judgement
from keyhole.synthesis.assess_copies import Inquiry, judge_copies
from keyhole.synthesis.make_copies import Order, make_copies

KEYS = (
    "SEX", "AGE4", "RACE5", "EDUC5", "MARITAL7", "YEAR", "BIRTH8", "VETBEN3", "STUDENT3", "INCOME2", "EMP4",
    "WEEKS5", "HHREL8", "CITIZEN5",
)  # fmt: skip
AGE = (
    "CASE WHEN AGE < 30 THEN '18-29' WHEN AGE < 45 THEN '30-44' WHEN AGE < 60 THEN '45-59' ELSE '60+' END AS AGE4"
)
FORMULA = "INCOME2 ~ SEX + AGE4 + RACE5 + EDUC5"


def write_sample(path: Path, records: int, seed: int) -> None:
    """Adults drawn at random, as CSV."""
    with duckdb.connect() as connection:
        adults = f"(SELECT *, {AGE} FROM read_parquet('{census_income.path()}') WHERE AGE >= 18)"
        (total,) = connection.execute(f"SELECT count(*) FROM {adults}").fetchall()[0]
        chosen = np.sort(np.random.default_rng(seed).choice(total, records, replace=False))
        connection.register("chosen", {"place": chosen})
        names = ", ".join(KEYS)
        connection.execute(
            f"COPY (SELECT {names} FROM (SELECT *, row_number() OVER () - 1 AS place FROM {adults}) "
            f"SEMI JOIN chosen USING (place)) TO '{path}' (HEADER)"
        )


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
    begun = time.perf_counter()
    made = make_copies(Order(str(data), KEYS, options.copies, formula=FORMULA, seed=options.seed))
    deliver_copies(made, copies, quiet=True)
    print(f"{options.copies} copies of {options.records:,} records: {time.perf_counter() - begun:.0f} s\n")
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
        f"{made.propensity.ratio.mean():.2f}\n"
    )
    begun = time.perf_counter()
    found = judge_copies(Inquiry(str(data), copies, seed=options.seed))
    seconds = time.perf_counter() - begun
    page = options.folder / "risk.html"
    deliver_judgement(
        found, page=page, json=str(options.folder / "risk.json"), command="", show_combinations=False, quiet=True
    )
    assert found.risk is not None
    risk, each, weights = found.risk, found.risk.combinations, found.risk.weights
    print(f"risk of {len(each):,} combinations: {seconds:.0f} s\n")
    rows = {
        "mean, largest chance of the truth": f"{each.probability.mean():.4f}, {each.probability.max():.3f}",
        "before the copies": f"{each.before.mean():.4f}",
        "truth first, among the first three": f"{each.ranked(1)}, {each.ranked(3)}",
        "chance more than twice that before": f"{each.above(2)}",
        "largest Monte Carlo error": f"{each.error.max():.4f}",
        "largest chance if the parameters were known": "-" if each.known is None else f"{each.known.max():.3f}",
        "k-hat above 0.7": f"{int(risk.untrusted.sum())}",
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
    m = found.matches
    print(f"\n{m}\n")
    for one_check in risk.diagnostics:
        print(f"* {one_check.words}")


if __name__ == "__main__":
    main()
