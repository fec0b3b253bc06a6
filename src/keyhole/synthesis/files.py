"""A confidential file and its synthetic copies, coded alike; and the draws that made them, kept in a file."""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np

from keyhole.arrays import Codes, IntVector, Mask
from keyhole.errors import DoubtfulKeys, InputError, UnknownKeyVariable
from keyhole.io import Microdata, read
from keyhole.keys.codebook import read_codebook
from keyhole.keys.coding import KeyCoding, code_keys
from keyhole.keys.recode import read_recodes
from keyhole.keys.variable import MISSING, KeyVariable
from keyhole.models.latent_class.state import LatentClasses
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.tabulate import cells_of_records, tabulate
from keyhole.table.zero_rules import read_zero_rules

MANIFEST, DRAWS = "synthesis.json", "generating-draws.npz"
COPY = "synthetic-"
ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".gz", ".parquet", ".sav", ".zsav", ".dta", ".sas7bdat")

Missing = Literal["level", "drop", "impute"]


@dataclass(frozen=True, eq=False)
class Confidential:
    """The file that is to be protected.

    Attributes
    ----------
    table
        Its combinations, a missing value being a level of its own or its record left out.
    """

    microdata: Microdata = field(repr=False)
    codings: tuple[KeyCoding, ...] = field(repr=False)
    table: ContingencyTable
    zeros: StructuralZeros | None

    @property
    def keys(self) -> tuple[KeyVariable, ...]:
        return self.table.keys

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.table.levels

    @property
    def codes(self) -> Codes:
        """One row per record, sorted: nothing may depend on the order of the file."""
        return np.repeat(self.table.cells, self.table.counts, axis=0)

    @property
    def dropped(self) -> int:
        return self.microdata.records - self.table.records

    def combination_of_each_record(self) -> IntVector:
        """Its place among the sorted combinations, in the order of the file; -1 for a record left out."""
        place = np.unique(self.table.cells, axis=0, return_inverse=True)[1].reshape(-1)
        found = cells_of_records(self.microdata, self.codings, self.table)
        return np.where(found < 0, -1, place[found])

    def without_missing(self) -> tuple[tuple[KeyVariable, ...], Codes, Mask]:
        """Keys without the level of missing values, codes with 0 where a value is missing, and where that is."""
        # That level is always a key's last, so that other codes stay what they are.
        keys = tuple(
            KeyVariable(key.name, tuple(level for level in key.levels if level != MISSING)) for key in self.keys
        )
        codes = self.codes.astype(np.int64)
        missing = codes >= np.array([len(key) for key in keys])
        return keys, np.where(missing, 0, codes), missing


def read_confidential(
    source: str,
    keys: Sequence[str],
    *,
    table: str | None = None,
    zeros: Path | None = None,
    recode: Path | None = None,
    levels: Path | None = None,
    missing: Missing = "level",
) -> Confidential:
    """Read the keys of a file and count its combinations."""
    microdata = read(source, table=table)
    codings = code_keys(
        microdata,
        keys,
        recodes=None if recode is None else read_recodes(recode),
        codebook=None if levels is None else read_codebook(levels),
        missing="drop" if missing == "drop" else "level",
    )
    counted = tabulate(microdata, codings)
    impossible = None
    if zeros is not None:
        impossible = StructuralZeros(counted.keys, read_zero_rules(zeros))
        impossible.check(counted)
    return Confidential(microdata, tuple(codings), counted, impossible)


def copies_in(folder: Path) -> list[Path]:
    """The synthetic files of a folder: those that Keyhole wrote, or else all that can be read as data.

    Raises
    ------
    InputError
        There is no such folder, or nothing in it.
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r} with synthetic files.")
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
    own = [path for path in files if path.name.startswith(COPY)]
    found = sorted(own, key=_number) if own else files
    if not found:
        raise InputError(f"No data file was found in {str(folder)!r}; it should hold the synthetic copies.")
    return found


def _number(path: Path) -> tuple[int, str]:
    digits = path.name.removeprefix(COPY).split(".")[0]
    return (int(digits) if digits.isdigit() else 0, path.name)


def read_copies(
    original: Confidential, files: Sequence[Path]
) -> tuple[tuple[KeyVariable, ...], tuple[Codes, ...]]:
    """The copies coded as the original is, and the keys with levels that only a copy has added at the end.

    Raises
    ------
    UnknownKeyVariable
        A copy lacks a key.
    """
    names = [key.name for key in original.keys]
    opened = [read(str(path)) for path in files]
    for path, microdata in zip(files, opened, strict=True):
        absent = [name for name in names if name not in microdata.columns]
        if absent:
            raise UnknownKeyVariable(f"The synthetic file {path.name!r} has no column {absent[0]!r}.")
    found = [microdata.levels(names) for microdata in opened]
    keys = []
    for key in original.keys:
        seen = dict.fromkeys(level.label or MISSING for levels in found for level in levels[key.name])
        keys.append(KeyVariable(key.name, (*key.levels, *(label for label in seen if label not in key.code))))
    codes = []
    for microdata in opened:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DoubtfulKeys)  # of the same keys as in the original, which told them
            codings = code_keys(microdata, names, codebook={key.name: tuple(key.levels) for key in keys})
        table = tabulate(microdata, codings)
        place = [
            np.array([key.code[label] for label in coding.variable.levels], dtype=np.int32)
            for key, coding in zip(keys, codings, strict=True)
        ]
        cells = np.stack([own[column] for own, column in zip(place, table.cells.T, strict=True)], axis=1)
        codes.append(np.repeat(cells, table.counts, axis=0))
    return tuple(keys), tuple(codes)


def draws_file(states: Sequence[LatentClasses], keys: Sequence[KeyVariable]) -> bytes:
    """The parameters that made the copies, as an ``.npz`` file."""
    out = BytesIO()
    arrays = {
        "log_weight": np.array([state.log_weight for state in states]),
        "log_theta": np.array([state.log_theta for state in states]),
        "log_admissible": np.array([state.log_admissible for state in states]),
        "concentration": np.array([state.concentration for state in states]),
        "mass": np.array([state.mass for state in states]),
        "base": np.array([state.base for state in states]),
        "levels": np.array(json.dumps({key.name: list(key.levels) for key in keys})),
    }
    np.savez_compressed(out, allow_pickle=False, **arrays)
    return out.getvalue()


def read_draws(path: Path, keys: Sequence[KeyVariable]) -> tuple[LatentClasses, ...] | None:
    """The parameters that made the copies; None if there is no such file or it is of other levels."""
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as found:
        if json.loads(str(found["levels"])) != {key.name: list(key.levels) for key in keys}:
            return None
        arrays = {name: found[name] for name in found.files if name != "levels"}
    return tuple(
        LatentClasses(**{name: values[copy] for name, values in arrays.items()}, records=0)
        for copy in range(len(arrays["concentration"]))
    )


def read_manifest(folder: Path) -> Mapping[str, object]:
    """What was written beside the copies; empty where they come from elsewhere.

    Raises
    ------
    InputError
        The file is there and cannot be read.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError:
        raise InputError(f"{str(path)!r} is not JSON; was it changed by hand?") from None
    return found if isinstance(found, dict) else {}
