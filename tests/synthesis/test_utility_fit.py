"""One regression of one file: closed forms, statsmodels, and coefficients that a file leaves open."""

import math
from itertools import product

import numpy as np
import pytest

from keyhole.synthesis.utility_fit import DEPENDENT, NO_FIT, NO_RECORD, SEPARATED, fit_file, sure_records


def grouped(*groups: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Constant and indicators of all groups but the first; each group has so many zeros and ones."""
    place = np.repeat(np.arange(len(groups)), [zeros + ones for zeros, ones in groups])
    response = np.concatenate([np.repeat([0.0, 1.0], group) for group in groups])
    matrix = np.column_stack([np.ones(len(place)), *(place == level for level in range(1, len(groups)))])
    return matrix, response


def test_two_groups_give_the_log_odds_ratio() -> None:
    found = fit_file(*grouped((30, 10), (20, 40)), "logistic")
    assert np.allclose(found.estimate, [math.log(1 / 3), math.log(6)])
    assert np.allclose(found.variance, [1 / 30 + 1 / 10, 1 / 30 + 1 / 10 + 1 / 20 + 1 / 40])
    assert found.why_open == ("", "")


def test_two_groups_give_the_log_rate_ratio() -> None:
    matrix = np.column_stack([np.ones(5), [0, 0, 1, 1, 1]])
    found = fit_file(matrix, np.array([3.0, 5, 0, 1, 2]), "poisson")
    assert np.allclose(found.estimate, [math.log(4), math.log(1 / 4)])
    assert np.allclose(found.variance, [1 / 8, 1 / 8 + 1 / 3])


def test_columns_of_any_size_are_fitted() -> None:
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 2))
    response = (rng.uniform(size=500) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    plain = np.column_stack([np.ones(500), x])
    peer = api.GLM(response, plain, family=api.families.Binomial()).fit(tol=1e-12)
    size = np.array([1, 1e7, 1e-7])
    found = fit_file(plain * size, response, "logistic")
    assert np.allclose(found.estimate * size, peer.params, rtol=1e-6)
    assert np.allclose(found.variance * size**2, np.diag(peer.cov_params()), rtol=1e-6)


def test_a_level_without_records_stays_open_and_the_rest_does_not() -> None:
    matrix, response = grouped((30, 10), (20, 40))
    found = fit_file(np.column_stack([matrix, np.zeros(100)]), response, "logistic")
    assert found.why_open == ("", "", NO_RECORD)
    assert np.allclose(found.estimate[:2], fit_file(matrix, response, "logistic").estimate)
    assert np.isnan(found.estimate[2])
    assert np.isnan(found.variance[2])


def test_columns_that_follow_from_each_other_stay_open_together() -> None:
    matrix, response = grouped((30, 10), (20, 40), (5, 5))
    doubled = np.column_stack([matrix, 2 * matrix[:, 2]])
    found = fit_file(doubled, response, "logistic")
    assert found.why_open == ("", "", DEPENDENT, DEPENDENT)
    assert np.allclose(found.estimate[:2], fit_file(matrix, response, "logistic").estimate[:2])


def test_a_group_without_ones_has_no_finite_estimate_and_the_others_have() -> None:
    found = fit_file(*grouped((30, 10), (20, 40), (7, 0)), "logistic")
    assert found.why_open == ("", "", SEPARATED)
    without = fit_file(*grouped((30, 10), (20, 40)), "logistic")
    assert np.allclose(found.estimate[:2], without.estimate)
    assert np.allclose(found.variance[:2], without.variance)


def test_a_first_group_without_ones_leaves_all_open_that_are_compared_with_it() -> None:
    found = fit_file(*grouped((7, 0), (20, 40), (30, 10)), "logistic")
    assert found.why_open == (SEPARATED,) * 3


def test_a_group_without_counts_has_no_finite_estimate() -> None:
    matrix, _ = grouped((1, 1), (1, 1), (1, 1))
    found = fit_file(matrix, np.array([3.0, 5, 2, 0, 0, 0]), "poisson")
    assert found.why_open == ("", "", SEPARATED)
    assert np.allclose(found.estimate[:2], [math.log(4), math.log(1 / 4)])


def test_a_line_that_parts_zeros_from_ones_leaves_both_open() -> None:
    x = np.arange(20.0)
    matrix = np.column_stack([np.ones(20), x])
    assert fit_file(matrix, (x > 9).astype(float), "logistic").why_open == (SEPARATED, SEPARATED)
    overlapping = (x > 9).astype(float)
    overlapping[[9, 10]] = [1, 0]
    assert fit_file(matrix, overlapping, "logistic").why_open == ("", "")


def test_one_value_in_all_records_leaves_all_open() -> None:
    matrix, response = grouped((30, 10), (20, 40))
    assert fit_file(matrix, np.zeros_like(response), "logistic").why_open == (SEPARATED, SEPARATED)


def test_a_steep_line_is_not_taken_for_a_parting_one() -> None:
    # Predictors go to 40 and beyond, but one pair of records crosses.
    x = np.concatenate([np.linspace(-10, -1, 50), np.linspace(1, 10, 50), [0.01, -0.01]])
    response = np.concatenate([np.zeros(50), np.ones(50), [0, 1]])
    found = fit_file(np.column_stack([np.ones(102), x]), response, "logistic")
    assert found.why_open == ("", "")
    assert found.estimate[1] * 10 > 20


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_sure_records_are_those_found_by_trying_all_directions(family: str) -> None:
    # Three columns of -1, 0 or 1: if there is a direction, there is one among small whole numbers.
    rng = np.random.default_rng(2)
    directions = np.array([d for d in product(range(-3, 4), repeat=3) if any(d)])
    some = 0
    for _ in range(300):
        matrix = np.column_stack([np.ones(6), rng.integers(-1, 2, (6, 2))])
        response = rng.integers(0, 2 if family == "logistic" else 3, 6).astype(float)
        gain = matrix @ directions.T
        if family == "logistic":
            allowed = (np.where((response > 0)[:, None], gain, -gain) >= 0).all(axis=0)
        else:
            allowed = np.where((response > 0)[:, None], gain == 0, gain <= 0).all(axis=0)
        expected = (gain[:, allowed] != 0).any(axis=1)
        some += expected.any() and not expected.all()
        assert sure_records(matrix, response, family).tolist() == expected.tolist()  # type: ignore[arg-type]
    assert some > 20


def test_a_fit_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    models = pytest.importorskip("statsmodels.genmod.generalized_linear_model")
    fit = models.GLM.fit
    monkeypatch.setattr(models.GLM, "fit", lambda self, **_: fit(self, maxiter=1))
    assert fit_file(*grouped((30, 10), (20, 40)), "logistic").why_open == (NO_FIT, NO_FIT)

    def fall(self: object, **_: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(models.GLM, "fit", fall)
    assert fit_file(*grouped((30, 10), (20, 40)), "logistic").why_open == (NO_FIT, NO_FIT)
