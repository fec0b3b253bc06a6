"""Several models side by side do not influence each other; the recommendation says why."""

import pytest

from keyhole.errors import NotConverged
from keyhole.inference.fit import IGNORED_WEIGHTS, Diagnostic
from keyhole.risk.assess import assess_risk
from keyhole.risk.compare import compare_models
from tests.risk.samples import Geometric, random_sample

BOUNDARY = Diagnostic("sigma", 1.0, "untrusted", "The estimate lies on the boundary.")
UNWEIGHTED = Diagnostic(IGNORED_WEIGHTS, 0.4, "caution", "The weights vary and the model ignores them.")


def test_a_model_gives_the_same_numbers_alone_and_in_company() -> None:
    sample = random_sample()
    models = [Geometric((0.1,), name="first"), Geometric((0.3,), name="second")]
    together = compare_models(models, sample, seed=4)
    assert together.assessments[1].tau2 == assess_risk(models[1], sample, seed=4).tau2


def test_only_trusted_models_are_recommended() -> None:
    models = [Geometric(diagnostics=(BOUNDARY,), name="first"), Geometric(name="second"), Geometric(fails=True)]
    with pytest.warns(NotConverged):
        found = compare_models(models, random_sample())
    assert found.recommended == "second"
    assert found.chosen is not None
    assert found.chosen.model == "second"


def test_nothing_is_recommended_when_nothing_can_be_trusted() -> None:
    found = compare_models([Geometric(fails=True)], random_sample())
    assert (found.recommended, found.chosen) == (None, None)


def test_the_model_that_uses_weights_comes_first() -> None:
    models = [Geometric(diagnostics=(UNWEIGHTED,), name="first"), Geometric(name="weighted")]
    found = compare_models(models, random_sample())
    assert found.recommended == "weighted"
    assert "weights" in found.reason
