"""Models that ignore weights say so when the weights differ."""

import numpy as np
import pytest

from keyhole.inference.fit import IGNORED_WEIGHTS
from keyhole.keys.variable import KeyVariable
from keyhole.models.catalogue import model_named
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable


def weighted_sample(spread: float) -> Sample:
    rng = np.random.default_rng(5)
    key = KeyVariable("K", tuple(map(str, range(400))))
    codes = rng.geometric(0.02, 600).clip(max=399)[:, None]
    weights = 20 * np.exp(spread * rng.standard_normal(600))
    table = ContingencyTable.from_codes((key,), codes, weights=weights)
    return Sample(table, round(weights.sum()))


@pytest.mark.parametrize("name", ["pitman", "zayatz"])
@pytest.mark.parametrize(("spread", "said"), [(0.0, False), (0.01, False), (0.5, True)])
def test_weights_that_differ_are_admitted(name: str, spread: float, said: bool) -> None:
    fit = model_named(name).fit(weighted_sample(spread), rng=np.random.default_rng(1))
    assert (IGNORED_WEIGHTS in {check.name for check in fit.diagnostics}) is said


def test_the_individual_risk_uses_them() -> None:
    fit = model_named("benedetti-franconi").fit(weighted_sample(0.5), rng=np.random.default_rng(1))
    assert IGNORED_WEIGHTS not in {check.name for check in fit.diagnostics}
