"""Who in this file could be recognised, how surely, and what would help.

The public vocabulary; each name is imported when it is first used, so that ``import keyhole`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Microdata": "keyhole.io",
    "read": "keyhole.io",
    "KeyVariable": "keyhole.keys.variable",
    "ContingencyTable": "keyhole.table.contingency",
    "SizeIndex": "keyhole.table.size_index",
    "StructuralZeros": "keyhole.table.structural_zeros",
    "tabulate": "keyhole.table.tabulate",
    "LoadedSample": "keyhole.population.loading",
    "load_sample": "keyhole.population.loading",
    "Sample": "keyhole.population.sample",
    "simple_random_sample": "keyhole.population.draw",
    "UnsampledCounts": "keyhole.population.unsampled",
    "RiskModel": "keyhole.inference.fit",
    "Fit": "keyhole.inference.fit",
    "Diagnostic": "keyhole.inference.fit",
    "model_named": "keyhole.models.catalogue",
    "assess_risk": "keyhole.risk.assess",
    "compare_models": "keyhole.risk.compare",
    "known_truth": "keyhole.risk.truth",
    "RiskEstimate": "keyhole.risk.estimate",
    "RiskAssessment": "keyhole.risk.estimate",
    "load_population": "keyhole.validation.population",
    "Study": "keyhole.validation.study",
    "validate": "keyhole.validation.study",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'keyhole' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from keyhole.inference.fit import Diagnostic, Fit, RiskModel
    from keyhole.io import Microdata, read
    from keyhole.keys.variable import KeyVariable
    from keyhole.models.catalogue import model_named
    from keyhole.population.draw import simple_random_sample
    from keyhole.population.loading import LoadedSample, load_sample
    from keyhole.population.sample import Sample
    from keyhole.population.unsampled import UnsampledCounts
    from keyhole.risk.assess import assess_risk
    from keyhole.risk.compare import compare_models
    from keyhole.risk.estimate import RiskAssessment, RiskEstimate
    from keyhole.risk.truth import known_truth
    from keyhole.table.contingency import ContingencyTable
    from keyhole.table.size_index import SizeIndex
    from keyhole.table.structural_zeros import StructuralZeros
    from keyhole.table.tabulate import tabulate
    from keyhole.validation.population import load_population
    from keyhole.validation.study import Study, validate
