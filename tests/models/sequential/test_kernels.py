"""Every kernel against its slow twin, structural zeros included, and against differences of the likelihood."""

import numpy as np
import pytest

from keyhole.arrays import Vector
from keyhole.models.sequential import _draw_kernels as draw_kernels
from keyhole.models.sequential import _kernels as kernels
from keyhole.models.sequential.conditional import Conditional
from tests.models.sequential import twins
from tests.models.sequential.people import (
    LEVELS,
    conditionals_of,
    dependent_people,
    possible_people,
    sample_of_codes,
    zeros_of,
)

CLOSE = {"rtol": 1e-10, "atol": 1e-11}


def _case(zeros: bool, last: int) -> Conditional:
    rng = np.random.default_rng(3)
    codes = possible_people(150, rng=rng) if zeros else dependent_people(150, rng=rng)
    sample = sample_of_codes(codes, 3000, zeros=zeros_of() if zeros else None)
    order = [key for key in (1, 4, 3, 0, 2, 5) if key != last]
    return conditionals_of(sample, [*order, last], [(1, 4), (3, 4)])[-1]


def _short(zeros: bool) -> Conditional:
    rng = np.random.default_rng(4)
    codes = possible_people(90, rng=rng) if zeros else dependent_people(90, rng=rng)
    sample = sample_of_codes(codes, 3000, zeros=zeros_of() if zeros else None)
    return conditionals_of(sample, (0, 4, 5, 1, 2, 3))[3].with_pairs([(4, 5)], LEVELS)


@pytest.fixture(scope="module", params=["free", "zeros", "six levels", "six levels with zeros"])
def data(request: pytest.FixtureRequest) -> Conditional:
    zeros = "zeros" in request.param
    found = _short(zeros) if "six" in request.param else _case(zeros, 5)
    assert zeros == (not found.mask[found.node].all())
    return found


@pytest.fixture(scope="module")
def theta(data: Conditional) -> Vector:
    rng = np.random.default_rng(5)
    return np.asarray(0.7 * rng.standard_normal((data.rows, data.levels - 1)) @ data.contrast.T)


@pytest.fixture(scope="module")
def ridge(data: Conditional) -> Vector:
    return np.random.default_rng(6).uniform(0.5, 3.0, data.rows)


@pytest.fixture(scope="module")
def covariance(data: Conditional, theta: Vector, ridge: Vector) -> Vector:
    hessian = twins.to_contrasts(data, twins.information(data, theta))
    return np.linalg.inv(hessian + np.diag(np.repeat(ridge, data.levels - 1)))


def test_softmax_and_log_level(data: Conditional, theta: Vector) -> None:
    expected = twins.probabilities(data, theta)
    p = np.empty(data.levels)
    for i in range(len(data.contexts)):
        normaliser = kernels.softmax(data.feature, i, theta, data.mask[data.node[i]], p)
        np.testing.assert_allclose(p, expected[i], **CLOSE)
        eta = (twins.design(data)[i] @ theta)[data.mask[data.node[i]]]
        assert normaliser == pytest.approx(np.log(np.exp(eta).sum()), rel=1e-12)
        assert not p[~data.mask[data.node[i]]].any()
    for c in range(data.levels):
        level = np.full(len(data.contexts), c, dtype=np.int64)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(
                kernels.log_level(*data.layout, level, theta), np.log(expected[:, c]), **CLOSE
            )


def test_softmax_of_huge_predictors_does_not_overflow(data: Conditional, theta: Vector) -> None:
    p = np.empty(data.levels)
    for i in range(len(data.contexts)):
        kernels.softmax(data.feature, i, 1e4 * theta, data.mask[data.node[i]], p)
        assert p.sum() == pytest.approx(1.0)
        assert np.isfinite(p).all()


def test_log_likelihood_and_gradient(data: Conditional, theta: Vector) -> None:
    slope = np.zeros_like(theta)
    value = kernels.gradient(*data.layout, *data.entries, theta, slope)
    assert value == pytest.approx(twins.log_likelihood(data, theta), rel=1e-11)
    assert kernels.log_likelihood(*data.layout, *data.entries, theta) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slope, twins.gradient(data, theta), **CLOSE)
    # A wrong gradient (one record too many in the first context) must be told apart.
    wrong = twins.gradient(data, theta)
    wrong[data.feature[0], data.level[0]] += 1.0
    assert not np.allclose(slope, wrong, **CLOSE)


