"""What holds for every test: no network, linear algebra in one thread, and real data only where it is present."""

import os
import socket
from pathlib import Path

import pytest

# Before NumPy is imported. Tests run side by side, and threads of its linear algebra beside those of models wait
# for each other by turning round and round; models are guarded where they are assessed, not where they are fitted.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves the machine, in every test.

    Local sockets stay open: browser and database tests talk to a server that they started themselves.
    """
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        local = self.family == socket.AF_UNIX or (
            isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1", "localhost")
        )
        if not local:
            raise AssertionError(f"{request.node.nodeid} tried to reach the network")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def shared_data() -> Path:
    """The folder of real populations; tests that need it skip where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real populations are not on this machine ({SHARED_DATA})")
    return SHARED_DATA
