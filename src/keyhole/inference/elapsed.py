"""How long something took, by the clock and by the processors."""

import time
from typing import NamedTuple


class Elapsed(NamedTuple):
    """Seconds by the clock and of this process's processors, all threads together."""

    clock: float = 0.0
    processor: float = 0.0

    @classmethod
    def now(cls) -> "Elapsed":
        """Where both stand; only differences mean anything."""
        return cls(time.perf_counter(), time.process_time())

    def since(self) -> "Elapsed":
        """What has passed since `now` gave this."""
        return Elapsed(time.perf_counter() - self.clock, time.process_time() - self.processor)
