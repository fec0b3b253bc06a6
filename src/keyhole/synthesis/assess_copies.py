"""The whole job of judging synthetic copies: read them beside the original, weigh what they give away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np

from keyhole.arrays import Codes, Vector
from keyhole.errors import InputError, InvalidKeys
from keyhole.io import read
from keyhole.keys.coding import code_keys
from keyhole.keys.variable import KeyVariable
from keyhole.progress import Progress, silent
from keyhole.randomness import DEFAULT_SEED, stream
from keyhole.synthesis.class_draws import Length
from keyhole.synthesis.files import (
    DRAWS,
    Confidential,
    copies_in,
    read_confidential,
    read_copies,
    read_draws,
    read_manifest,
)
from keyhole.synthesis.generator import sampler_of
from keyhole.synthesis.matched_records import MatchRisk, mean_match_risk
from keyhole.synthesis.question import LogBeliefs, Question
from keyhole.synthesis.risk import synthetic_risk
from keyhole.synthesis.risk_result import Estimator, SyntheticRisk
from keyhole.synthesis.search import Search
from keyhole.synthesis.supports import MOST_CELLS, Near, Support, all_cells, known_part
from keyhole.table.packing import Packing, rank_rows
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.tabulate import tabulate
from keyhole.table.zero_rules import read_zero_rules

SupportName = Literal["one-change", "two-change", "all", "search"]

UNLISTED = 1e-9
"""Weight, beside the smallest given one, of combinations that a file of beliefs does not list."""


@dataclass(frozen=True)
class Inquiry:
    """What was asked.

    Attributes
    ----------
    keys
        Nothing for those that the copies were made with.
    support
        Nothing for changes of one key, or for all combinations of what he does not know if he knows some keys.
    prior
        ``uniform``, ``model``, or a file of combinations with a column ``weight``.
    knows
        Keys of the target that the intruder knows; nothing for none. Keys that were not synthesised he knows.
    learns
        Keys whose levels he wants to learn.
    target
        The key that measures without a model take as the secret one; nothing for the last that is synthetic.
    sizes
        Numbers of synthetic records to tell the risk for, besides all.
    """

    data: str
    synthetic: Path
    keys: tuple[str, ...] = ()
    support: SupportName | None = None
    estimator: Estimator = "bridge"
    prior: str = "uniform"
    knows: tuple[str, ...] = ()
    learns: tuple[str, ...] = ()
    target: str | None = None
    sizes: tuple[int, ...] = ()
    data_only: bool = False
    table: str | None = None
    zeros: Path | None = None
    recode: Path | None = None
    levels: Path | None = None
    missing: Literal["level", "drop"] = "level"
    seed: int = DEFAULT_SEED
    classes: int = 0
    length: Length = field(default=Length())


@dataclass(frozen=True, eq=False)
class JudgedCopies:
    """The answer; ``risk`` is None where no model was asked for.

    ``knows`` are the keys of the target that the intruder knows, ``external`` tells that the copies were not made
    by Keyhole.
    """

    inquiry: Inquiry
    original: Confidential = field(repr=False)
    keys: tuple[KeyVariable, ...] = field(repr=False)
    copies: int
    target: str
    knows: tuple[str, ...]
    risk: SyntheticRisk | None
    matches: MatchRisk
    external: bool
    warnings: tuple[str, ...]

    @property
    def source(self) -> str:
        return self.original.microdata.source

    @property
    def records(self) -> int:
        return self.original.table.records


def judge_copies(inquiry: Inquiry, progress: Progress = silent) -> JudgedCopies:
    """Read the file and its copies, and work out what they give away."""
    progress("reading", 0)
    files = copies_in(inquiry.synthetic)
    manifest = read_manifest(inquiry.synthetic)
    names = inquiry.keys or tuple(map(str, _listed(manifest.get("keys"))))
    if not names:
        raise InputError("The folder has no synthesis.json that names the keys: give them with --keys.")
    dropping = inquiry.missing == "drop" or manifest.get("missing") in ("drop", "impute")
    original = read_confidential(
        inquiry.data,
        names,
        table=inquiry.table,
        recode=inquiry.recode or _path(manifest.get("recode")),
        levels=inquiry.levels or _path(manifest.get("levels")),
        missing="drop" if dropping else "level",
    )
    keys, copies = read_copies(original, files)
    fewest = min(map(len, copies))
    if any(size > fewest for size in inquiry.sizes):
        raise InputError(f"--sizes asks for more records than the copies have: there is one with {fewest:,}.")
    sizes = tuple(len(key) for key in keys)
    rules = inquiry.zeros or _path(manifest.get("zeros"))
    zeros = None if rules is None else StructuralZeros(keys, read_zero_rules(rules))
    codes = original.codes
    only = tuple(map(str, _listed(manifest.get("only"))))
    kept = tuple(name for name in names if only and name not in only)
    synthetic = [place for place, name in enumerate(names) if name not in kept]
    target = _place(inquiry.target, names, "--target") if inquiry.target else (synthetic or [-1])[-1]
    if not synthetic:
        raise InvalidKeys("None of the keys was synthesised: the copies have them as the file does.")
    if len(names) < 2:
        raise InvalidKeys("Synthetic files are judged by two keys or more.")
    known = [key for key in range(len(names)) if key != target]
    matches = mean_match_risk(codes, copies, sizes, known, target)
    risk = None
    if not inquiry.data_only:
        risk = synthetic_risk(
            sampler_of(sizes, len(codes), zeros, inquiry.classes or _classes(manifest)),
            codes,
            copies,
            _question(inquiry, names, keys, zeros, kept),
            generating=read_draws(inquiry.synthetic / DRAWS, keys),
            rng=stream(inquiry.seed, "synthetic risk"),
            progress=progress,
        )
    return JudgedCopies(
        inquiry,
        original,
        keys,
        len(copies),
        names[target],
        _known(inquiry, names, kept),
        risk,
        matches,
        not manifest,
        tuple(_told(original, keys, kept, external=not manifest and risk is not None)),
    )


def _known(inquiry: Inquiry, names: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    """Keys that the intruder knows of the target.

    Those that were kept are in the copies as they are: who knows all others of the file knows what is left.
    """
    places = {_place(name, names, "--knows") for name in (*inquiry.knows, *kept)}
    if len(places) == len(names):
        raise InputError("--knows names all keys that are synthetic: there is nothing left to guess.")
    return tuple(names[place] for place in sorted(places))


def _question(
    inquiry: Inquiry,
    names: Sequence[str],
    keys: tuple[KeyVariable, ...],
    zeros: StructuralZeros | None,
    kept: Sequence[str],
) -> Question:
    sizes = tuple(len(key) for key in keys)
    known = tuple(names.index(name) for name in _known(inquiry, names, kept))
    asked = inquiry.support or _usual_support(sizes, known, by_choice=bool(inquiry.knows))
    search: Search | None = None
    support: Support = Near(sizes, 2 if asked == "two-change" else 1, zeros, known)
    if asked == "search":
        if known:
            raise InputError("A search looks through all keys: with some keys known, ask for another --support.")
        search = Search(sizes, zeros, by_model=inquiry.prior == "model")
    elif asked == "all":
        support = known_part(sizes, known, zeros) if known else all_cells(sizes, zeros)
    given = inquiry.prior not in ("uniform", "model")
    return Question(
        support,
        inquiry.estimator,
        "given" if given else "model" if inquiry.prior == "model" else "uniform",
        beliefs_in(Path(inquiry.prior), keys) if given else None,
        tuple(_place(name, names, "--learns") for name in inquiry.learns),
        inquiry.sizes,
        inquiry.length,
        search,
    )


def _usual_support(sizes: tuple[int, ...], known: tuple[int, ...], *, by_choice: bool) -> SupportName:
    """Changes of one key; all combinations of what he does not know, where they are few or he was told to know."""
    if not known:
        return "one-change"
    unknown = prod(size for key, size in enumerate(sizes) if key not in known)
    return "all" if by_choice or unknown <= MOST_CELLS else "one-change"


def beliefs_in(path: Path, keys: tuple[KeyVariable, ...]) -> LogBeliefs:
    """What an intruder believes, from a file of combinations with a column ``weight``.

    Combinations that are not listed keep next to no weight, rather than none: nothing he did not think of can
    otherwise be found out.

    Raises
    ------
    InputError
        There is no column ``weight``, or a weight is not positive.
    """
    microdata = read(str(path))
    if "weight" not in microdata.columns:
        raise InputError(f"The file of beliefs {path.name!r} needs a column 'weight' beside the keys.")
    names = [key.name for key in keys]
    codings = code_keys(microdata, names, codebook={key.name: tuple(key.levels) for key in keys})
    table = tabulate(microdata, codings, weights="weight")
    assert table.weights is not None
    place = [
        np.array([key.code[label] for label in coding.variable.levels])
        for key, coding in zip(keys, codings, strict=True)
    ]
    cells = np.stack([own[column] for own, column in zip(place, table.cells.T, strict=True)], axis=1)
    log_weight = np.log(table.weights)
    packing = Packing(tuple(len(key) for key in keys))

    def believed(asked: Codes) -> Vector:
        number = rank_rows(packing.pack(np.concatenate([cells, asked.astype(cells.dtype)])))[1]
        found = np.full(int(number.max()) + 1, log_weight.min() + np.log(UNLISTED))
        found[number[: len(cells)]] = log_weight
        return np.asarray(found[number[len(cells) :]])

    return believed


def _told(
    original: Confidential, keys: tuple[KeyVariable, ...], kept: Sequence[str], *, external: bool
) -> list[str]:
    told = []
    if original.dropped:
        told.append(f"{original.dropped:,} records with a missing key were left out.")
    added = [key.name for key, own in zip(keys, original.keys, strict=True) if len(key) > len(own)]
    if added:
        told.append(f"Copies have levels that the original does not have, of {', '.join(added)}.")
    if external:
        told.append(
            "The copies were not made by Keyhole: chances by the model are those of an intruder who takes them "
            "for draws from latent classes of the file."
        )
    if kept:
        told.append(
            f"Not synthesised: {', '.join(kept)}. The copies have these keys as the file does, so the intruder is "
            "taken to know them of the record; the chances take the rows of the copies for people of their own."
        )
    return told


def _place(name: str, names: Sequence[str], option: str) -> int:
    if name not in names:
        raise InputError(f"{option} names {name!r}, which is not among the keys.")
    return names.index(name)


def _classes(manifest: Mapping[str, object]) -> int:
    """As many as the copies were made with: the intruder knows how they were made; 0 if that is not told."""
    settings = manifest.get("settings")
    found = settings.get("classes") if isinstance(settings, dict) else None
    return found if isinstance(found, int) else 0


def _listed(found: object) -> list[object]:
    return found if isinstance(found, list) else []


def _path(found: object) -> Path | None:
    return Path(found) if isinstance(found, str) else None
