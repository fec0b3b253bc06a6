"""What came of a trial, in a line for a terminal."""

from keyhole.validation.replicate import Replicate, Trial


def ending_in_words(trial: Trial, replicate: Replicate) -> str:
    """The trial, its estimates beside the truth, and how long it took."""
    where = f"{trial.model} on a sample of {trial.population}, n={trial.size:,}, seed={trial.seed}"
    if replicate.tau1 is None or replicate.tau2 is None:
        return f"{where}: {replicate.status}: {replicate.verdict}"
    both = ", ".join(
        f"{name} {tau.estimate:,.1f} [{tau.low:,.1f}, {tau.high:,.1f}], truth {tau.truth:,.1f}"
        for name, tau in (("tau1", replicate.tau1), ("tau2", replicate.tau2))
    )
    return f"{where}: {both}, {replicate.seconds:.1f} s, {replicate.status}"
