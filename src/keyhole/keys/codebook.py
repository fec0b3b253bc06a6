"""Codebooks: every level that each column can have, also those that nobody in the sample has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from keyhole.keys.rules import read_rules


def _distinct(labels: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(f"{len(twice)} labels are listed twice, the first is {twice[0]!r}")
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
