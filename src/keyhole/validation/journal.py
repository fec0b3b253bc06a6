"""A file of replicates, one JSON line each, that an interrupted run goes on with."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from keyhole.errors import InputError
from keyhole.validation.replicate import Replicate


class Journal:
    """Replicates by the key of their trial; every one is in the file as soon as it is added.

    A line that was cut short is passed over. Several processes may add to the same file.

    Parameters
    ----------
    origin
        Where replicates come from that are added (a date, a machine); kept beside them, and no part of the key.
    """

    def __init__(self, path: Path, origin: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.origin = dict(origin or {})
        self._known: dict[str, Replicate] = {}
        self._origins: dict[str, Mapping[str, str]] = {}
        for line in _lines(path):
            try:
                row = json.loads(line)
                key = json.dumps(row["key"], sort_keys=True)
                self._known[key] = Replicate.read(row["result"])
                self._origins[key] = row.get("origin", {})
            except (ValueError, KeyError, TypeError):
                continue

    def begin(self) -> None:
        """Make the file, so that a run which is interrupted before its first fit can go on too.

        Raises
        ------
        InputError
            It cannot be written.
        """
        self._append(b"")

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> Replicate | None:
        """What is remembered of a trial."""
        return self._known.get(key)

    def knows(self, population: str) -> bool:
        """Whether something is remembered of the population with this digest."""
        return any(json.loads(key).get("data") == population for key in self._known)

    def origin_of(self, key: str) -> Mapping[str, str]:
        """Where what is remembered of a trial comes from."""
        return self._origins.get(key, {})

    def add(self, key: str, replicate: Replicate) -> None:
        """Remember a replicate."""
        # The line starts with the line break: one that was cut short ends here.
        row = {"key": json.loads(key), "origin": self.origin, "result": replicate.stored()}
        self._append(("\n" + json.dumps(row, separators=(",", ":"))).encode())
        self._known[key] = replicate
        self._origins[key] = self.origin

    def _append(self, line: bytes) -> None:
        try:
            # One write at the end of the file: lines of several processes do not mix.
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except OSError as error:
            raise InputError(f"Cannot write {str(self.path)!r}: {error.strerror or 'refused'}.") from error


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"Cannot read {str(path)!r}: {error.strerror or 'refused'}.") from error
