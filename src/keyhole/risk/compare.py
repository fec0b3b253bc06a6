"""Several models on one sample, and which of them to believe first."""

from collections.abc import Sequence
from dataclasses import dataclass

from keyhole.inference.fit import IGNORED_WEIGHTS, RiskModel
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent
from keyhole.randomness import DEFAULT_SEED
from keyhole.risk.assess import assess_risk
from keyhole.risk.estimate import RiskAssessment


@dataclass(frozen=True, slots=True)
class Comparison:
    """The assessments, the model to believe first, and why; ``recommended`` is None if none can be trusted."""

    assessments: tuple[RiskAssessment, ...]
    recommended: str | None
    reason: str

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
    progress: Progress = silent,
) -> Comparison:
    """Assess ``sample`` with each model; a model's numbers do not depend on the others.

    With one model, that model is recommended if it can be trusted. With several, one whose intervals covered the
    truth on real populations; without such a one, that under which the sample's size index is most likely, after
    a charge for each parameter. Other models that do not describe the size index are recommended only when
    nothing else can be trusted. Where weights differ, models that use them come first. Once a model is interrupted
    those after it are not run.
    """
    assessments = []
    for done, model in enumerate(models):
        progress("models", done, len(models), model.name)
        assessments.append(
            assess_risk(model, sample, seed=seed, level=level, every_record=every_record, progress=progress)
        )
        if assessments[-1].interrupted:
            break
    progress("models", len(models), len(models))
    recommended, reason = _recommend(assessments)
    return Comparison(tuple(assessments), recommended, reason)


def _recommend(assessments: Sequence[RiskAssessment]) -> tuple[str | None, str]:
    trusted = [found for found in assessments if found.status == "ok"]
    if not trusted:
        return None, "No model gave a result that can be trusted."
    if len(assessments) == 1:
        return trusted[0].model, "It is the only model that was run."
    if proven := [found for found in trusted if found.record is not None]:
        return _best_recorded(proven)
    weighted = [found for found in trusted if not _ignores_weights(found)]
    if weighted and len(weighted) < len(trusted):
        return weighted[0].model, "It is the model that uses the weights, which differ from record to record."
    judged = [(found.size_index, found.model) for found in trusted if found.size_index is not None]
    if not judged:
        return trusted[0].model, "It is the first model whose fit raised no alarm."
    check, best = min(judged, key=lambda pair: pair[0].criterion)
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
