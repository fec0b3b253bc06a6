"""What is validated: models of the catalogue, their settings, and which code they are made of."""

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import keyhole
from keyhole.inference.chain_settings import ChainSettings
from keyhole.inference.fit import RiskModel
from keyhole.models.catalogue import CATALOGUE, model_named
from keyhole.models.pooled.model import ANSWER_ALONE, LEADER
from keyhole.population.sample import Sample
from keyhole.risk.assess import assess_risk
from keyhole.risk.estimate import RiskAssessment

SHARED = (
    "arrays.py",
    "randomness.py",
    "inference/*.py",
    "models/catalogue.py",
    "numerics/*.py",
    "population/*.py",
    "risk/*.py",
    "table/*.py",
    "validation/assessor.py",
    "validation/designs.py",
    "validation/per_record.py",
    "validation/population.py",
    "validation/replicate.py",
)
"""Files that every replicate depends on, besides its model's."""

POOLED: Mapping[str, tuple[str, ...]] = {"auto": ("sequential-logit", "latent-class")}
"""Models that are made of others."""

ANSWERED: Mapping[str, tuple[str, ...]] = {"auto": (LEADER,)}
"""Members of a pool that it fits with the settings they have here, so that one fit answers for both."""

ALONE: Mapping[str, Mapping[str, object]] = {
    "auto": {"second_opinion": False},
    LEADER: ANSWER_ALONE,
}
"""Options under which a model says the same, without what is shown beside it: nobody looks at that here."""

_ROOT = Path(keyhole.__file__).parent
_BEGUN_WITH = {file: file.read_bytes() for file in _ROOT.rglob("*.py")}
"""The code when this process began: most of what it runs, whatever becomes of the files."""

SLOWER = ("auto", "sequential-logit", "lasso", "skinner-shlomo")
"""Models without chains of their own that take seconds or minutes."""


def assessors(asked: Sequence[str]) -> tuple[str, ...]:
    """The names asked for, ``all`` meaning every model, each once and quick ones first."""
    named = [name for one in asked for name in (CATALOGUE if one == "all" else (one,))]
    for name in named:
        settings_of(name)
    return tuple(sorted(dict.fromkeys(named), key=slowness))


@cache
def slowness(name: str) -> int:
    """0 for models that take a moment, 1 for those that take seconds or minutes, 2 for those with chains."""
    return 2 if isinstance(model_named(name), ChainSettings) else int(name in SLOWER)


def settings_of(name: str, options: Mapping[str, object] | None = None) -> dict[str, object]:
    """Settings of a model with these options.

    Raises
    ------
    UnknownModel
        There is no such model, or it has no such option.
    """
    return dict(_model(name, options or {}).settings)


def assess(name: str, options: Mapping[str, object], sample: Sample, seed: int) -> RiskAssessment:
    """What a model says of a sample."""
    return assess_risk(_model(name, options), sample, seed=seed)


def _model(name: str, options: Mapping[str, object]) -> RiskModel:
    return model_named(name, **{**ALONE.get(name, {}), **options})


@cache
def source_digest(name: str) -> str:
    """Changes when the files beside a model change, or shared ones, or those of a pool with what it is made of."""
    pools = [pool for pool, members in ANSWERED.items() if name in members]
    folders = {_folder(type(model_named(one))) for one in (name, *pools, *POOLED.get(name, ()))}
    used = {file for file in _BEGUN_WITH if file.parent in folders}
    used |= {file for pattern in SHARED for file in _ROOT.glob(pattern)} & _BEGUN_WITH.keys()
    whole = hashlib.sha256()
    for file in sorted(used):
        # Where a file has changed since, nobody knows which of both runs: such a digest is like no other.
        now = file.read_bytes()
        whole.update(now if now == _BEGUN_WITH[file] else _BEGUN_WITH[file] + now)
    return whole.hexdigest()[:16]


def _folder(thing: object) -> Path:
    return Path(inspect.getfile(thing)).parent  # type: ignore[arg-type]
