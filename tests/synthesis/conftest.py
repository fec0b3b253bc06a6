"""Draws of a small file that several tests look at."""

from collections.abc import Sequence

import numpy as np
import pytest

from keyhole.arrays import Codes
from keyhole.synthesis.class_draws import ClassDraw, Length
from tests.synthesis.small_files import run, small_file


@pytest.fixture(scope="module")
def sampled() -> tuple[tuple[int, ...], Codes, Sequence[ClassDraw]]:
    sampler, codes, _ = small_file(5)
    asked = np.unique(codes, axis=0)
    return sampler.sizes, asked, run(sampler, codes, asked, Length(40, 2, 30, 1), 0).draws
