"""Densities of records given the others, from draws that have seen them."""

import numpy as np
import pytest

from keyhole.inference.stacking import leave_one_out


def draws(shape: float, number: int, seed: int) -> np.ndarray:
    """p ~ Beta(s, 60) of one cell, after its record was seen: before, the mean was (s - 1)/(s + 59)."""
    return np.random.default_rng(seed).beta(shape, 60.0, (number, 1))


def test_a_record_is_left_out() -> None:
    found = leave_one_out(list(draws(4.0, 4_000, seed=1)))
    assert np.exp(found[0]) == pytest.approx(3 / 63, rel=0.03)
    assert np.exp(found[0]) < 0.9 * draws(4.0, 4_000, seed=1).mean()  # as it would be if it were not


def test_a_heavy_tail_is_smoothed() -> None:
    """With p ~ Beta(1.3, 60) the weights 1/p have no variance, and plain harmonic means scatter."""
    plain, smoothed = [], []
    for seed in range(60):
        found = draws(1.3, 120, seed)
        plain.append(-np.log((1 / found).mean()))
        smoothed.append(leave_one_out(list(found))[0])
    assert np.std(smoothed) < 0.95 * np.std(plain)
    assert np.mean(smoothed) < np.log(draws(1.3, 7_200, seed=99).mean())  # the record is still left out
