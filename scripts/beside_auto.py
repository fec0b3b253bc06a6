"""Is any single model nearer to the truth than auto? Both on the same samples, as a Markdown table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from keyhole.arrays import Vector
from keyhole.validation.replicate import Replicate, Trial

POOL = "auto"
HEAD = (
    "| table | n | model | samples | tau1: auto | model | auto worse by | tau2: auto | model | auto worse by |\n"
    + "|---" * 10
    + "|"
)
EXPLAINED = (
    "Mean absolute relative error of auto and of the model on the same samples, and by how much that of auto is "
    "larger, give or take a standard error."
)


@dataclass(frozen=True, eq=False)
class Beside:
    """Absolute relative errors of tau1 and tau2 (samples, 2) of auto, and of a model on the same samples."""

    table: str
    n: int
    model: str
    pool: Vector
    other: Vector

    @property
    def excess(self) -> tuple[Vector, Vector]:
        """By how much the mean error of auto is larger, for tau1 and tau2, and the standard error of that."""
        more = self.pool - self.other
        return more.mean(axis=0), more.std(axis=0, ddof=1) / np.sqrt(len(more))

    @property
    def line(self) -> str:
        cells = [self.table, f"{self.n:,}", self.model, str(len(self.pool))]
        for own, other, more, error in zip(
            self.pool.mean(axis=0), self.other.mean(axis=0), *self.excess, strict=True
        ):
            cells += [f"{own:.1%}", f"{other:.1%}", f"{100 * more:+.1f} ± {100 * error:.1f}"]
        return f"| {' | '.join(cells)} |"


def beside_auto(results: Mapping[Trial, Replicate]) -> Iterator[Beside]:
    """Every other model of each table and size that has an estimate of two samples and more that auto has too."""
    by_model: dict[tuple[str, int, str], dict[Trial, tuple[float, float]]] = {}
    for trial, found in results.items():
        if found.tau1 is not None and found.tau2 is not None:
            errors = abs(found.tau1.relative_error), abs(found.tau2.relative_error)
            if not np.isfinite(errors).all():
                continue  # nobody is unique in the population: no error is relative to that
            sample = replace(trial, model="", options=())
            by_model.setdefault((trial.population, trial.size, trial.model), {})[sample] = errors
    for (table, n, model), other in by_model.items():
        pool = by_model.get((table, n, POOL), {})
        common = [sample for sample in other if sample in pool]
        if model != POOL and len(common) > 1:
            yield Beside(
                table,
                n,
                model,
                np.array([pool[sample] for sample in common]),
                np.array([other[sample] for sample in common]),
            )
