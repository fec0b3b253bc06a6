"""The report as frozen data: everything it says, before any choice of paper, screen or terminal."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from keyhole.arrays import Vector
from keyhole.inference.fit import Diagnostic
from keyhole.inference.track_record import good_record
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent
from keyhole.report.against_truth import AgainstTruth, against_truth
from keyhole.report.agreement import HOPELESS_FIT, POOR_FIT
from keyhole.report.assumptions import Assumption, assumptions_of
from keyhole.report.checks import said_once
from keyhole.report.dependence import KeyDependence, key_dependence
from keyhole.report.levels import LevelLine, level_lines
from keyhole.report.mixtures import Mixture, mixtures_of
from keyhole.report.path import ChosenPath, chosen_paths
from keyhole.report.provenance import Provenance, provenance_of
from keyhole.report.remedies import is_identifier
from keyhole.report.verdict import Verdict, verdict_of
from keyhole.report.words import clean
from keyhole.risk.classify import Classification, classify
from keyhole.risk.compare import Comparison
from keyhole.risk.drivers import KeyContribution, key_contributions
from keyhole.risk.estimate import RiskAssessment, RiskEstimate, Status
from keyhole.risk.truth import Truth

BINS = 10
"""Bars of the distribution of r1."""

SIZES = 9
"""Cell sizes that the size index shows one by one; larger ones are joined."""


@dataclass(frozen=True, slots=True)
class DataSummary:
    """The sample in numbers; ``size_index`` pairs "1", "2", ..., "10 or more" with a number of cells."""

    records: int
    population_size: int
    sampling_fraction: float
    keys: tuple[tuple[str, int], ...]
    cells: int
    admissible_cells: int
    occupied_cells: int
    sample_uniques: int
    size_index: tuple[tuple[str, int], ...]
    weighted: bool


@dataclass(frozen=True, slots=True)
class ModelResult:
    """One model's line of the report; ``alike`` if it gives every sample unique the same r1."""

    model: str
    status: Status
    recommended: bool
    tau1: RiskEstimate | None
    tau2: RiskEstimate | None
    alike: bool
    misfit: float | None
    diagnostics: tuple[Diagnostic, ...]
    verdict: str
    settings: tuple[tuple[str, str], ...]
    seconds_fit: float
    seconds_risk: float

    @property
    def doubtful(self) -> bool:
        """Whether the line is shown without weight: not to be trusted, or fitting too badly to count."""
        return self.status != "ok" or (not self.recommended and (self.misfit or 0.0) >= HOPELESS_FIT)

    @property
    def result(self) -> str:
        """How far to believe this line, in two or three words."""
        if self.status != "ok":
            return "failed" if self.status == "failed" else "not to be trusted"
        if self.misfit is not None and self.misfit >= POOR_FIT:
            return "fits poorly" if self.misfit < HOPELESS_FIT else "does not fit"
        doubts = any(check.verdict != "good" for check in self.diagnostics)
        if good_record(self.diagnostics) is not None:
            return "use with caution" if doubts else "held on real samples"
        if self.misfit is None:
            return "not checked against the file" + ("; use with caution" if doubts else "")
        return "use with caution" if doubts else "passed its checks"


@dataclass(frozen=True, slots=True)
class Distribution:
    """How r1 spreads over the sample uniques, by one model.

    ``counts[i]`` uniques have r1 from ``edges[i]`` to ``edges[i + 1]``. ``same`` is the common r1 where all
    uniques have the same, and None otherwise. A tenth of the uniques have r1 of ``top_tenth`` or more.
    """

    model: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    same: float | None
    median: float
    top_tenth: float
    highest: float
    classes: Classification


@dataclass(frozen=True, slots=True)
class Drivers:
    """What drives the risk: keys and levels, gravest first.

    ``model`` is the model whose r1 weighs the uniques; None if no model can be trusted, and then every
    unique counts as 1.
    """

    model: str | None
    keys: tuple[KeyContribution, ...]
    levels: tuple[LevelLine, ...]
    levels_left_out: int


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report says; ``said_once`` holds for several models, whose verdicts do not repeat it.

    ``kept`` tells whether the recommended model's claims about records are true, where the population is known.
    """

    title: str
    verdict: Verdict
    warnings: tuple[str, ...]
    data: DataSummary
    models: tuple[ModelResult, ...]
    said_once: tuple[str, ...]
    recommended: str | None
    reason: str
    truth: Truth | None
    distribution: Distribution | None
    drivers: Drivers | None
    dependence: KeyDependence | None
    paths: tuple[ChosenPath, ...]
    mixtures: tuple[Mixture, ...]
    kept: AgainstTruth | None
    assumptions: tuple[Assumption, ...]
    provenance: Provenance

    @property
    def chosen(self) -> ModelResult | None:
        """The recommended model's line."""
        return next((found for found in self.models if found.recommended), None)


