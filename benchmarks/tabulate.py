"""How fast, and in how much memory, does a Parquet file of ten keys become a contingency table?

Each size is generated and tabulated in processes of their own, so that peak memory is that of the task alone::

    python benchmarks/tabulate.py            # 1e6 and 1e7 records
    python benchmarks/tabulate.py --full     # also 1e8: some five minutes of CPU time

The file is like a census: five keys are small integers, five are texts, and most people are like others (200
types of person, each key departing from the type now and then). The same rows come out every time.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LEVELS = (2, 5, 7, 9, 14, 18, 25, 40, 60, 90)
TYPES = 200
DEPARTURE = 20
"""One value in so many departs from the type of the person."""


def generate(path: Path, records: int) -> None:
    """Write the file, a row group at a time."""
    import duckdb

    def key(place: int, levels: int) -> str:
        dice = f"hash(record * 16 + {place})"
        usual, other = f"hash(kind * 16 + {place}) % {levels}", f"({dice} >> 8) % {levels}"
        code = f"CASE WHEN {dice} % {DEPARTURE} = 0 THEN {other} ELSE {usual} END"
        return f"CAST({code} AS SMALLINT)" if place % 2 else f"format('level {{:02d}}', CAST({code} AS INTEGER))"

    keys = ", ".join(f"{key(place, levels)} AS K{place}" for place, levels in enumerate(LEVELS))
    people = f"SELECT range AS record, hash(range * 16 + 15) % {TYPES} AS kind FROM range({records})"
    with duckdb.connect(config={"memory_limit": "1GB"}) as connection:
        connection.execute(f"COPY (SELECT {keys} FROM ({people})) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


def measure(path: Path, per_record: bool) -> dict[str, Any]:
    """Tabulate the file and say what it took."""
    from keyhole.io import read
    from keyhole.keys import code_keys
    from keyhole.table.tabulate import cells_of_records, tabulate

    began = time.perf_counter()
    data = read(path)
    codings = code_keys(data, data.columns)
    table = tabulate(data, codings)
    if per_record:
        cells_of_records(data, codings, table)
    return {
        "seconds": time.perf_counter() - began,
        "records": data.records,
        "cells": table.occupied,
        "uniques": len(table.uniques),
    }


def in_own_process(*arguments: str) -> dict[str, Any]:
    """Run one task of this file alone and return what it says."""
    said = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, capture_output=True, text=True
    ).stdout
    answer: dict[str, Any] = json.loads(said)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="also a hundred million records")
    parser.add_argument("--task", choices=["generate", "tabulate", "per-record"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--records", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.task:
        said = {}
        if chosen.task == "generate":
            generate(chosen.path, chosen.records)
        else:
            said = measure(chosen.path, chosen.task == "per-record")
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({**said, "cpu": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}))
        return
    print(f"{'records':>12} {'task':>11} {'cells':>10} {'wall s':>7} {'CPU s':>7} {'rows/s':>12} {'peak MB':>8}")
    for records in (10**6, 10**7, *([10**8] if chosen.full else [])):
        with tempfile.TemporaryDirectory(prefix="keyhole-bench-") as directory:
            path = str(Path(directory, "keys.parquet"))
            made = in_own_process("--task", "generate", "--path", path, "--records", str(records))
            cost = f"{made['cpu']:>7.2f} {'':>12} {made['peak_mb']:>8.0f}"
            print(f"{records:>12,} {'generate':>11} {'':>18} {cost}", flush=True)
            for task in ("tabulate", "per-record"):
                run = in_own_process("--task", task, "--path", path)
                print(
                    f"{records:>12,} {task:>11} {run['cells']:>10,} {run['seconds']:>7.2f} {run['cpu']:>7.2f} "
                    f"{records / run['seconds']:>12,.0f} {run['peak_mb']:>8.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
