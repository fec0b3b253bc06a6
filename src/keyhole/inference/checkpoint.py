"""Chains on disk: written whole or not at all, read back bit for bit."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from glob import escape
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from keyhole.errors import InvalidCheckpoint
from keyhole.inference.chain import Chain
from keyhole.inference.gibbs import State

SECONDS = 30.0
"""Between two writings; a run that ends writes once more."""

FORMAT = 1


def kept_path(named: Path, part: str) -> Path:
    """The file of one part of a run; a part is a model's name, or begins with that and a full stop."""
    return named.with_name(f"{named.stem}-{part}.npz")


def kept_paths(named: Path, model: str) -> list[Path]:
    """All files that runs of a model left behind.

    No name of a model has a full stop in it, so files of ``np-i-emp`` are not taken for those of ``np-i``.
    """
    return sorted(named.parent.glob(f"{escape(f'{named.stem}-{model}')}.*npz"))


@dataclass(eq=False)
class Checkpoint:
    """A file that holds all chains of a run.

    Attributes
    ----------
    path
        Where it is.
    fingerprint
        What the run depends on: data, model, settings, seed, version. A file of another run is refused. All
        parts of a run have the same.
    """

    path: Path
    fingerprint: str
    written: float = -np.inf

    def write(self, chains: Sequence[Chain[Any]], always: bool = False) -> None:
        """Replace the file, if the last time was long enough ago."""
        if not always and time.monotonic() - self.written < SECONDS:
            return
        arrays: dict[str, Any] = {}
        about = []
        for i, chain in enumerate(chains):
            state = {one.name: getattr(chain.state, one.name) for one in fields(chain.state)}
            scalars = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
            arrays |= {f"{i}/state/{name}": value for name, value in state.items() if name not in scalars}
            arrays |= {f"{i}/values/{name}": np.array(past) for name, past in chain.values.items()}
            arrays[f"{i}/laws"] = np.array(chain.laws, dtype=np.float32)
            about.append(
                {
                    "stream": chain.rng.bit_generator.state,
                    "sweeps": chain.sweeps,
                    "stride": chain.stride,
                    "scalars": scalars,
                    "values": list(chain.values),
                }
            )
        self._replace({"chains": about}, arrays)
        self.written = time.monotonic()

    def read(self, state_type: type[State]) -> list[Chain[State]] | None:
        """The chains of the file; None if there is none.

        Raises
        ------
        InvalidCheckpoint
            The file is of another run, or no checkpoint at all.
        """
        found = self._stored()
        if found is None:
            return None
        about, arrays = found
        return [_chain(i, told, arrays, state_type) for i, told in enumerate(about["chains"])]

    def keep(self, told: object) -> None:
        """Write something that JSON can say, in the place of chains."""
        self._replace({"told": told}, {})

    def kept(self) -> Any:
        """What was kept; None if nothing was."""
        found = self._stored()
        return None if found is None else found[0]["told"]

    def check(self) -> None:
        """Refuse a file of another run, without reading the chains.

        Raises
        ------
        InvalidCheckpoint
            The file is of another run, or no checkpoint at all.
        """
        self._stored(only=("about",))

    def _replace(self, about: dict[str, Any], arrays: dict[str, Any]) -> None:
        described = {"format": FORMAT, "fingerprint": self.fingerprint, **about}
        arrays = {**arrays, "about": np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        # Latent variables say which class a record is in: for the owner's eyes only, like every output.
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)

    def _stored(self, only: Sequence[str] | None = None) -> tuple[dict[str, Any], dict[str, Any]] | None:
        if not self.path.is_file():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = dict(stored) if only is None else {name: stored[name] for name in only}
            about = json.loads(arrays["about"].tobytes())
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise InvalidCheckpoint(f"{self.path} is not a checkpoint of chains.") from error
        if about.get("format") != FORMAT or about.get("fingerprint") != self.fingerprint:
            raise InvalidCheckpoint(
                f"{self.path} is from another run: its data, model, settings, seed or version differ. "
                "To begin anew leave --resume away, or name another checkpoint."
            )
        return about, arrays


def _chain(i: int, told: dict[str, Any], arrays: dict[str, Any], state_type: type[State]) -> Chain[State]:
    start = f"{i}/state/"
    held = {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}
    generator = np.random.default_rng()
    generator.bit_generator.state = told["stream"]
    return Chain(
        state_type(**held, **told["scalars"]),
        generator,
        told["sweeps"],
        {name: arrays[f"{i}/values/{name}"].tolist() for name in told["values"]},
        list(arrays[f"{i}/laws"]),
        told["stride"],
    )
