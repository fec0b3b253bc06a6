"""What is validated: a model of the catalogue, or ``auto``, what Keyhole recommends by itself."""

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from keyhole.errors import UnknownModel
from keyhole.inference.chain_settings import ChainSettings
from keyhole.models.catalogue import CATALOGUE, automatic, model_named
from keyhole.population.sample import Sample
from keyhole.risk import compare
from keyhole.risk.assess import assess_risk
from keyhole.risk.compare import compare_models
from keyhole.risk.estimate import RiskAssessment

AUTO = "auto"

MEMBERS = ("sequential-logit", "latent-class")
"""What auto is made of."""

SLOWER = (AUTO, "sequential-logit", "lasso", "skinner-shlomo")
"""Models without chains that take seconds or minutes."""


def assessors(asked: Sequence[str]) -> tuple[str, ...]:
    """The names asked for, ``all`` meaning every model and auto, each once and quick ones first."""
    named = [name for one in asked for name in ((AUTO, *CATALOGUE) if one == "all" else (one,))]
    for name in named:
        settings_of(name)
    return tuple(sorted(dict.fromkeys(named), key=slowness))


def slowness(name: str) -> int:
    """0 for models that take a moment, 1 for those that take seconds or minutes, 2 for those with chains."""
    if name == AUTO:
        return 1
    return 2 if isinstance(model_named(name), ChainSettings) else int(name in SLOWER)


def settings_of(name: str, options: Mapping[str, object] | None = None) -> dict[str, object]:
    """Settings of a model with these options; auto has those of its candidates.

    Raises
    ------
    UnknownModel
        There is no such model, or it has no such option.
    """
    if name == AUTO and AUTO not in CATALOGUE:
        if options:
            raise UnknownModel(f"auto has no option {next(iter(options))!r}; it chooses for itself.")
        return {one: dict(model_named(one).settings) for one in automatic()}
    return dict(model_named(name, **(options or {})).settings)


def assess(name: str, options: Mapping[str, object], sample: Sample, seed: int) -> RiskAssessment | None:
    """What a model says of a sample; None where auto recommends nothing."""
    if name != AUTO or AUTO in CATALOGUE:
        return assess_risk(model_named(name, **options), sample, seed=seed)
    weighted = sample.table.weights is not None
    comparison = compare_models([model_named(one) for one in automatic(weighted=weighted)], sample, seed=seed)
    if stopped := next((one for one in comparison.assessments if one.interrupted), None):
        return stopped
    if comparison.chosen is None:
        return None
    return replace(
        comparison.chosen,
        seconds_fit=sum(one.seconds_fit for one in comparison.assessments),
        seconds_risk=sum(one.seconds_risk for one in comparison.assessments),
    )


@cache
def source_digest(name: str) -> str:
    """Changes when the files beside a model change; for auto, those of its members and of what chooses."""
    if name == AUTO and AUTO not in CATALOGUE:
        folders = {_folder(type(model_named(one))) for one in automatic(weighted=True)} | {_folder(compare)}
    else:
        members = MEMBERS if name == AUTO else ()
        folders = {_folder(type(model_named(one))) for one in (name, *members)}
    whole = hashlib.sha256()
    for file in sorted(file for folder in folders for file in folder.glob("*.py")):
        whole.update(file.read_bytes())
    return whole.hexdigest()[:16]


def _folder(thing: object) -> Path:
    return Path(inspect.getfile(thing)).parent  # type: ignore[arg-type]
