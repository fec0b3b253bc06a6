"""The work behind assess, compare and demo: run the models on a sample and deliver the result."""

import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import typer

from keyhole.cli.job import Job, prepare, settings
from keyhole.cli.outputs import Outputs, deliver
from keyhole.cli.terminal import Terminal, terminal_progress
from keyhole.errors import InputError, NotConverged
from keyhole.inference.chain_settings import ChainSettings
from keyhole.inference.fit import RiskModel
from keyhole.models.catalogue import CATALOGUE, automatic, model_named
from keyhole.population.loading import LoadedSample
from keyhole.randomness import DEFAULT_SEED
from keyhole.report.agreement import HOPELESS_FIT
from keyhole.report.words import rounded
from keyhole.risk.classify import check_thresholds
from keyhole.risk.compare import Comparison, compare_models
from keyhole.risk.estimate import RiskAssessment
from keyhole.risk.truth import Truth

UNTRUSTED, INTERRUPTED = 3, 130

NORMAL = "normal"
"""The effort of those who ask for none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which models to run and how, as the options say; no model means auto.

    ``limits`` are for those of the models that have such options.
    """

    command: str
    models: tuple[str, ...] = ()
    model_options: Sequence[str] | None = None
    seed: int = DEFAULT_SEED
    kappa1: float = 0.5
    kappa2: float = 0.1
    weighted: bool = False
    limits: Mapping[str, object] = field(default_factory=dict)
    effort: str = NORMAL

    @property
    def automatic(self) -> bool:
        """Whether the candidates were chosen by Keyhole rather than by the user."""
        return self.models in ((), ("auto",))


def run(load: Callable[[], LoadedSample], choice: Choice, outputs: Outputs) -> None:
    """Read, tabulate, assess, deliver."""
    outputs.check()
    check_thresholds(choice.kappa1, choice.kappa2)
    models = chosen_models(choice, outputs.checkpoint)
    unused = unused_limits(choice, models)
    sampled = with_chains(models)
    outputs.check_resumable(sampled)
    if outputs.draws_out is not None and not sampled:
        raise InputError("--draws-out needs a model with chains, such as latent-class.")
    with terminal_progress(outputs.quiet) as progress:
        progress("reading", 0)
        job = prepare(load)
    job = replace(job, warnings=(*job.warnings, *unused))
    if outputs.folder is not None:
        from keyhole.report.writing import private_folder

        # One that cannot be made is told now; chains are kept there while they run.
        private_folder(outputs.folder)
        if outputs.resume is None:
            outputs.remove_checkpoints(sampled)
    assess_and_deliver(job, models, choice, outputs)


def assess_and_deliver(
    job: Job, models: Sequence[RiskModel], choice: Choice, outputs: Outputs, truth: Truth | None = None
) -> None:
    """Run the models and deliver the result; leave with exit status 3 when it is not to be trusted."""
    try:
        comparison = _delivered(job, models, choice, outputs, truth)
    except KeyboardInterrupt:
        if outputs.tell_interrupted(with_chains(models)):
            raise typer.Exit(INTERRUPTED) from None
        raise
    # A model without a number can have chains too: they were stopped before there was a draw to use.
    unfinished = [
        found
        for found in comparison.assessments
        if (found.unfinished or found.status == "failed") and outputs.kept(found.model)
    ]
    if unfinished:
        outputs.tell_how_to_go_on(unfinished)
    elif any(map(outputs.kept, comparison.not_run)):
        outputs.tell_kept()
    else:
        outputs.remove_checkpoints(with_chains(models))
    if comparison.interrupted:
        outputs.tell_ended(with_chains(models))
        raise typer.Exit(INTERRUPTED)
    doubtful = any(found.status != "ok" for found in comparison.assessments)
    if comparison.recommended is None or (doubtful and not choice.automatic):
        raise typer.Exit(UNTRUSTED)