def compose(
    comparison: Comparison,
    *,
    source: str,
    command: str,
    truth: Truth | None = None,
    kappa1: float = 0.5,
    kappa2: float = 0.1,
    warnings: Sequence[str] = (),
    when: datetime | None = None,
    progress: Progress = silent,
) -> Report:
    """Turn a comparison of models into a report.

    Parameters
    ----------
    source
        Name of the file or table the sample was read from.
    command
        The command line as run; passwords in it are left out.
    truth
        The true risk, where the whole population is known.
    kappa1, kappa2
        Uniques with r1 above ``kappa1`` are called exposed, those below ``kappa2`` sheltered.
    warnings
        What the user should know of the input, one sentence each.
    when
        The time to print; now, by default.
    """
    sample = comparison.assessments[0].sample
    chosen = comparison.chosen
    distribution = _distribution(chosen, kappa1, kappa2)
    drivers = _drivers(sample, chosen, progress)
    keys = () if drivers is None else drivers.keys
    models = tuple(_model(found, found is chosen) for found in comparison.assessments)
    shared, own = said_once([(model.model, model.verdict) for model in models])
    provenance = provenance_of(comparison, source=source, command=command, when=when)
    return Report(
        title=f"Disclosure risk of {provenance.source}",
        verdict=verdict_of(
            comparison, truth=truth, keys=keys, classes=None if distribution is None else distribution.classes
        ),
        warnings=tuple(clean(warning) for warning in (*_interruption(comparison), *warnings)),
        data=_data(sample),
        models=tuple(replace(model, verdict=words) for model, words in zip(models, own, strict=True)),
        said_once=shared,
        recommended=comparison.recommended,
        reason=comparison.reason,
        truth=truth,
        distribution=distribution,
        drivers=drivers,
        dependence=key_dependence(comparison),
        paths=chosen_paths(comparison),
        mixtures=mixtures_of(comparison),
        kept=against_truth(chosen, truth),
        assumptions=assumptions_of(comparison),
        provenance=provenance,
    )


def _interruption(comparison: Comparison) -> tuple[str, ...]:
    """Which models or checks are missing because somebody ended the run."""
    if comparison.not_run:
        return (f"The run was interrupted, and these models have no answer: {', '.join(comparison.not_run)}.",)
    if comparison.interrupted and not any(found.interrupted for found in comparison.assessments):
        return ("The run was interrupted before the checks by subsamples were done.",)
    return ()


def _data(sample: Sample) -> DataSummary:
    index = sample.size_index
    sizes = [(str(size), index.at(size)) for size in range(1, SIZES + 1)]
    sizes.append((f"{SIZES + 1} or more", int(index.cells[index.sizes > SIZES].sum())))
    return DataSummary(
        records=sample.sample_size,
        population_size=sample.population_size,
        sampling_fraction=sample.sampling_fraction,
        keys=tuple((clean(key.name), len(key)) for key in sample.table.keys),
        cells=sample.table.size,
        admissible_cells=sample.admissible_cells,
        occupied_cells=sample.table.occupied,
        sample_uniques=sample.uniques,
        size_index=tuple(sizes),
        weighted=sample.table.weights is not None,
    )


def _model(found: RiskAssessment, recommended: bool) -> ModelResult:
    return ModelResult(
        model=clean(found.model),
        status=found.status,
        recommended=recommended,
        tau1=found.tau1,
        tau2=found.tau2,
        alike=found.records is not None and all_alike(found.records.r1),
        misfit=found.size_index_misfit,
        diagnostics=tuple(replace(check, words=clean(check.words)) for check in found.diagnostics),
        verdict=clean(found.verdict),
        settings=tuple((clean(name), clean(str(value))) for name, value in found.settings.items()),
        seconds_fit=found.seconds_fit,
        seconds_risk=found.seconds_risk,
    )


def all_alike(r1: Vector) -> bool:
    """Whether every sample unique has the same r1, up to rounding."""
    return len(r1) > 0 and float(np.ptp(r1)) <= 1e-6 * float(r1.max())


def _distribution(chosen: RiskAssessment | None, kappa1: float, kappa2: float) -> Distribution | None:
    classes = classify(np.zeros(0), kappa1, kappa2)  # refuses impossible thresholds, whatever was fitted
    if chosen is None or chosen.records is None or not len(chosen.records.r1):
        return None
    r1 = np.clip(chosen.records.r1, 0.0, 1.0)
    classes = classify(r1, kappa1, kappa2)
    counts, edges = np.histogram(r1, bins=BINS, range=(0.0, 1.0))
    median, top_tenth, highest = np.quantile(r1, (0.5, 0.9, 1.0))
    return Distribution(
        model=clean(chosen.model),
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        same=float(median) if all_alike(r1) else None,
        median=float(median),
        top_tenth=float(top_tenth),
        highest=float(highest),
        classes=classes,
    )


def _drivers(sample: Sample, chosen: RiskAssessment | None, progress: Progress) -> Drivers | None:
    if not sample.uniques:
        return None
    trusted = chosen is not None and chosen.records is not None
    r1 = chosen.records.r1 if chosen is not None and chosen.records is not None else np.ones(sample.uniques)
    keys = key_contributions(sample.table, r1, progress=progress)
    levels, left_out = level_lines(sample.table, r1)
    return Drivers(
        model=clean(chosen.model) if trusted and chosen is not None else None,
        keys=tuple(
            replace(
                key,
                key=clean(key.key),
                # To join some levels of an identifier leaves an identifier.
                coarsened=None if is_identifier(key, sample.sample_size) else key.coarsened,
            )
            for key in keys
        ),
        levels=levels,
        levels_left_out=left_out,
    )
