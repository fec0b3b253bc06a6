"""auto beside other models: on the same samples, table by table."""

from pathlib import Path

import numpy as np
import pytest

from keyhole.validation.replicate import Interval, Replicate, Trial

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
TRUTH = 100.0


def replicate(tau1: float | None, tau2: float = TRUTH) -> Replicate:
    if tau1 is None:
        return Replicate("failed", "No.", 0.0, 0.0, 0, 0, 0, 0.0)
    both = [Interval(tau, 0.0, 0.0, TRUTH) for tau in (tau1, tau2)]
    return Replicate("ok", "", 0.0, 0.0, 1_000, 500, 100, TRUTH, *both)


def test_errors_are_compared_on_the_samples_that_both_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from beside_auto import HEAD, beside_auto

    auto = [110.0, 95.0, 120.0, 101.0]
    other = [100.0, 100.0, 90.0, None]
    results = {Trial("table", 1_000, seed, "auto"): replicate(tau) for seed, tau in enumerate(auto)}
    results |= {
        Trial("table", 1_000, seed, "other", options=(("a", "1"),)): replicate(tau, 98.0)
        for seed, tau in enumerate(other)
    }
    nobody = Interval(1.0, 0.0, 2.0, 0.0)
    for model in ("auto", "other"):
        alone = Replicate("ok", "", 0.0, 0.0, 1_000, 500, 0, TRUTH, nobody, Interval(TRUTH, 0.0, 0.0, TRUTH))
        results[Trial("table", 1_000, 99, model)] = alone
    results |= {Trial("elsewhere", 1_000, seed, "other"): replicate(100.0) for seed in range(4)}
    (found,) = beside_auto(results)
    assert (found.table, found.model, len(found.pool)) == ("table", "other", 3)
    more, error = found.excess
    differences = np.array([0.10, 0.05, 0.10])
    np.testing.assert_allclose(more, [differences.mean(), -0.02])
    np.testing.assert_allclose(error, [differences.std(ddof=1) / np.sqrt(3), 0.0], atol=1e-12)
    assert found.line == ("| table | 1,000 | other | 3 | 11.7% | 3.3% | +8.3 ± 1.7 | 0.0% | 2.0% | -2.0 ± 0.0 |")
    assert {line.count("|") for line in (*HEAD.splitlines(), found.line)} == {11}
