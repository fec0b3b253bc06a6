"""The law of counts with clusters summed over, beside plain sums."""

import numpy as np
import pytest
from scipy import stats

from keyhole.models.mixed_loglinear.base_measure import BASES, DEFAULTS, Base, BaseMeasure
from keyhole.models.mixed_loglinear.mixture_predictive import MixturePredictive

EFFECT, WEIGHT = np.array([-2.0, 0.1, 3.0]), np.array([0.5, 0.3, 0.01])
COUNTS = np.array([0, 0, 1, 3, 4, 8, 90, 2, 0])
LOG_X = np.array([-4.03, 1.21, 0.33, -0.48, 0.7, 0.0, 2.0, -30.0, 0.4])
CLUSTER = np.array([0, 2, 1, 0, 2, 2, 2, 1, 3], dtype=np.int32)
OWN, LEVEL = np.append(EFFECT, -1.0), 0.3


def law(log_x: np.ndarray, between: tuple[float, float]) -> np.ndarray:
    return MixturePredictive(EFFECT, WEIGHT, between).at(COUNTS, log_x, CLUSTER, OWN, LEVEL)


@pytest.mark.parametrize("between", [(-10.0, 5.0), (0.0, 0.1)])
def test_logarithms_are_those_of_plain_sums(between: tuple[float, float]) -> None:
    rate = np.exp(LOG_X[:, None] + EFFECT)
    terms = np.log(WEIGHT) + COUNTS[:, None] * (LOG_X[:, None] + EFFECT) - rate
    expected = np.logaddexp.reduce(terms, axis=1)
    expected[-1] = -np.exp(0.4 - LEVEL - 1.0)  # in a cluster of its own, whose effect the level is not added to
    np.testing.assert_allclose(law(LOG_X, between)[0], expected, atol=1e-7)


def test_slope_and_curvature_are_derivatives() -> None:
    step = 1e-3
    below, here, above = (law(LOG_X + shift, (0.0, 0.1)) for shift in (-step, 0.0, step))
    np.testing.assert_allclose(here[1], (above[0] - below[0]) / (2 * step), atol=2e-4)
    bent = -(above[1] - below[1]) / (2 * step)
    np.testing.assert_allclose(here[2], np.maximum(bent, 0.0), atol=2e-4)
    assert (bent < 0).any(), "clusters that are far apart bend the other way somewhere"


@pytest.mark.parametrize("kind", BASES)
def test_a_base_has_the_density_of_its_law(kind: Base) -> None:
    base = BaseMeasure(kind, *DEFAULTS[kind])
    first, second = DEFAULTS[kind]
    omega = {
        "log-gamma": stats.gamma(first, scale=1 / second),
        "normal": stats.lognorm(np.sqrt(second), scale=np.exp(first)),
        "inverse-gaussian": stats.invgauss(first / second, scale=second),
    }[kind]
    t, step = np.array([-1.0, 0.5, 2.5]), 1e-4
    np.testing.assert_allclose(base.at(t)[0], np.log(omega.pdf(np.exp(t))) + t, atol=1e-8)
    change = (base.at(t + step) - base.at(t - step)) / (2 * step)
    np.testing.assert_allclose(base.at(t)[1], change[0], atol=1e-6)
    np.testing.assert_allclose(base.at(t)[2], -change[1], atol=1e-6)
