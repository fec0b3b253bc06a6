"""Several models on one sample, and which of them to believe first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from keyhole.inference.fit import IGNORED_WEIGHTS, RiskModel
from keyhole.inference.threads import own_threads_only
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent
from keyhole.randomness import DEFAULT_SEED, stream
from keyhole.risk.assess import assess_risk, verdict_in_words
from keyhole.risk.estimate import RiskAssessment
from keyhole.risk.nested import nested_check
from keyhole.risk.reasons import why_the_pool


@dataclass(frozen=True, slots=True)
class Comparison:
    """The assessments, the model to believe first, and why; ``recommended`` is None if none can be trusted.

    ``not_run`` names the models that have no answer because somebody ended the run; ``interrupted`` tells whether
    anybody did.
    """

    assessments: tuple[RiskAssessment, ...]
    recommended: str | None
    reason: str
    not_run: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def chosen(self) -> RiskAssessment | None:
        """The recommended model's assessment."""
        return next((found for found in self.assessments if found.model == self.recommended), None)


def compare_models(
    models: Sequence[RiskModel],
    sample: Sample,
    *,
    seed: int = DEFAULT_SEED,
    level: float = 0.95,
    every_record: bool = False,
    subsampled: Sequence[RiskModel] = (),
    progress: Progress = silent,
    finished: Callable[[RiskAssessment], None] = lambda found: None,
) -> Comparison:
    """Assess ``sample`` with each model; a model's numbers do not depend on the others.

    With one model, that model is recommended if it can be trusted. A pool of models comes before its members. With
    several models, one whose intervals covered the truth on real populations; without such a one, that under which
    the sample's size index is most likely, after a charge for each parameter. Other models that do not describe
    the size index are recommended only when nothing else can be trusted. Where weights differ, models that use
    them come first. Once a model is interrupted those after it are not run, and named; where it has no answer
    itself, those before it are shown and none is recommended.

    Parameters
    ----------
    subsampled
        Models that are also tried on subsamples of the sample, which then plays the population.
    finished
        Is told of each assessment as soon as it is there.
    """
    assessments: list[RiskAssessment] = []
    stopped = False
    try:
        for done, model in enumerate(models):
            progress("models", done, len(models), model.name)
            found = assess_risk(
                model, sample, seed=seed, level=level, every_record=every_record, progress=progress
            )
            assessments.append(found)
            finished(found)
            if found.interrupted:
                break
        else:
            progress("models", len(models), len(models))
            for model in subsampled:
                assessments = _with_nested(assessments, model, sample, seed, progress)
    except KeyboardInterrupt:
        if not assessments:
            raise
        stopped = True
    progress("models", len(models), len(models))
    shown = _pools_first(assessments)
    not_run = tuple(model.name for model in models[len(assessments) :])
    recommended, reason = _recommend(shown, alone=len(assessments) == 1)
    if stopped and not_run:
        recommended, reason = None, f"The run was interrupted before {not_run[0]} had an answer."
    interrupted = stopped or any(found.interrupted for found in assessments)
    return Comparison(shown, recommended, reason, not_run, interrupted)


def _pools_first(assessments: Sequence[RiskAssessment]) -> tuple[RiskAssessment, ...]:
    """Pools, their members unless they were assessed on their own, then the others as they came."""
    pools = [found for found in assessments if found.members]
    others = [found for found in assessments if not found.members]
    named = {found.model for found in others}
    members = [member for pool in pools for member in pool.members if member.model not in named]
    return (*pools, *members, *others)


def _with_nested(
    assessments: Sequence[RiskAssessment], model: RiskModel, sample: Sample, seed: int, progress: Progress
) -> list[RiskAssessment]:
    """The assessments, that of the model with what subsamples say of it, wherever it stands."""
    rng = stream(seed, f"{model.name} subsamples")
    with own_threads_only():
        check = nested_check(model, sample, rng=rng, progress=progress)
    if check is None:
        return list(assessments)

    found_out = check.diagnostic()

    def told(found: RiskAssessment) -> RiskAssessment:
        members = tuple(map(told, found.members))
        if found.model != model.name and not (members and members[0].model == model.name):
            return replace(found, members=members)
        # A doubt about the model that leads a pool is one about the pool.
        checks = (*found.diagnostics, found_out)
        return replace(
            found, members=members, diagnostics=checks, verdict=verdict_in_words(checks, found.leaves_out)
        )

    return [told(found) for found in assessments]


def _recommend(assessments: Sequence[RiskAssessment], *, alone: bool) -> tuple[str | None, str]:
    trusted = [found for found in assessments if found.status == "ok"]
    if not trusted:
        return None, "No model gave a result that can be trusted."
    pool = next((found for found in trusted if found.members), None)
    if pool is not None:
        return pool.model, why_the_pool(pool, assessments)
    if alone and not any(found.members for found in assessments):
        return trusted[0].model, "It is the only model that was run."
    if proven := [found for found in trusted if found.record is not None]:
        return _best_recorded(proven)
    if doubtful := next((found for found in assessments if found.members), None):
        return None, (
            f"{doubtful.model} cannot be trusted on this file, and none of the others has been right often enough "
            "on real populations to stand in for it."
        )
    weighted = [found for found in trusted if not _ignores_weights(found)]
    if weighted and len(weighted) < len(trusted):
        return weighted[0].model, "It is the model that uses the weights, which differ from record to record."
    return _best_fitting(trusted)


def _best_fitting(trusted: Sequence[RiskAssessment]) -> tuple[str, str]:
    """The model that explains the size index best: by the criterion where all have one, else by the misfit."""
    checked = [(found.size_index, found.model) for found in trusted if found.size_index is not None]
    if not checked:
        return trusted[0].model, "It is the first model whose fit raised no alarm."
    criteria = [check.criterion for check, _ in checked if check.criterion is not None]
    judged = criteria if len(criteria) == len(checked) else [check.misfit for check, _ in checked]
    check, best = checked[judged.index(min(judged))]
    words = (
        "could have produced them"
        if check.misfit < 2
        else "does not reproduce them well, so every estimate here deserves caution"
    )
    return best, (
        "Of the models run, it explains best the sample's own numbers of cells with one, two, three, ... "
        f"records (misfit {check.misfit:.2g}, about 1 or less for a model that fits) and {words}."
    )


def _best_recorded(proven: Sequence[RiskAssessment]) -> tuple[str, str]:
    """The first with a good record, if possible of those that use the weights; its record is the reason."""
    best = next((found for found in proven if not _ignores_weights(found)), proven[0])
    words = "" if best.record is None else best.record.words
    others = (
        "No other model here has a record like it." if len(proven) == 1 else "It is the first with such a record."
    )
    return best.model, f"{words} {others}"


def _ignores_weights(assessment: RiskAssessment) -> bool:
    return any(check.name == IGNORED_WEIGHTS for check in assessment.diagnostics)
