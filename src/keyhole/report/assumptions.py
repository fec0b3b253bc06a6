"""What the numbers of a report take for granted, in words a review board can weigh."""

from dataclasses import dataclass

from keyhole.inference.fit import IGNORED_WEIGHTS
from keyhole.population.sample import Sample
from keyhole.report.words import clean, count, listed, percent
from keyhole.risk.compare import Comparison
from keyhole.risk.estimate import RiskAssessment


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing taken for granted, and what happens to the numbers if it does not hold."""

    topic: str
    words: str


def assumptions_of(comparison: Comparison) -> tuple[Assumption, ...]:
    """The assumptions behind a comparison, those about the data first."""
    sample = comparison.assessments[0].sample
    found = [
        Assumption("How the sample was drawn", _sampling(comparison, sample)),
        Assumption(
            "The size of the population",
            f"{count(sample.population_size)} people, "
            f"{'as given' if sample.table.weights is None else 'added up from the survey weights'}. "
            "If the true number is larger, the risk is lower.",
        ),
        Assumption(
            "What an intruder knows",
            "Exactly the key variables listed here, for a person of their choice, and nothing more. An intruder "
            "who knows another variable of the file faces more unique records than this report counts.",
        ),
        Assumption(
            "What an intruder does not know",
            "Who is in the sample. Somebody who knows that a person took part, and finds one record that fits, "
            "has found that person: for such an intruder every record that is unique in the file is at risk.",
        ),
        Assumption(
            "No errors, no differences of coding",
            "The file and the intruder record the keys in the same way. Mistakes, changes since the survey and "
            "swapped or blurred values make a match less certain; no number here allows for them.",
        ),
        Assumption(
            "Only unique records are counted",
            "A record that shares its combination with one or two others adds nothing to these measures. That "
            "does not make it safe: they may be one household, or alike in what the intruder wants to learn.",
        ),
    ]
    if sample.zeros is not None:
        found.append(Assumption("Impossible combinations", _zeros(sample)))
    if any(assessment.tau1 is not None for assessment in comparison.assessments):
        found.append(Assumption("What the intervals contain", _intervals(comparison)))
    return tuple(found)


def _sampling(comparison: Comparison, sample: Sample) -> str:
    if sample.unsampled_size == 0:
        return "The file holds everybody in the population, so there is no sampling to make assumptions about."
    fraction = percent(sample.sampling_fraction)
    clusters = "In a sample of households, areas or other clusters"
    wrong = "the estimates can be too low or too high."
    alike = (
        f"At random, everybody with the same chance ({fraction}), independently of everybody else. {clusters}, or "
        f"with unequal chances, {wrong}"
    )
    if sample.table.weights is None:
        return alike
    ignoring = [clean(found.model) for found in comparison.assessments if _ignores_weights(found)]
    if comparison.chosen is not None and _ignores_weights(comparison.chosen):
        return (
            f"{alike} The survey weights say that the chances did differ, and {listed(ignoring)} "
            f"{'does' if len(ignoring) == 1 else 'do'} not use them."
        )
    words = (
        f"At random, each person with the chance that the survey weights imply ({fraction} on average), "
        f"independently of everybody else. {clusters}, or where the weights also correct for non-response, {wrong}"
    )
    if ignoring:
        words += (
            f" Weights are not used by {listed(ignoring)}, which {'takes' if len(ignoring) == 1 else 'take'} all "
            "chances to be equal."
        )
    return words


def _ignores_weights(assessment: RiskAssessment) -> bool:
    return any(check.name == IGNORED_WEIGHTS for check in assessment.diagnostics)


def _zeros(sample: Sample) -> str:
    # In whole numbers: a table of many keys has more cells than a float can count.
    impossible = (sample.table.size - sample.admissible_cells) * 1000 // max(sample.table.size, 1) / 1000
    return (
        f"{percent(impossible)} of the combinations of levels are declared impossible by the given rules. A model "
        "that uses the rules puts nobody there."
    )


def _intervals(comparison: Comparison) -> str:
    fitted = [found for found in comparison.assessments if found.tau1 is not None]
    level = max(found.tau1.level for found in fitted if found.tau1 is not None)
    words = (
        f"The chance of {percent(level)} refers to the number of people in this very sample, if the model is "
        f"right: it includes not knowing who else is in the population. {_doubt_about_models(comparison)}"
    )
    plug_in = [found.model for found in fitted if found.tau1 is not None and found.tau1.expected_sd is None]
    if plug_in:
        words += (
            f" What those of {listed(plug_in)} leave out besides is told with their checks: too narrow by that."
        )
    return words


def _doubt_about_models(comparison: Comparison) -> str:
    none = "No interval includes the doubt about which model is right"
    if comparison.chosen is None or comparison.chosen.record is None:
        return f"{none}; the differences between the models are a guide to that."
    return (
        f"{none}. How often the intervals of {clean(comparison.chosen.model)} covered the truth on real "
        "populations is the guide to that; data of another kind than those may be another matter."
    )
