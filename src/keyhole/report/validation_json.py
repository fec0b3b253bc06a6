"""A validation as JSON, schema 1: what scripts and pipelines read."""

from collections.abc import Mapping
from importlib.metadata import version

from keyhole.report.json_result import SCHEMA, cells_number, plain
from keyhole.validation.measures import Measures, TauMeasures, calibration_points
from keyhole.validation.per_record import KAPPAS
from keyhole.validation.study import Validation


def validation_json(found: Validation) -> dict[str, object]:
    """The validation as the JSON object of schema 1; `keyhole.report.json_result.to_text` makes it text.

    Every number is finite: what is not a number is null. No record is in it.
    """
    table, study = found.population.table, found.study
    return {
        "schema": SCHEMA,
        "keyhole": version("keyhole"),
        "command": "validate",
        "seed": study.seed,
        "status": found.status,
        "population": {
            "size": len(found.population),
            "keys": [key.name for key in table.keys],
            "levels": list(table.levels),
            "cells": cells_number(table.size),
            "occupied_cells": table.occupied,
            "population_uniques": len(table.uniques),
        },
        "design": plain(study.design.settings),
        "planned": found.planned,
        "ended": len(found.results),
        "kappa": KAPPAS.round(6).tolist(),
        "results": [_result(one, study.settings_of(one.model)) for one in found.measures],
    }


def _result(one: Measures, settings: Mapping[str, object]) -> dict[str, object]:
    return {
        "model": one.model,
        "sample_size": one.size,
        "replicates": one.replicates,
        "failed": one.failed,
        "not_converged": one.not_converged,
        "failures": plain(one.faults),
        "tau1": _tau(one.tau1),
        "tau2": _tau(one.tau2),
        "calibration_r1": plain(calibration_points(one.calibration_r1)),
        "calibration_r2": plain(calibration_points(one.calibration_r2)),
        "auc_r1": plain(one.auc_r1),
        "false_positive_rate": plain(one.false_positives),
        "false_negative_rate": plain(one.false_negatives),
        "missed_at_false_positive_rate": plain(one.missed),
        "seconds_per_fit": plain(one.seconds_per_fit),
        "processor_seconds_per_fit": plain(one.processor_seconds_per_fit),
        "settings": plain(settings),
    }


def _tau(one: TauMeasures | None) -> dict[str, object] | None:
    if one is None:
        return None
    names = (
        "mean_truth", "mean_estimate", "relative_bias", "median_abs_relative_error", "rmse", "coverage",
        "mean_width", "median_truth",
    )  # fmt: skip
    return {**{name: plain(getattr(one, name)) for name in names}, "relative_error_quantiles": plain(one.errors)}
