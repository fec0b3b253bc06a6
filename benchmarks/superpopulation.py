"""How long does a superpopulation model take, from the size index to the interval of tau?

Three sizes of samples from Pitman's law; the fit, a thousand laws with a joint draw each, and peak memory.
"""

import time
import tracemalloc

import numpy as np

from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import CATALOGUE, model_named
from keyhole.population.sample import Sample
from keyhole.risk.assess import risk_of_laws
from keyhole.table.contingency import ContingencyTable

SIZES = ((1_000, 50_000), (20_000, 1_000_000), (400_000, 100_000_000))


def pitman_like(records: int, people: int) -> Sample:
    """Counts with the size index Pitman's law expects at theta = 50 and sigma = 0.5, rounded."""
    from keyhole.models.superpopulation.two_parameter import TwoParameter

    sizes = np.arange(1, min(records, 5_000))
    cells = np.round(TwoParameter(50.0, 0.5).expected_size_index(sizes, records)).astype(int)
    counts = np.repeat(sizes, cells)
    side = int(np.ceil(np.sqrt(len(counts)))) + 1
    levels = tuple(str(i) for i in range(side))
    place = np.arange(len(counts))
    table = ContingencyTable(
        (KeyVariable("A", levels), KeyVariable("B", levels)),
        np.column_stack([place // side, place % side]),
        counts,
    )
    return Sample(table, people)


def main() -> None:
    """Print one line per size and model."""
    print(f"{'model':26} {'records':>9} {'uniques':>8} {'fit s':>7} {'risk s':>7} {'peak MB':>8}")
    for records, people in SIZES:
        sample = pitman_like(records, people)
        for name, entry in CATALOGUE.items():
            if not entry.where.startswith("keyhole.models.superpopulation"):
                continue
            rng = np.random.default_rng(1)
            tracemalloc.start()
            started = time.perf_counter()
            fit = model_named(name).fit(sample, rng=rng)
            fitted = time.perf_counter()
            risk_of_laws(iter(fit.unsampled()), rng=rng)
            done = time.perf_counter()
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            print(
                f"{name:26} {sample.sample_size:9,} {sample.uniques:8,} {fitted - started:7.2f} "
                f"{done - fitted:7.2f} {peak:8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
