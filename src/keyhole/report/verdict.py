"""The verdict in plain words: what a board that reads one paragraph should take away."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.inference.track_record import NO_RECORD, TRACK_RECORD
from keyhole.population.sample import Sample
from keyhole.report.agreement import (
    HOPELESS_FIT,
    POOR_FIT,
    agreement,
    are_apart,
    match_range,
    misfit_figure,
    models_that_count,
)
from keyhole.report.remedies import what_would_help
from keyhole.report.words import (
    between,
    clean,
    count,
    in_people,
    in_prose,
    listed,
    percent,
    plural,
    rounded,
    span,
)
from keyhole.risk.classify import Classification
from keyhole.risk.compare import Comparison
from keyhole.risk.drivers import KeyContribution
from keyhole.risk.estimate import RiskAssessment, RiskEstimate
from keyhole.risk.truth import Truth


@dataclass(frozen=True, slots=True)
class Statement:
    """One point of the verdict: what it is about, and what it says."""

    topic: str
    words: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence to remember, a few that carry it, and the points that qualify it.

    ``apart`` if the models that count disagree, so that no number of one model stands for the answer.
    """

    headline: str
    summary: tuple[str, ...]
    points: tuple[Statement, ...]
    apart: bool = False


def verdict_of(
    comparison: Comparison,
    *,
    truth: Truth | None,
    keys: Sequence[KeyContribution],
    classes: Classification | None,
) -> Verdict:
    """The verdict on a sample.

    Parameters
    ----------
    keys
        What each key contributes, gravest first; empty if there is nothing to drive.
    classes
        The uniques by the thresholds on r1 of the recommended model.
    """
    sample = comparison.assessments[0].sample
    if not sample.uniques:
        return _nobody_unique(sample)
    if not sample.unsampled_size:
        return _census(sample, keys)
    chosen = comparison.chosen
    if chosen is None or chosen.tau1 is None or chosen.tau2 is None:
        return _no_trust(comparison, sample, keys, truth)
    points = [
        *_truth(truth, chosen),
        *_exposed(chosen, classes),
        *_remedy(keys, chosen.tau1.estimate, sample),
        Statement("How far models agree", agreement(comparison, chosen)),
        *_misfit(comparison, chosen),
        *_track_record(chosen),
        *_everyone_unique(sample),
        *_untrusted(comparison),
    ]
    return Verdict(
        headline=_headline(comparison, chosen, chosen.tau1, sample),
        summary=(
            _uniques(sample),
            _expected(chosen, chosen.tau1),
            _match(chosen, chosen.tau2, match_range(comparison, chosen)),
        ),
        points=tuple(points),
        apart=match_range(comparison, chosen) is not None,
    )


def _expected(chosen: RiskAssessment, tau1: RiskEstimate) -> str:
    if chosen.sample.uniques == 1:
        return (
            f"By model {clean(chosen.model)}, the chance that it is unique among all "
            f"{count(chosen.sample.population_size)} people of the population too is {percent(tau1.estimate)}."
        )
    return (
        f"By model {clean(chosen.model)}, {_hedged(in_people(tau1.estimate), chosen)} of them"
        f"{_interval(tau1, between(tau1))} {_be(tau1.estimate)} unique among all "
        f"{count(chosen.sample.population_size)} people of the population too."
    )


def _match(chosen: RiskAssessment, tau2: RiskEstimate, over_models: tuple[float, float] | None) -> str:
    """How often a match would be right: over the models where they disagree, else by the chosen one."""
    uniques = chosen.sample.uniques
    share = percent(min(1.0, tau2.estimate / uniques))
    within = span(percent(tau2.low / uniques), percent(min(1.0, tau2.high / uniques)))
    one = "this unique record" if uniques == 1 else "one of these unique records"
    intruder = f"ntruder who finds {one} to fit a person, and takes it to be that person, would be right"
    by = f"y model {clean(chosen.model)}"
    if over_models is not None and percent(over_models[0]) != percent(over_models[1]):
        low, high = map(percent, over_models)
        return f"An i{intruder} from {low} to {high} of the time, depending on the model ({share} b{by})."
    about = share if share[0] in "ml" or share in ("0%", "100%") else f"about {share}"
    return f"B{by}, an i{intruder} {_hedged(about, chosen)} of the time{_interval(tau2, within)}."


def _interval(estimate: RiskEstimate, within: str) -> str:
    """The interval in brackets; nothing where both its ends read the same."""
    return f" ({percent(estimate.level)} interval: {within})" if " to " in within else ""


def _hedged(words: str, chosen: RiskAssessment) -> str:
    return f"perhaps {words.removeprefix('about ')}" if _doubt(chosen) else words


