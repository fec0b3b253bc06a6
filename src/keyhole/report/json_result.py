"""The result as JSON, schema 1: what scripts and pipelines read."""

import json
import math
from collections.abc import Mapping
from importlib.metadata import version

import numpy as np

from keyhole.inference.dependence import Dependence
from keyhole.inference.model_path import ModelPath
from keyhole.population.sample import Sample
from keyhole.risk.compare import Comparison
from keyhole.risk.estimate import RiskAssessment, RiskEstimate
from keyhole.risk.truth import Truth

SCHEMA = 1
"""Raised when a field changes its meaning or goes away; new fields may appear within a schema."""


def to_json(comparison: Comparison, *, command: str, truth: Truth | None = None) -> dict[str, object]:
    """The comparison as the JSON object of schema 1 (``docs/reference/json.md``).

    Every number is finite: what is not a number becomes null.

    Parameters
    ----------
    command
        The command that asked, e.g. ``assess``; not the command line, which may name files.
    truth
        The true tau1 and tau2, where the whole population is known.
    """
    first = comparison.assessments[0]
    return {
        "schema": SCHEMA,
        "keyhole": version("keyhole"),
        "command": command,
        "seed": first.seed,
        "data": _data(first.sample),
        "results": [_result(found, truth) for found in comparison.assessments],
        "recommended": comparison.recommended,
        **({"not_run": list(comparison.not_run)} if comparison.not_run else {}),
        **({"interrupted": True} if comparison.interrupted else {}),
    }


def to_text(result: Mapping[str, object]) -> str:
    """A JSON object as text: ASCII, so that it survives any pipe, and never NaN or Infinity."""
    return json.dumps(result, indent=2, allow_nan=False) + "\n"


def _data(sample: Sample) -> dict[str, object]:
    return {
        "records": sample.sample_size,
        "population_size": sample.population_size,
        "sampling_fraction": sample.sampling_fraction,
        "keys": [key.name for key in sample.table.keys],
        "levels": list(sample.table.levels),
        "cells": cells_number(sample.table.size),
        "admissible_cells": cells_number(sample.admissible_cells),
        "occupied_cells": sample.table.occupied,
        "sample_uniques": sample.uniques,
    }


def _result(found: RiskAssessment, truth: Truth | None) -> dict[str, object]:
    result: dict[str, object] = {
        "model": found.model,
        "status": found.status,
        "tau1": _estimate(found.tau1),
        "tau2": _estimate(found.tau2),
    }
    if truth is not None:
        result["truth"] = {"tau1": plain(truth.tau1), "tau2": plain(truth.tau2)}
    result["diagnostics"] = {
        **{check.name: plain(check.value) for check in found.diagnostics},
        "size_index_misfit": plain(found.size_index_misfit),
        "verdict": found.verdict,
    }
    if found.dependence is not None:
        result["dependence"] = _dependence(found.dependence)
    if found.path is not None:
        result["path"] = _path(found.path)
    result["seconds"] = {"fit": plain(found.seconds_fit), "risk": plain(found.seconds_risk)}
    result["settings"] = plain(found.settings)
    return result


def _estimate(found: RiskEstimate | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "estimate": plain(found.estimate),
        "interval": [plain(found.low), plain(found.high)],
        "level": plain(found.level),
        "mcse": plain(found.mcse),
        "expected_sd": plain(found.expected_sd),
    }


def _dependence(found: Dependence) -> dict[str, object]:
    return {
        "pairs": [
            {"keys": [pair.first, pair.second], "strength": plain(float(pair.strength))} for pair in found.pairs
        ],
        "three_way": [
            {"keys": [one.first, one.second], "on": one.on, "score": plain(float(one.score))}
            for one in found.triples
        ],
    }


def _path(found: ModelPath) -> dict[str, object]:
    return {
        "along": found.along,
        "chosen": int(found.chosen),
        "steps": [
            {
                "label": step.label,
                "value": plain(step.value),
                "tau1": plain(step.tau1),
                "tau2": plain(step.tau2),
                "statistics": plain(step.statistics),
            }
            for step in found.steps
        ],
    }


def cells_number(cells: int) -> float | None:
    """A number of cells, or null where it is beyond all floats."""
    # A table of forty keys has more cells than a float can count, yet the field must stay a number or null.
    try:
        return float(cells)
    except OverflowError:
        return None


def plain(value: object) -> object:
    """A value in the types that JSON knows; what it cannot say as a number becomes null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    return str(value)
