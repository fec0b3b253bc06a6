"""How far are the models from the truth on real populations? Prints a Markdown table.

For every table of a real population whose truth is known, draws samples of three sizes as its SOURCE.md says and
prints each model's tau1 and tau2 beside the truth. Populations that are not on this machine are skipped.

    python scripts/models_on_real_tables.py [--folder FOLDER] [MODEL ...]
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

from real_tables import BY_NAME, DEFAULT_FOLDER, RealTable, is_here, read_population, sampled

from keyhole.errors import NotConverged
from keyhole.models.catalogue import CATALOGUE, model_named
from keyhole.population.sample import Sample
from keyhole.risk.assess import assess_risk
from keyhole.risk.truth import Truth

SIZES, FRACTION = (1000, 5000), 0.05

TABLES = tuple(BY_NAME[name] for name in ("kdd_CA10", "kdd_NY10", "kdd_NC12", "eph_CA10", "eph_NY10", "eph_NC13"))
"""The tables of docs/reference/model-guide.md."""


def main() -> None:
    """Print the table, one row per population and model."""
    parser = argparse.ArgumentParser(description="Models against the truth on real tables.")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the populations are")
    parser.add_argument("models", nargs="*", default=list(CATALOGUE), help="all, if none is named")
    options = parser.parse_args()
    folder = options.folder
    print("| table | n | uniques | model | tau1 | interval | truth | tau2 | interval | truth | misfit |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for table in TABLES:
        if is_here(table.name, folder):
            report(table, folder, options.models)


def report(table: RealTable, folder: Path, models: Sequence[str]) -> None:
    """Print the rows of one population."""
    population = read_population(table, folder)
    for size in (*SIZES, round(FRACTION * len(population))):
        report_sample(table, *sampled(population, size), models)


def report_sample(table: RealTable, sample: Sample, truth: Truth, models: Sequence[str]) -> None:
    """Print the rows of one sample."""
    for name in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            found = assess_risk(model_named(name), sample, seed=1)
        assert found.tau1 is not None
        assert found.tau2 is not None
        misfit = "" if found.size_index_misfit is None else f"{found.size_index_misfit:,.1f}"
        print(
            f"| {table.name} | {sample.sample_size:,} | {sample.uniques:,} | {name}"
            f" | {found.tau1.estimate:,.0f} | {found.tau1.low:,.0f}-{found.tau1.high:,.0f} | {truth.tau1:,.0f}"
            f" | {found.tau2.estimate:,.0f} | {found.tau2.low:,.0f}-{found.tau2.high:,.0f} | {truth.tau2:,.0f}"
            f" | {misfit} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