def _headline(comparison: Comparison, chosen: RiskAssessment, tau1: RiskEstimate, sample: Sample) -> str:
    records, share = count(sample.sample_size), percent(tau1.estimate / sample.sample_size)
    estimates = sorted(models_that_count(comparison, chosen).values())
    if are_apart(estimates[0], estimates[-1]):
        low, high = (rounded(round(estimate)) for estimate in (estimates[0], estimates[-1]))
        if low == "0":
            return f"Up to {high} of the {records} records may be unique in the population: the models disagree."
        return (
            f"Between {low} and {high} of the {records} records may be unique in the population: the models "
            "disagree."
        )
    if sample.sample_size == 1:
        return (
            "The file holds one record, unique by definition; its chance of being unique in the population too is "
            f"{percent(tau1.estimate)} by model {clean(chosen.model)}."
        )
    if sample.uniques == sample.sample_size:
        return (
            f"Every record is unique on these keys; by model {clean(chosen.model)}, "
            f"{_hedged(in_people(tau1.estimate), chosen)} of {records} {_be(tau1.estimate)} unique in the "
            "population too."
        )
    doubt = _doubt(chosen)
    if tau1.estimate < 0.5:
        return f"Probably none of the {records} records is unique in the population{doubt}."
    start, word = ("Perhaps", "") if doubt else ("About", "expected to be ")
    return (
        f"{start} {rounded(round(tau1.estimate))} of the {records} records ({share}) {_be(tau1.estimate)} "
        f"{word}unique in the population{doubt}."
    )


def _doubt(chosen: RiskAssessment) -> str:
    misfit = chosen.size_index_misfit or 0.0
    if misfit >= POOR_FIT:
        return ", by a model that fits poorly" if misfit < HOPELESS_FIT else ", by a model that does not fit"
    record = next((check for check in chosen.diagnostics if check.name == TRACK_RECORD), None)
    if record is None or record.verdict == "good":
        return ""
    return (
        f", by a model that {'was not tried on such files' if record.value == NO_RECORD else 'is a rough guide'}"
    )


def _uniques(sample: Sample) -> str:
    number, keys = sample.uniques, _keys(sample)
    if sample.sample_size == 1:
        return f"The only record of the file is unique on {keys}."
    if number == sample.sample_size:
        return f"Every one of the {plural(number, 'record')} is unique on {keys}."
    return (
        f"Of {plural(sample.sample_size, 'record')}, {count(number)} ({percent(number / sample.sample_size)}) "
        f"{'is' if number == 1 else 'are'} unique on {keys}: no other record has the same combination."
    )


def _nobody_unique(sample: Sample) -> Verdict:
    pairs = sample.size_index.at(2)
    be = "is" if pairs == 1 else "are"
    shared = f"{_sentence(plural(pairs, 'combination'))} {be} shared by two records only. " if pairs else ""
    return Verdict(
        headline="No record is unique on these keys.",
        summary=(
            f"Each of the {plural(sample.sample_size, 'record')} shares its combination of {_keys(sample)} with "
            "at least one other, so nobody can be singled out by these keys alone: both measures of risk are 0.",
        ),
        points=(
            Statement(
                "What this does not say",
                f"{shared}An intruder who knows one more variable may tell records apart that look alike here, "
                "and records alike in a sensitive variable reveal it without being told apart.",
            ),
        ),
    )


def _census(sample: Sample, keys: Sequence[KeyContribution]) -> Verdict:
    number = sample.uniques
    return Verdict(
        headline=f"{_sentence(plural(number, 'record'))} {'is' if number == 1 else 'are'} unique, for certain.",
        summary=(
            _uniques(sample),
            "The file holds the whole population, so being unique in the file is being unique in the population. "
            "Nothing has to be estimated: whoever matches one of these records has found the person.",
        ),
        points=tuple(_remedy(keys, float(number), sample, expected=False)),
    )


def _why_none(comparison: Comparison) -> str:
    if comparison.interrupted and comparison.not_run:
        return f"the run was interrupted before {comparison.not_run[0]} had an answer"
    return "no model gave a result that can be trusted"


def _no_trust(
    comparison: Comparison, sample: Sample, keys: Sequence[KeyContribution], truth: Truth | None
) -> Verdict:
    return Verdict(
        headline=f"The risk could not be estimated: {_why_none(comparison)}.",
        summary=(
            _uniques(sample),
            "Whether it is unique in the population too is not known. Until a model can be trusted, the only safe "
            "reading is that it may be."
            if sample.uniques == 1
            else f"How many of these {count(sample.uniques)} are unique in the population too is not known. Until "
            "a model can be trusted, the only safe reading is that all of them may be.",
        ),
        points=(
            *_untrusted(comparison),
            *_remedy(keys, float(sample.uniques), sample, expected=False),
            *_everyone_unique(sample),
            *_truth(truth, None),
        ),
    )


