"""The options that every model with chains has."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path

from numpy.random import Generator

from keyhole.errors import UnknownModel
from keyhole.inference.checkpoint import Checkpoint, kept_path, kept_paths
from keyhole.inference.schedule import Schedule
from keyhole.population.sample import Sample

MAY_CHANGE = ("max_seconds", "most_sweeps", "target_ess", "warmup", "checkpoint")
"""Options that may differ between a run and its resumption: how long it is, and where it is kept."""


@dataclass(frozen=True)
class ChainSettings:
    """How chains run.

    Attributes
    ----------
    chains
        Half of them start with few classes and half with many.
    warmup
        Sweeps that are not used; 0 for the first half of each chain.
    target_ess
        Effective draws of tau1 and of tau2 that end a run.
    max_seconds
        Stop after this long and say so; 0 for no limit.
    most_sweeps
        Per chain, whatever else.
    checkpoint
        File to keep the chains in, and to go on from if it is there; nothing for none.
    """

    chains: int = 4
    warmup: int = 0
    target_ess: float = 400.0
    max_seconds: float = 0.0
    most_sweeps: int = 20_000
    checkpoint: str = ""

    def __post_init__(self) -> None:
        self.schedule  # noqa: B018, refuses what cannot be

    @property
    def schedule(self) -> Schedule:
        limit = self.max_seconds or None
        try:
            return Schedule(self.chains, self.warmup or None, self.target_ess, limit, self.most_sweeps)
        except ValueError as error:
            raise UnknownModel(str(error)) from None

    @property
    def settings(self) -> Mapping[str, object]:
        """Every option."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def checkpoint_of(self, part: str, sample: Sample, rng: Generator) -> Checkpoint | None:
        """The file of one part of a run, if one was named; it serves these data, settings and streams only.

        Parameters
        ----------
        part
            The model's name, followed by a full stop and more where a run has several parts.

        Raises
        ------
        InvalidCheckpoint
            The model left parts of a run with other data, settings or streams.
        """
        if not self.checkpoint:
            return None
        named = Path(self.checkpoint)
        lasting = {name: value for name, value in self.settings.items() if name not in MAY_CHANGE}
        model = part.partition(".")[0]
        digest = hashlib.sha256(
            json.dumps([version("keyhole"), model, lasting, rng.bit_generator.state], default=str).encode()
        )
        digest.update(sample.table.cells.tobytes() + sample.table.counts.tobytes())
        digest.update(f"{sample.table.levels} {sample.population_size}".encode())
        if sample.zeros is not None:
            digest.update(repr(sample.zeros.boxes).encode())
        fingerprint = digest.hexdigest()
        for path in kept_paths(named, model):
            Checkpoint(path, fingerprint).check()
        return Checkpoint(kept_path(named, part), fingerprint)
