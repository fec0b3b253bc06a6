"""What leaving one record out takes from its log probability, against refits without the record."""

from dataclasses import replace

import numpy as np
import pytest

from keyhole.arrays import Vector
from keyhole.models.sequential import _kernels as kernels
from keyhole.models.sequential.fitting import FittedConditional, _newton
from keyhole.models.sequential.joint import JointLaw, fit_joint
from keyhole.models.sequential.observed import Observed
from keyhole.models.sequential.order import key_orders
from tests.models.sequential.people import some_sample


def loss_without(fit: FittedConditional, entry: int) -> float:
    """log p of an entry minus its log p in a refit without one of its records; penalties and blocks stay."""
    data = fit.data
    weight = data.weight.copy()
    weight[entry] -= 1.0
    without = replace(data, weight=weight)
    theta, _, decrement = _newton(without, fit.coefficients, fit.penalty, 1e-10, 50, np.random.default_rng(0))
    assert decrement < 1e-8
    where = data.context[entry : entry + 1]
    level = data.level[entry : entry + 1].astype(np.int64)
    before, after = (
        kernels.log_level(data.feature[where], data.node[where], data.mask, level, at)[0]
        for at in (fit.coefficients, theta)
    )
    return float(before - after)


@pytest.fixture(scope="module")
def law() -> JointLaw:
    observed = Observed.of(some_sample(600))
    return fit_joint(observed, key_orders(observed, 1)[0], None, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def refits(law: JointLaw) -> tuple[Vector, Vector]:
    """Two hundred cells, and the loss of each by real refits of every factor."""
    cells = np.random.default_rng(1).choice(len(law.observed.cells), 200, replace=False)
    loss = np.zeros(len(cells))
    known: dict[tuple[int, int], float] = {}
    for j, fit in enumerate(law.factors):
        for k, entry in enumerate(fit.data.entry[cells].tolist()):
            if (j, entry) not in known:
                known[j, entry] = loss_without(fit, entry)
            loss[k] += known[j, entry]
    return cells, loss


def test_the_loss_is_that_of_refits(law: JointLaw, refits: tuple[Vector, Vector]) -> None:
    cells, loss = refits
    predicted, plain = law.moments[cells, 3], law.moments[cells, 2]
    error, plain_error = np.abs(predicted - loss) / loss, np.abs(plain - loss) / loss
    print(
        f"loss {loss.mean():.3f}, predicted {predicted.mean():.3f}, v {plain.mean():.3f}; correlation "
        f"{np.corrcoef(predicted, loss)[0, 1]:.4f} against {np.corrcoef(plain, loss)[0, 1]:.4f}; relative error "
        f"median {np.median(error):.3f} largest {error.max():.3f}, of v {np.median(plain_error):.3f} "
        f"{plain_error.max():.3f}"
    )
    assert np.corrcoef(predicted, loss)[0, 1] > 0.99
    assert np.median(error) < 0.05
    assert error.max() < 0.15
    assert predicted.mean() == pytest.approx(loss.mean(), rel=0.05)
    # The variance alone, which keeps the record's own information, is the worse guess.
    assert np.median(plain_error) > np.median(error)
    assert np.mean(np.abs(plain - loss)) > 1.5 * np.mean(np.abs(predicted - loss))
