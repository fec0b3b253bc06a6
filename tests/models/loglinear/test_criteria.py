"""The bias criteria against their definitions, and against bias and variance in simulated samples."""

from itertools import combinations

import numpy as np
import pytest
from scipy import integrate, special

from keyhole.arrays import Vector
from keyhole.models.loglinear._criteria_kernels import sum_criteria
from keyhole.models.loglinear.criteria import (
    Criteria,
    Expansion,
    coefficients,
    criteria,
    criteria_of,
    match_derivatives,
)

FRACTION = 0.1
ODDS = (1 - FRACTION) / FRACTION


def some_cells(size: int = 400) -> tuple[Vector, Vector]:
    rng = np.random.default_rng(1)
    means = rng.gamma(0.4, 1.0, size)
    return means, rng.poisson(means * rng.gamma(4.0, 0.25, size))


def judged(means: Vector, counts: Vector, expansion: Expansion) -> Criteria:
    occupied = np.flatnonzero(counts)
    return criteria(means, occupied, counts[occupied], FRACTION, expansion=expansion)


@pytest.mark.parametrize("x", [0.0, 1e-6, 0.009, 0.011, 0.3, 5.0, 300.0])
def test_derivatives_are_moments_of_an_exponential(x: float) -> None:
    first, second = match_derivatives(np.array([x]), np.exp([-x]))
    exact = [integrate.quad(lambda t, k=k: t**k * np.exp(-x * t), 0, 1, epsrel=1e-12)[0] for k in (1, 2)]
    assert -first[0] == pytest.approx(exact[0], rel=1e-8)
    assert second[0] == pytest.approx(exact[1], rel=1e-8)


def test_published_form_is_the_printed_one() -> None:
    means, counts = some_cells()
    total = variance = 0.0
    for m, f in zip(means, counts, strict=True):
        rate = m / FRACTION
        outer = rate * np.exp(-rate) * (1 - FRACTION)
        inner = outer * (1 - FRACTION) / (2 * FRACTION)
        total += outer * (f - m) + inner * ((f - m) ** 2 - f)
        variance += outer**2 * m + 2 * inner**2 * m**2
    found = judged(means, counts, "published")
    assert found.bias1 == pytest.approx(total, rel=1e-9)
    assert found.variance1 == pytest.approx(variance, rel=1e-9)
    unique = means[counts == 1] * ODDS
    assert found.tau1 == pytest.approx(np.exp(-unique).sum())
    assert found.tau2 == pytest.approx(((1 - np.exp(-unique)) / unique).sum())
    assert found.b1 == pytest.approx(total / np.sqrt(variance))


def test_only_the_second_order_form_is_right_to_second_order() -> None:
    """Its error falls with the cube of the distance from the truth, that of the published form with the square."""
    means, _ = some_cells()
    direction = means * np.random.default_rng(2).uniform(-1, 1, len(means))

    def error(step: float, expansion: Expansion, which: int) -> float:
        truth = means + step * direction
        h = [lambda m: np.exp(-ODDS * m), lambda m: special.exprel(-ODDS * m)][which]
        exact = (truth * np.exp(-truth) * (h(means) - h(truth))).sum()
        A, C = coefficients(means, ODDS, expansion)[which]
        d = step * direction
        return abs(float((A * d + C * d * d).sum() - exact))

    for which in (0, 1):
        assert error(0.02, "second-order", which) / error(0.01, "second-order", which) == pytest.approx(8, rel=0.1)
        assert error(0.02, "published", which) / error(0.01, "published", which) == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("expansion", ["published", "second-order"])
def test_variance_under_the_model(expansion: Expansion) -> None:
    means, _ = some_cells()
    rng = np.random.default_rng(3)
    runs = 3000
    drawn = [judged(means, rng.poisson(means), expansion) for _ in range(runs)]
    error = np.sqrt(2 / runs)
    for which in ("1", "2"):
        bias = np.array([getattr(found, "bias" + which) for found in drawn])
        variance = getattr(drawn[0], "variance" + which)
        tails = np.sqrt(((bias - bias.mean()) ** 4).mean() / bias.var() ** 2 - 1) / np.sqrt(2)
        assert abs(bias.mean()) < 4 * np.sqrt(variance / runs)
        assert abs(bias.var() / variance - 1) < 4 * error * tails
        # Forgetting the second Charlier polynomial understates it.
        A, _ = coefficients(means, ODDS, expansion)[int(which) - 1]
        assert abs(bias.var() / float((A * A) @ means) - 1) > 4 * error * tails


