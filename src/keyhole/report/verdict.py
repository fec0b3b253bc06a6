"""The verdict in plain words: what a board that reads one paragraph should take away."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyhole.inference.track_record import TRACK_RECORD
from keyhole.population.sample import Sample
from keyhole.report.agreement import HOPELESS_FIT, POOR_FIT, agreement, are_apart, models_that_count
from keyhole.report.words import between, clean, count, in_people, in_prose, listed, percent, plural, rounded
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
    """One sentence to remember, a few that carry it, and the points that qualify it."""

    headline: str
    summary: tuple[str, ...]
    points: tuple[Statement, ...]


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
    uniques = sample.uniques
    points = [
        *_truth(truth, chosen),
        *_exposed(chosen, classes),
        *_remedy(keys, chosen.tau1.estimate),
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
            f"By model {clean(chosen.model)}, {in_people(chosen.tau1.estimate)} of them "
            f"({percent(chosen.tau1.level)} interval: {between(chosen.tau1)}) {_be(chosen.tau1.estimate)} unique "
            f"among all {count(sample.population_size)} people of the population too.",
            "An intruder who finds one of these unique records to fit a person, and takes it to be that person, "
            f"would be right about {percent(chosen.tau2.estimate / uniques)} of the time "
            f"({_share_interval(chosen.tau2, uniques)}).",
        ),
        points=tuple(points),
    )


def _headline(comparison: Comparison, chosen: RiskAssessment, tau1: RiskEstimate, sample: Sample) -> str:
    records, share = count(sample.sample_size), percent(tau1.estimate / sample.sample_size)
    estimates = sorted(models_that_count(comparison, chosen).values())
    if are_apart(estimates[0], estimates[-1]):
        return (
            f"Between {rounded(round(estimates[0]))} and {rounded(round(estimates[-1]))} of the {records} records "
            "may be unique in the population: the models disagree."
        )
    if sample.uniques == sample.sample_size:
        return (
            f"Every record is unique on these keys; by model {clean(chosen.model)}, {in_people(tau1.estimate)} of "
            f"{records} {_be(tau1.estimate)} unique in the population too."
        )
    doubt = _doubt(chosen)
    if tau1.estimate < 0.5:
        return f"Probably none of the {records} records is unique in the population{doubt}."
    start, word = ("Perhaps", "") if doubt else ("About", "probably ")
    return (
        f"{start} {rounded(round(tau1.estimate))} of the {records} records ({share}) {_be(tau1.estimate)} "
        f"{word}unique in the population{doubt}."
    )


def _doubt(chosen: RiskAssessment) -> str:
    misfit = chosen.size_index_misfit or 0.0
    if misfit < POOR_FIT:
        return ", by a model that is a rough guide" if _track_record(chosen) else ""
    return ", by a model that fits poorly" if misfit < HOPELESS_FIT else ", by a model that does not fit"


def _uniques(sample: Sample) -> str:
    number, keys = sample.uniques, _keys(sample)
    if number == sample.sample_size:
        return f"Every one of the {plural(number, 'record')} is unique on {keys}."
    return (
        f"Of {plural(sample.sample_size, 'record')}, {count(number)} ({percent(number / sample.sample_size)}) "
        f"{'is' if number == 1 else 'are'} unique on {keys}: no other record has the same combination."
    )


def _nobody_unique(sample: Sample) -> Verdict:
    pairs = sample.size_index.at(2)
    return Verdict(
        headline="No record is unique on these keys.",
        summary=(
            f"Each of the {plural(sample.sample_size, 'record')} shares its combination of {_keys(sample)} with "
            "at least one other, so nobody can be singled out by these keys alone: both measures of risk are 0.",
        ),
        points=(
            Statement(
                "What this does not say",
                f"{plural(pairs, 'combination')} {'is' if pairs == 1 else 'are'} shared by two records only. An "
                "intruder who knows one more variable may tell them apart, and two records alike in a sensitive "
                "variable reveal it without being told apart.",
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
        points=tuple(_remedy(keys, float(number))),
    )


def _no_trust(
    comparison: Comparison, sample: Sample, keys: Sequence[KeyContribution], truth: Truth | None
) -> Verdict:
    return Verdict(
        headline="The risk could not be estimated: no model gave a result that can be trusted.",
        summary=(
            _uniques(sample),
            f"How many of these {count(sample.uniques)} are unique in the population too is not known. Until a "
            "model can be trusted, the only safe reading is that all of them may be.",
        ),
        points=(
            *_untrusted(comparison),
            *_remedy(keys, float(sample.uniques), "uniques"),
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
                f"Model {chosen.model} looks only at how often combinations occur, so it treats every unique "
                f"record alike (each a chance of {percent(float(r1[0]))} of being unique in the population). It "
                "says how many are exposed, not who; a model that uses the keys can tell records apart.",
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


def _remedy(keys: Sequence[KeyContribution], total: float, what: str = "expected") -> list[Statement]:
    if not keys or total < 0.5:
        return []
    of = "unique records" if what == "uniques" else "records that are probably unique in the population"
    words = []
    drop = keys[0]
    if len(keys) > 1 and drop.dropped.tau1_lost > 0:
        words.append(
            f"Dropping {in_prose(drop.key)} would hide {_at_least(drop.dropped.tau1_lost / total)} of the "
            f"{of} among others like them ({rounded(drop.dropped.tau1_lost)} of {rounded(total)})."
        )
    coarser = [
        (key.coarsened.tau1_lost, in_prose(key.key), key.coarsened.words)
        for key in keys
        if key.coarsened is not None
    ]
    if coarser and max(coarser)[0] > 0:
        lost, key, how = max(coarser)
        step = f"A milder step, coarsening {key} ({how})," if words else f"Coarsening {key} ({how})"
        words.append(f"{step} would hide {_at_least(lost / total)}.")
    if not words:
        words.append(
            "No single key, dropped or coarsened, would hide any of these records; change several together."
        )
    return [Statement("What would help most", " ".join(words))]


def _untrusted(comparison: Comparison) -> list[Statement]:
    return [
        Statement(
            f"Not to be trusted: {clean(found.model)}",
            ("It could not be fitted. " if found.status == "failed" else "Its checks failed. ")
            + clean(found.verdict),
        )
        for found in comparison.assessments
        if found.status != "ok"
    ]


def _everyone_unique(sample: Sample) -> list[Statement]:
    if sample.uniques < sample.sample_size:
        return []
    return [
        Statement(
            "Too fine a set of keys",
            "With every record unique, the file itself says nothing about how often combinations repeat, so any "
            "estimate rests on the form of the model alone. Look for a key with very many levels, and coarsen it.",
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
            f"(misfit {misfit:.1f}; about 1 for a model that fits). Treat its numbers with caution.",
        )
    ]


def _track_record(chosen: RiskAssessment) -> list[Statement]:
    return [
        Statement("How far to believe it", f"{clean(chosen.model)}: {check.words}")
        for check in chosen.diagnostics
        if check.name == TRACK_RECORD
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


def _share_interval(tau2: RiskEstimate, uniques: int) -> str:
    low, high = percent(tau2.low / uniques), percent(min(1.0, tau2.high / uniques))
    return f"{percent(tau2.level)} interval: {low} to {high}"


def _at_least(share: float) -> str:
    if share > 0.99:
        return "nearly all"
    return f"at least {percent(share)}" if share >= 0.001 else "very few"


def _be(estimate: float) -> str:
    return "is" if estimate < 1.5 else "are"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