def _exposed(chosen: RiskAssessment, classes: Classification | None) -> list[Statement]:
    if classes is None or chosen.records is None:
        return []
    r1 = chosen.records.r1
    if len(r1) > 1 and float(np.ptp(r1)) <= 1e-6 * float(r1.max()):
        return [
            Statement(
                "Who is exposed",
                f"Model {chosen.model} gives every unique record the same chance, {percent(float(r1[0]))}, of "
                "being unique in the population. It says how many are exposed, not who.",
            )
        ]
    highest, above = percent(float(r1.max())), f"a chance above {percent(classes.kappa1)}"
    if classes.risky:
        have = "has" if classes.risky == 1 else "have"
        words = f"{_sentence(plural(classes.risky, 'record'))} {have} {above} of being unique in the population"
    else:
        words = f"No record has {above} of being unique in the population"
    words += f"; the highest chance of any is {highest}."
    if classes.safe:
        words += f" For {count(classes.safe)} the chance is below {percent(classes.kappa2)}."
    return [Statement("Who is exposed", words)]


def _remedy(
    keys: Sequence[KeyContribution], total: float, sample: Sample, *, expected: bool = True
) -> list[Statement]:
    words = what_would_help(keys, total, sample.sample_size, expected=expected)
    return [Statement("What would help most", words)] if words else []


def _untrusted(comparison: Comparison) -> list[Statement]:
    return [
        Statement(
            f"Not to be trusted: {clean(found.model)}",
            ("It could not be fitted. " if found.status == "failed" else "Its checks failed. ")
            + clean(found.verdict),
        )
        for found in comparison.assessments
        if found.status != "ok" and found.model not in _told_by_pools(comparison)
    ]


def _told_by_pools(comparison: Comparison) -> set[str]:
    """Members of a pool that has said of them what matters: one that can be trusted, or has the same doubts."""
    return {
        member.model
        for pool in comparison.assessments
        for member in pool.members
        if pool.status == "ok" or member.verdict in pool.verdict
    }


def _everyone_unique(sample: Sample) -> list[Statement]:
    if sample.uniques < sample.sample_size:
        return []
    return [
        Statement(
            "Too fine a set of keys",
            "With every record unique, the file itself says nothing about how often combinations repeat, so any "
            "estimate rests on the form of the model alone. Look for a key with very many levels, and "
            "coarsen or drop it.",
        )
    ]


def _misfit(comparison: Comparison, chosen: RiskAssessment) -> list[Statement]:
    misfit = chosen.size_index_misfit
    # Among several models, the reason to believe this one first already says how well it fits.
    if misfit is None or misfit < POOR_FIT or len(comparison.assessments) > 1:
        return []
    return [
        Statement(
            "Fit",
            f"The model does not reproduce well how often combinations occur in the file "
            f"(misfit {misfit_figure(misfit)}; about 1 or less for a model that fits). Treat its numbers with "
            "caution.",
        )
    ]


def _track_record(chosen: RiskAssessment) -> list[Statement]:
    """The record on real populations, and what raises a doubt in this file beside it."""
    checks = chosen.diagnostics
    doubts = [clean(check.words) for check in checks if check.verdict == "caution" and check.name != TRACK_RECORD]
    model = "" if chosen.record is not None else f"{clean(chosen.model)}: "
    return [
        *(
            Statement("How far to believe it", f"{model}{clean(check.words)}")
            for check in checks
            if check.name == TRACK_RECORD
        ),
        *([Statement("What raises a doubt here", " ".join(doubts))] if doubts else []),
    ]


def _truth(truth: Truth | None, chosen: RiskAssessment | None) -> list[Statement]:
    if truth is None:
        return []
    words = f"The whole population is known here: {plural(round(truth.tau1), 'record')} of the file in truth "
    words += f"{'is' if truth.tau1 == 1 else 'are'} unique in it"
    if chosen is not None and chosen.tau1 is not None:
        inside = chosen.tau1.low <= truth.tau1 <= chosen.tau1.high
        words += f", {'inside' if inside else 'outside'} the interval of the model to believe first"
    return [Statement("The truth", words + ".")]


def _keys(sample: Sample) -> str:
    keys = sample.table.keys
    if len(keys) <= 4:
        return f"{'this key' if len(keys) == 1 else 'these keys'} ({listed([in_prose(key.name) for key in keys])})"
    return f"these {len(keys)} keys"


def _be(estimate: float) -> str:
    return "is" if estimate < 1.5 else "are"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
