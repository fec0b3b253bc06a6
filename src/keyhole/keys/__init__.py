"""Which variables an intruder may know.

The readers of rule files are imported when they are used: pydantic and YAML take longer to import than all of
Keyhole's own code.
"""

from typing import TYPE_CHECKING, Any

from keyhole.keys.variable import MISSING, KeyVariable

if TYPE_CHECKING:
    from keyhole.keys.codebook import Codebook, read_codebook
    from keyhole.keys.coding import DROPPED, KeyCoding, code_keys
    from keyhole.keys.ranking import ColumnRank, rank_columns
    from keyhole.keys.recode import Recode, Recodes, read_recodes

__all__ = [
    "DROPPED",
    "MISSING",
    "Codebook",
    "ColumnRank",
    "KeyCoding",
    "KeyVariable",
    "Recode",
    "Recodes",
    "code_keys",
    "rank_columns",
    "read_codebook",
    "read_recodes",
]

_HOME = {
    "Codebook": "codebook",
    "read_codebook": "codebook",
    "DROPPED": "coding",
    "KeyCoding": "coding",
    "code_keys": "coding",
    "ColumnRank": "ranking",
    "rank_columns": "ranking",
    "Recode": "recode",
    "Recodes": "recode",
    "read_recodes": "recode",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