def test_gradient_and_information_by_differences(data: Conditional, theta: Vector) -> None:
    def value(at: Vector) -> float:
        return float(kernels.log_likelihood(*data.layout, *data.entries, at))

    def slope(at: Vector) -> Vector:
        found = np.zeros_like(at)
        kernels.gradient(*data.layout, *data.entries, at, found)
        return found

    size = data.rows * (data.levels - 1)
    H = np.zeros((size, size))
    kernels.information(*data.layout, data.records, theta, data.contrast, H)
    H = np.tril(H) + np.tril(H, -1).T
    rng = np.random.default_rng(7)
    for _ in range(5):
        move = rng.standard_normal((data.rows, data.levels - 1))
        levels = move @ data.contrast.T
        step = 1e-5
        ahead, behind = theta + step * levels, theta - step * levels
        difference = (value(ahead) - value(behind)) / (2 * step)
        assert difference == pytest.approx(float((slope(theta) * levels).sum()), rel=1e-5, abs=1e-5)
        turned = -(slope(ahead) - slope(behind)) / (2 * step)
        expected = (H @ move.ravel()).reshape(move.shape)
        np.testing.assert_allclose(turned @ data.contrast, expected, rtol=1e-5, atol=1e-5)


def test_information_in_all_its_forms(data: Conditional, theta: Vector) -> None:
    levels = twins.information(data, theta)
    contrasts = twins.to_contrasts(data, levels)
    H = np.zeros_like(contrasts)
    kernels.information(*data.layout, data.records, theta, data.contrast, H)
    np.testing.assert_allclose(np.tril(H), np.tril(contrasts), **CLOSE)

    vectors = np.random.default_rng(8).standard_normal((3, data.rows, data.levels))
    product = np.ones_like(vectors)
    draw_kernels.information_times(*data.layout, data.records, theta, vectors, product)
    np.testing.assert_allclose(product.reshape(3, -1), 1 + vectors.reshape(3, -1) @ levels, **CLOSE)

    diagonal = np.zeros((data.rows, data.levels, data.levels))
    draw_kernels.diagonal_information(*data.layout, data.records, theta, diagonal)
    for row in range(data.rows):
        place = slice(row * data.levels, (row + 1) * data.levels)
        np.testing.assert_allclose(diagonal[row], levels[place, place], **CLOSE)


def test_score_noise_has_the_information_as_covariance(data: Conditional, theta: Vector) -> None:
    draws = 20_000
    noise = np.zeros((draws, data.rows, data.levels))
    draw_kernels.score_noise(*data.layout, data.records, theta, np.random.default_rng(9), noise)
    flat = noise.reshape(draws, -1)
    expected = twins.information(data, theta)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) + expected**2) / np.sqrt(draws)

    def furthest(believed: Vector) -> float:
        known = scale > 1e-9
        return float((np.abs(flat.T @ flat / draws - believed)[known] / scale[known]).max())

    assert furthest(expected) < 5.5  # tens of thousands of entries
    independent = np.zeros_like(expected)  # forgetting that the levels of a context compete
    for x, p, n in zip(twins.design(data), twins.probabilities(data, theta), data.records, strict=True):
        independent += n * np.kron(np.outer(x, x), np.diag(p))
    assert furthest(independent) > 8


def test_predictor_covariance(data: Conditional, covariance: Vector) -> None:
    expected = twins.predictor_covariances(data, twins.to_levels(data, covariance))
    K = data.levels - 1
    A, S = np.empty((K, K)), np.empty((data.levels, data.levels))
    for i in range(len(data.contexts)):
        kernels.predictor_covariance(data.feature, i, covariance, data.contrast, A, S)
        np.testing.assert_allclose(S, expected[i], **CLOSE)
        np.testing.assert_allclose(A, data.contrast.T @ expected[i] @ data.contrast, **CLOSE)


def test_bend_is_the_gradient_of_half_the_trace(data: Conditional, theta: Vector, covariance: Vector) -> None:
    spread = twins.predictor_covariances(data, twins.to_levels(data, covariance))
    slope = np.zeros_like(theta)
    kernels.bend(*data.layout, data.records, theta, data.contrast, covariance, slope)
    expected = twins.bend(data, theta, spread)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)
    assert np.abs(slope).max() > 1e-2
    assert not np.allclose(slope, -expected, atol=1e-3)


def test_moments(data: Conditional, theta: Vector, covariance: Vector) -> None:
    shift = 0.1 * np.random.default_rng(10).standard_normal(theta.shape)
    got = kernels.moments(
        *data.layout, data.context, data.level, data.weight, theta, data.contrast, covariance, shift
    )
    expected = twins.moments(data, theta, twins.to_levels(data, covariance), shift)
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)
    assert np.all(got[:, 3] >= got[:, 2])
    forgotten = twins.moments(data, theta, twins.to_levels(data, covariance), 0 * shift)
    assert not np.allclose(got[:, 1], forgotten[:, 1], atol=1e-3)


