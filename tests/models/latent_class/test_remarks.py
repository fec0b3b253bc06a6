"""What is said where more classes might be needed: only what can be done."""

import numpy as np
import pytest

from keyhole.inference.chain import Chain
from keyhole.inference.chains import Chains, Ending
from keyhole.inference.schedule import Schedule
from keyhole.models.latent_class.model import LatentClass


@pytest.mark.parametrize(
    ("options", "classes", "ending", "words"),
    [
        ({"checkpoint": "kept.npz"}, 50, "time", "let it go on (--resume), or set the option classes"),
        ({"checkpoint": "kept.npz"}, 50, "converged", "give it more time, or set the option classes"),
        ({}, 50, "time", "give it more time, or set the option classes"),
        ({"checkpoint": "kept.npz"}, 400, "time", "set the option classes to more than 400"),
        ({"classes": 20, "checkpoint": "kept.npz"}, 20, "time", "set the option classes to more than 20"),
    ],
)
def test_the_way_to_more_classes_is_one(
    options: dict[str, object], classes: int, ending: Ending, words: str
) -> None:
    chain = Chain(None, np.random.default_rng(1), 20, {"tau1": [1.0]})
    found = Chains((chain,), Schedule(), ending, 1.0)
    assert LatentClass(**options)._way_on(found, classes) == words  # type: ignore[arg-type]
