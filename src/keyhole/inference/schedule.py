"""How long chains run."""

from dataclasses import dataclass, replace

ROUND = 25
"""Sweeps of a chain between two looks at the clock; a checkpoint holds whole rounds."""

FIRST_LOOK, GROWTH = 300, 1.25
"""Sweeps after which convergence is first judged, and by how much they grow until the next judgement."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When to stop: converged, out of time, or at the limit.

    Attributes
    ----------
    chains
        Half of them start with few classes and half with many.
    warmup
        Sweeps that are not used; None for the first half of each chain.
    target_ess
        Effective draws of tau1 and of tau2, over all chains together, that end a run.
    max_seconds
        Stop after this long and say so; None for no limit.
    most_sweeps
        Per chain.
    """

    chains: int = 4
    warmup: int | None = None
    target_ess: float = 400.0
    max_seconds: float | None = None
    most_sweeps: int = 20_000

    def __post_init__(self) -> None:
        if self.chains < 1 or self.most_sweeps < ROUND:
            raise ValueError(f"A run needs at least one chain and {ROUND} sweeps.")
        if self.warmup is not None and self.warmup + ROUND > self.most_sweeps:
            raise ValueError(f"A warm-up of {self.warmup:,} sweeps leaves none of {self.most_sweeps:,} to use.")
        if not self.target_ess > 0 or (self.warmup is not None and self.warmup < 0):
            raise ValueError("The target of effective draws must be positive and the warm-up not negative.")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ValueError("The time limit must be positive.")

    def unused(self, sweeps: int) -> int:
        """How many of a chain's first sweeps are warm-up."""
        return sweeps // 2 if self.warmup is None else min(self.warmup, sweeps)

    def after(self, seconds: float) -> "Schedule":
        """What is left of the schedule when so much of its time is gone."""
        if self.max_seconds is None:
            return self
        return replace(self, max_seconds=max(self.max_seconds - seconds, 1e-3))

    def judges(self, sweeps: int) -> bool:
        """Whether convergence is judged after that many sweeps: at fixed numbers, so that results are repeatable.

        Examples
        --------
        >>> [sweeps for sweeps in range(0, 800, 25) if Schedule().judges(sweeps)]
        [300, 375, 475, 575, 725]
        """
        if sweeps + ROUND > self.most_sweeps:
            return True
        look = float(FIRST_LOOK + (self.warmup or 0))
        while round(look / ROUND) * ROUND < sweeps:
            look *= GROWTH
        return round(look / ROUND) * ROUND == sweeps