def test_directions(data: Conditional, theta: Vector) -> None:
    vectors = np.random.default_rng(11).standard_normal((4, data.rows, data.levels))
    total = np.ones((len(data.level), 4))
    kernels.directions(*data.layout, data.context, data.level, theta, vectors, total)
    np.testing.assert_allclose(total, 1 + twins.directions(data, theta, vectors), **CLOSE)


def test_residuals_by_pair(data: Conditional, theta: Vector) -> None:
    code = np.random.default_rng(12).integers(0, 4, len(data.contexts))
    S, V = np.zeros((2, 4, data.levels))
    kernels.residuals_by_pair(*data.layout, *data.entries, theta, code, S, V)
    expected = twins.residuals_by_code(data, theta, code, 4)
    np.testing.assert_allclose(S, expected[0], **CLOSE)
    np.testing.assert_allclose(V, expected[1], **CLOSE)


def test_draw_levels_inverts_the_distribution_function(data: Conditional, theta: Vector) -> None:
    p = twins.probabilities(data, theta)
    rng = np.random.default_rng(13)
    for uniform in (rng.random(len(p)), np.zeros(len(p)), np.full(len(p), np.nextafter(1.0, 0.0))):
        drawn = np.full(len(p), -1, dtype=np.int64)
        kernels.draw_levels(*data.layout, theta, uniform, drawn)
        expected = [np.flatnonzero((row.cumsum() > u) & (row > 0)) for row, u in zip(p, uniform, strict=True)]
        last = [np.flatnonzero(row)[-1] for row in p]
        twin = [int(found[0]) if len(found) else int(end) for found, end in zip(expected, last, strict=True)]
        assert drawn.tolist() == twin
        assert data.mask[data.node, drawn].all()


def test_kernels_of_draws_use_the_covariance_of_the_draws(data: Conditional, theta: Vector) -> None:
    """The draws' own second moment, put into the twins of the exact kernels."""
    rng = np.random.default_rng(14)
    draws = 0.3 * rng.standard_normal((7, data.rows, data.levels - 1)) @ data.contrast.T
    flat = draws.reshape(7, -1)
    levels_covariance = flat.T @ flat / 7
    spread = twins.predictor_covariances(data, levels_covariance)
    p = twins.probabilities(data, theta)

    variance, with_mean = np.empty(data.levels), np.empty(data.levels)
    for i in range(len(p)):
        trace, square = draw_kernels.spread_of_draws(data.feature, i, p[i], draws, variance, with_mean)
        np.testing.assert_allclose(variance, np.diag(spread[i]), **CLOSE)
        np.testing.assert_allclose(with_mean, spread[i] @ p[i], **CLOSE)
        assert (trace, square) == pytest.approx((p[i] @ np.diag(spread[i]), p[i] @ spread[i] @ p[i]))

    slope = np.zeros_like(theta)
    draw_kernels.bend_of_draws(*data.layout, data.records, theta, draws, slope)
    np.testing.assert_allclose(slope, twins.bend(data, theta, spread), rtol=1e-5, atol=1e-6)

    shift = 0.1 * rng.standard_normal(theta.shape)
    got = draw_kernels.moments_of_draws(*data.layout, data.context, data.level, data.weight, theta, draws, shift)
    for e, (i, c) in enumerate(zip(data.context, data.level, strict=True)):
        F, g = twins.level_information(p[i]), np.eye(data.levels)[c] - p[i]
        v, u = g @ spread[i] @ g, spread[i] @ g
        bias = g @ shift[data.feature[i]].sum(axis=0) - 0.5 * float(np.trace(F @ spread[i]))
        left = 1 - min(u @ F @ u / v, 0.9) if v > 0 else 1.0  # a level without alternatives has no variance
        np.testing.assert_allclose(got[e], [np.log(p[i, c]), bias, v, v / left], **CLOSE)
        np.testing.assert_allclose(draw_kernels.spread_over(p[i], u), u @ F @ u, **CLOSE)


def test_leaving_out_by_draws_is_exact_for_two_levels() -> None:
    """As its docstring says: with two levels a context has one direction only."""
    data = _case(False, 5)
    rng = np.random.default_rng(15)
    theta = 0.7 * rng.standard_normal((data.rows, 1)) @ data.contrast.T
    root = rng.standard_normal((data.parameters, data.parameters)) / 25
    covariance = np.ascontiguousarray(root @ root.T)
    # As many draws as parameters, whose second moment is the covariance itself.
    draws = np.ascontiguousarray((np.sqrt(data.parameters) * root.T)[:, :, None] @ data.contrast.T)
    where = data.context, data.level, data.weight, theta
    exact = kernels.moments(*data.layout, *where, data.contrast, covariance, 0 * theta)
    drawn = draw_kernels.moments_of_draws(*data.layout, *where, draws, 0 * theta)
    np.testing.assert_allclose(drawn, exact, rtol=1e-8, atol=1e-12)
