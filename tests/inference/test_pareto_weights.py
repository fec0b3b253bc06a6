"""Smoothed importance weights average like the plain ones where these are good, and say where they are not."""

import numpy as np
import pytest

from keyhole.inference.pareto_weights import HEAVY, smoothed_weights


def test_leaving_a_record_out_gives_the_mean_without_it() -> None:
    """theta ~ Beta(4, 60) seen with a record that counts for 1: without it the mean is 3/63."""
    theta = np.random.default_rng(1).beta(4.0, 60.0, 4_000)
    weight, khat = smoothed_weights(-np.log(theta)[None])
    assert weight[0] @ theta == pytest.approx(3 / 63, rel=0.02)
    assert weight.sum() == pytest.approx(1.0)
    assert khat[0] < 0.5


def test_a_tail_that_does_not_average_out_is_told() -> None:
    theta = np.random.default_rng(2).beta(0.8, 60.0, 4_000)
    assert smoothed_weights(-np.log(theta)[None])[1][0] > HEAVY


def test_equal_weights_stay_equal_and_few_are_not_trusted() -> None:
    weight, khat = smoothed_weights(np.full((1, 50), -3.0))
    np.testing.assert_allclose(weight, 1 / 50)
    assert khat.tolist() == [0.0]
    assert smoothed_weights(np.array([[0.0, 1.0], [2.0, 2.0]]))[1].tolist() == [np.inf, 0.0]


@pytest.mark.parametrize("share", [0.025, 0.1, 0.3])
def test_weights_of_few_values_stay_as_they_are(share: float) -> None:
    log = np.where(np.arange(400) < share * 400, 1.0, 0.0)
    weight, khat = smoothed_weights(log[None])
    np.testing.assert_allclose(weight[0], np.exp(log) / np.exp(log).sum())
    assert khat[0] < HEAVY


def test_a_tail_of_nearly_equal_weights_stays_a_number() -> None:
    log = np.concatenate([np.zeros(380), np.linspace(1.0, 1.0001, 20)])
    weight, _ = smoothed_weights(log[None])
    np.testing.assert_allclose(weight[0], np.exp(log) / np.exp(log).sum(), rtol=1e-3)
