"""What synthetic copies tell of every record, one row each in the order of the input, as CSV or Parquet."""

import os

import numpy as np

from keyhole.arrays import IntVector
from keyhole.report.records import ByCell, write_by_cell
from keyhole.synthesis.risk_result import SyntheticRisk

_COLUMNS = """
    "row" BIGINT, cell_count BIGINT, probability DOUBLE, standard_error DOUBLE, rank BIGINT, candidates BIGINT,
    prior DOUBLE, ratio DOUBLE, needed DOUBLE, khat DOUBLE, trusted BOOLEAN
"""

_INSERT = """
    INSERT INTO risk SELECT "row", nullif(cell_count, 0), probability, standard_error, nullif(rank, 0),
        nullif(candidates, 0), prior, probability / nullif(prior, 0), needed, khat,
        CASE WHEN cell_count > 0 THEN trusted END
    FROM (SELECT * REPLACE (
        nullif(probability, 'nan') AS probability, nullif(standard_error, 'nan') AS standard_error,
        nullif(prior, 'nan') AS prior, nullif(needed, 'nan') AS needed, nullif(khat, 'nan') AS khat) FROM chunk)
"""


def write_synthetic_records(
    path: str | os.PathLike[str], risk: SyntheticRisk, combination_of_each_record: IntVector
) -> None:
    """Write the chance of each record's true combination, and how far it is to be relied on.

    Records that are alike have the same numbers; a record that was left out for a missing key (-1) has none.

    Parameters
    ----------
    path
        Ends in ``.csv`` or ``.parquet``; written atomically, readable by its owner only.
    """
    found = risk.combinations
    whole = {"cell_count": found.counts, "rank": found.rank, "candidates": found.candidates}
    parts = {
        "probability": found.probability,
        "standard_error": found.error,
        "prior": found.before,
        "needed": found.needed,
        "khat": found.khat,
    }
    by_cell: ByCell = {name: np.append(values, 0) for name, values in whole.items()}
    by_cell |= {name: np.append(values, np.nan) for name, values in parts.items()}
    by_cell["trusted"] = np.append(~risk.untrusted, False)
    write_by_cell(path, _COLUMNS, _INSERT, (), by_cell, combination_of_each_record)