def _delivered(
    job: Job, models: Sequence[RiskModel], choice: Choice, outputs: Outputs, truth: Truth | None
) -> Comparison:
    from keyhole.report.content import compose

    with terminal_progress(outputs.quiet) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # the report and the exit status carry it
        comparison = compare_models(
            models,
            job.sample,
            seed=choice.seed,
            every_record=outputs.all_records,
            subsampled=subsampled_models(choice),
            progress=progress,
            finished=partial(_tell_first, progress, len(models)),
        )
        report = compose(
            comparison,
            source=job.source,
            command=shlex.join(["keyhole", *sys.argv[1:]]),
            truth=truth,
            kappa1=choice.kappa1,
            kappa2=choice.kappa2,
            warnings=job.warnings,
        )
    deliver(outputs, job, comparison, report, command=choice.command, truth=truth)
    return comparison


def _tell_first(progress: Terminal, models: int, found: RiskAssessment) -> None:
    """One line of what a model says, while others are still at work."""
    if models > 1 and found.tau1 is not None and found.tau2 is not None:
        words = (
            f"{found.model}: {rounded(found.tau1.estimate)} unique in the population "
            f"({rounded(found.tau1.low)} to {rounded(found.tau1.high)})"
        )
        doubt = "" if found.members else ", a first rough answer"
        if found.status != "ok":
            doubt = ", not to be trusted"
        elif (found.size_index_misfit or 0.0) >= HOPELESS_FIT:
            doubt += " by a model that does not fit"
        progress.say(f"{words}{doubt}")


def with_chains(models: Sequence[RiskModel]) -> list[str]:
    """The names of those models that can be interrupted and go on."""
    return [model.name for model in models if isinstance(model, ChainSettings)]


def subsampled_models(choice: Choice) -> list[RiskModel]:
    """Models that are tried on subsamples: those that auto is made of and compared with, if there is time."""
    effort = settings(choice.model_options).get("effort", choice.effort)
    if not choice.automatic or effort == "quick":
        return []
    return [model_named(name) for name in ("sequential-logit", *automatic()) if name != "auto"]


def chosen_models(choice: Choice, checkpoint: Path | None = None) -> list[RiskModel]:
    """The models asked for; an option goes to those of several models that have it."""
    if choice.automatic:
        asked = automatic(weighted=choice.weighted)
    elif "all" in choice.models:
        asked = tuple(CATALOGUE)
    else:
        asked = tuple(dict.fromkeys(choice.models))
    options = settings(choice.model_options)
    known = {name: CATALOGUE[name].options for name in asked if name in CATALOGUE}
    common = {**choice.limits, **({} if checkpoint is None else {"checkpoint": str(checkpoint)})}
    for twice in options.keys() & common.keys():
        also = "the folder of results" if twice == "checkpoint" else option_name(twice)
        raise InputError(f"{twice} is given twice, by {also} and by --model-option; give it once.")
    if choice.effort != NORMAL and "effort" in options:
        raise InputError("effort is given twice, by --effort and by --model-option; give it once.")
    common |= {} if "effort" in options else {"effort": choice.effort}
    shared = {option for option in options if any(option in theirs for theirs in known.values())}
    return [
        model_named(
            name,
            **{o: v for o, v in common.items() if o in known.get(name, ())},
            **{o: v for o, v in options.items() if o not in shared or o in known.get(name, ())},
        )
        for name in asked
    ]


def unused_limits(choice: Choice, models: Sequence[RiskModel]) -> tuple[str, ...]:
    """What to say of options that none of the models has: they change nothing."""
    asked = [*choice.limits, *(() if choice.effort == NORMAL else ("effort",))]
    names = [model.name for model in models]
    without = [option for option in asked if not any(option in CATALOGUE[name].options for name in names)]
    if not without:
        return ()
    who = f"The model {names[0]} has" if len(names) == 1 else "The models that run have"
    return (f"{who} no use for {' and '.join(map(option_name, without))}, which changed nothing.",)


def option_name(setting: str) -> str:
    """What a setting is called on the command line.

    Examples
    --------
    >>> option_name("target_ess")
    '--target-ess'
    """
    return f"--{setting.replace('_', '-')}"
