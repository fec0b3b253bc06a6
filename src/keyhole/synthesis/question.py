"""What is asked about synthetic files: whom the intruder weighs, what he believes, what he wants to learn."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from keyhole.arrays import Codes, Mask, Vector
from keyhole.synthesis.class_draws import Length
from keyhole.synthesis.risk_result import Estimator, Prior
from keyhole.synthesis.search import Search
from keyhole.synthesis.supports import Support

LogBeliefs = Callable[[Codes], Vector]
"""The logarithm of what an intruder believes of combinations, by row."""


@dataclass(frozen=True, eq=False)
class Question:
    """What to work out: candidates, estimator, the intruder's beliefs, and the keys he wants to learn.

    With a search its candidates take the place of the support.
    """

    support: Support
    estimator: Estimator = "bridge"
    prior: Prior = "uniform"
    beliefs: LogBeliefs | None = None
    learns: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    length: Length = field(default=Length())
    search: Search | None = None

    def log_beliefs(self, cells: Codes) -> Vector | None:
        """Of each record's candidates, by record and place; None where all is alike or the model's."""
        if self.beliefs is None:
            return None
        candidates = self.support.candidates(cells)
        return self.beliefs(candidates.reshape(-1, cells.shape[1])).reshape(candidates.shape[:2])

    def learned(self, cells: Codes) -> Mask | None:
        """Which candidates have the true levels of the keys to be learned; None if there are no such keys."""
        if not self.learns:
            return None
        learns = list(self.learns)
        return np.asarray((self.support.candidates(cells)[:, :, learns] == cells[:, None, learns]).all(axis=2))
