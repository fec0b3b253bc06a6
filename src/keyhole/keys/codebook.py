"""Codebooks: every level that each column can have, also those that nobody in the sample has."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from keyhole.keys.rules import read_rules


def _distinct(labels: tuple[str, ...]) -> tuple[str, ...]:
    twice = sum(times > 1 for times in Counter(labels).values())
    if twice:  # how many, not which: the file may be data, given by mistake
        raise ValueError(f"{twice} of {len(labels)} labels are listed more than once")
    if "" in labels:
        raise ValueError("a label is empty")
    return labels


Codebook: TypeAlias = Mapping[str, tuple[str, ...]]
"""The labels of each column, in order, as they are in the file (before recoding)."""

_FILE: TypeAlias = dict[str, Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_distinct)]]


def read_codebook(path: str | Path) -> Codebook:
    """Read a codebook: ``{SEX: [female, male], REGION: [north, south]}`` in YAML."""
    codebook: Codebook = read_rules(path, _FILE, "codebook")
    return codebook
