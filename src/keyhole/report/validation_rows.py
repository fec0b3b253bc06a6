"""Every replicate of a validation as a row of a Parquet file."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyhole.errors import InputError
from keyhole.report.json_result import plain
from keyhole.report.writing import private_file
from keyhole.validation.replicate import Interval, Replicate, Trial

COLUMNS = {
    "model": "VARCHAR", "sample_size": "BIGINT", "replicate": "BIGINT", "seed": "BIGINT", "status": "VARCHAR",
    "verdict": "VARCHAR", "records": "BIGINT", "uniques": "BIGINT",
    "tau1": "DOUBLE", "tau1_low": "DOUBLE", "tau1_high": "DOUBLE", "tau1_truth": "DOUBLE",
    "tau2": "DOUBLE", "tau2_low": "DOUBLE", "tau2_high": "DOUBLE", "tau2_truth": "DOUBLE",
    "auc_r1": "DOUBLE", "seconds": "DOUBLE", "processor_seconds": "DOUBLE",
    "calibration_r1": "DOUBLE[][]", "calibration_r2": "DOUBLE[][]",
    "false_positives": "BIGINT[]", "false_negatives": "BIGINT[]", "missed": "DOUBLE[]",
}  # fmt: skip


def write_rows(path: Path, results: Mapping[Trial, Replicate], first_seed: int) -> None:
    """Write one row per replicate and model; atomically, readable by its owner only."""
    import duckdb

    types = ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items())
    try:
        with (
            private_file(path) as temporary,
            tempfile.TemporaryDirectory(dir=temporary.parent, prefix=".keyhole-") as folder,
        ):
            lines = Path(folder) / "rows.jsonl"
            with lines.open("w", encoding="utf-8") as file:
                os.chmod(lines, 0o600)
                for trial, replicate in results.items():
                    file.write(json.dumps(plain(_row(trial, replicate, first_seed))) + "\n")
            source, target = (str(name).replace("'", "''") for name in (lines, temporary))
            with duckdb.connect() as connection:
                # Into the very file made for it: a file of DuckDB's own making would not be private.
                connection.execute(
                    f"COPY (SELECT * FROM read_json('{source}', format = 'newline_delimited', "
                    f"columns = {{{types}}})) TO '{target}' (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"
                )
    except duckdb.Error:
        problem = InputError(f"Cannot write {str(path)!r}: the disk may be full.")
    else:
        return
    raise problem


def _row(trial: Trial, replicate: Replicate, first_seed: int) -> dict[str, Any]:
    return {
        "model": trial.model,
        "sample_size": trial.size,
        "replicate": trial.seed - first_seed + 1,
        "seed": trial.seed,
        "status": replicate.status,
        "verdict": replicate.verdict,
        "records": replicate.records,
        "uniques": replicate.uniques,
        **_tau("tau1", replicate.tau1, replicate.population_uniques),
        **_tau("tau2", replicate.tau2, replicate.true_tau2),
        **{
            name: getattr(replicate, name)
            for name in (
                "auc_r1", "seconds", "processor_seconds", "calibration_r1", "calibration_r2", "false_positives",
                "false_negatives", "missed",
            )
        },
    }  # fmt: skip


def _tau(name: str, found: Interval | None, truth: float) -> dict[str, float | None]:
    return {
        name: None if found is None else found.estimate,
        f"{name}_low": None if found is None else found.low,
        f"{name}_high": None if found is None else found.high,
        f"{name}_truth": truth,
    }