SIZES = (4, 5, 6, 3, 3)


def population(strength: float, seed: int) -> Vector:
    """Cell probabilities with all pairs of keys dependent by this much."""
    rng = np.random.default_rng(seed)
    logit = np.zeros(SIZES)
    for order, scale in ((1, 0.6), (2, strength)):
        for keys in combinations(range(len(SIZES)), order):
            logit = logit + scale * rng.standard_normal([SIZES[j] if j in keys else 1 for j in range(len(SIZES))])
    weight = np.exp(logit)
    return np.asarray(weight / weight.sum())


def proportionally_fitted(counts: Vector, order: int, passes: int) -> Vector:
    fitted = np.ones(SIZES)
    for _ in range(passes):
        for keys in combinations(range(len(SIZES)), order):
            others = tuple(j for j in range(len(SIZES)) if j not in keys)
            wanted, now = (table.sum(axis=others, keepdims=True) for table in (counts, fitted))
            fitted = fitted * np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
    return fitted.ravel()


def simulated(strength: float, order: int, runs: int) -> dict[str, float]:
    """Mean bias of tau2 and of its estimates, and their standard errors over samples of about 1,500 records."""
    rng = np.random.default_rng(4)
    truth = 1500 * population(strength, 5)
    found = []
    for _ in range(runs):
        counts = rng.poisson(truth)
        means = proportionally_fitted(counts, order, 1 if order == 1 else 20)
        alone = counts.ravel() == 1
        h, h0 = special.exprel(-ODDS * means[alone]), special.exprel(-ODDS * truth.ravel()[alone])
        estimates = [judged(means, counts.ravel(), form).bias2 for form in ("published", "second-order")]
        found.append([(h - h0).sum(), *estimates])
    return dict(zip(("true", "published", "second-order"), np.mean(found, axis=0), strict=True))


def test_simulated_bias() -> None:
    """With little misfit the complete form is nearer; with far too many terms the published one is."""
    under, over = simulated(0.2, 1, 80), simulated(0.4, 3, 8)
    print(f"independence fitted to pairs: {under}\ntriples fitted to pairs: {over}")
    assert abs(under["second-order"] - under["true"]) < 0.5 * abs(under["published"] - under["true"])
    assert over["true"] < 0
    assert over["published"] < 0
    assert abs(over["published"] - over["true"]) < abs(over["second-order"] - over["true"])


@pytest.mark.parametrize("expansion", ["published", "second-order"])
@pytest.mark.parametrize("each", [False, True])
def test_the_compiled_sums_are_those_of_the_formulas(expansion: Expansion, each: bool) -> None:
    rng = np.random.default_rng(3)
    m = np.concatenate([rng.gamma(0.1, 1.0, 3000), [0.0, 1e-12, 40.0]])
    w = rng.uniform(1, 3, len(m)) if each else np.ones(1)
    c = rng.uniform(2, 90, len(m)) if each else np.array([19.0])
    bias, variance = np.zeros(2), np.zeros(2)
    sum_criteria(m, w, c, expansion == "second-order", bias, variance)
    for k, (A, C) in enumerate(coefficients(m, np.broadcast_to(c, len(m)), expansion)):
        assert bias[k] == pytest.approx((w * (C * m**2 - A * m)).sum(), rel=1e-9)
        assert variance[k] == pytest.approx((w * (A**2 * m + 2 * C**2 * m**2)).sum(), rel=1e-9)


def test_a_sample_of_cells_gives_nearly_the_same() -> None:
    means, counts = some_cells(20_000)
    occupied = np.flatnonzero(counts)
    chosen = np.arange(0, len(means), 2)
    whole = judged(means, counts, "published")
    fraction = np.full(len(means), FRACTION)
    these = means[occupied], counts[occupied], fraction[occupied]
    part = criteria_of(means[chosen], np.full(len(chosen), 2.0), fraction[chosen], *these)
    assert part.tau1 == whole.tau1
    assert part.variance2 == pytest.approx(whole.variance2, rel=0.1)
    everything = criteria_of(means, np.ones(len(means)), fraction, *these)
    assert everything.bias2 == pytest.approx(whole.bias2)


def test_cells_of_mean_zero_add_nothing() -> None:
    means, counts = some_cells()
    found = judged(means, counts, "second-order")
    padded = judged(np.append(means, np.zeros(50)), np.append(counts, np.zeros(50, int)), "second-order")
    assert (padded.b1, padded.b2) == pytest.approx((found.b1, found.b2))
