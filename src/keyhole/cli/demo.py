"""keyhole demo: the main job on bundled real data, with the truth beside the estimates."""

from pathlib import Path
from typing import Annotated

import typer

from keyhole.cli import options

FRACTION = 0.05


def demo(
    seed: options.Seed = options.SEED,
    report: Annotated[Path, typer.Option("--report", metavar="PATH", help="Write the HTML report here.")] = Path(
        "report.html"
    ),
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> None:
    """Assess a 5% sample of bundled census records, where the true risk is known."""
    from keyhole.cli.job import Job
    from keyhole.cli.outputs import Outputs
    from keyhole.cli.run import Choice, assess_and_deliver, chosen_models
    from keyhole.data import census_income
    from keyhole.io import read
    from keyhole.keys.coding import code_keys
    from keyhole.population.draw import simple_random_sample
    from keyhole.randomness import stream
    from keyhole.risk.truth import known_truth
    from keyhole.table.tabulate import tabulate

    outputs = Outputs(report=report, json=json, quiet=quiet)
    outputs.check()
    people = read(census_income.path())
    population = tabulate(people, code_keys(people, census_income.DEMO_KEYS))
    sample = simple_random_sample(
        population, round(FRACTION * population.records), rng=stream(seed, "demo sample")
    )
    job = Job(
        source=f"a {FRACTION:.0%} sample of {people.source}",
        sample=sample,
    )
    choice = Choice("demo", seed=seed)
    models = chosen_models(choice)
    assess_and_deliver(job, models, choice, outputs, truth=known_truth(sample.table, population))
