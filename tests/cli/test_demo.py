"""keyhole demo: the whole job on bundled data, with the truth beside the estimates."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Ran

Keyhole = Callable[..., Ran]


def test_the_demo_shows_the_truth_and_writes_the_report(keyhole: Keyhole, tmp_path: Path) -> None:
    ran = keyhole("demo", "--json", tmp_path / "demo.json")
    assert ran.status == 0, ran.err
    result = json.loads((tmp_path / "demo.json").read_text())
    assert (result["command"], result["data"]["population_size"]) == ("demo", 299_285)
    truth = result["results"][0]["truth"]
    assert 0 < truth["tau1"] < truth["tau2"] < result["data"]["sample_uniques"]
    assert f"{truth['tau1']:.0f}" in ran.out
    assert (tmp_path / "work" / "report.html").stat().st_size > 10_000


def test_models_lists_every_model(keyhole: Keyhole) -> None:
    from keyhole.models.catalogue import CATALOGUE

    ran = keyhole("models")
    assert ran.status == 0
    for name in CATALOGUE:
        assert name in ran.out


def test_version_and_help(keyhole: Keyhole) -> None:
    import keyhole as package

    assert keyhole("--version").out.strip() == f"keyhole {package.__version__}"
    assert "assess" in keyhole("--help").out
    assert "--population-size" in keyhole("assess", "--help").out
